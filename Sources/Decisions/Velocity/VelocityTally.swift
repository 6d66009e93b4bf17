// A request as seen by a counter of the policy: the row that it reads, and the row that it adds to.

import Accounts
import RiskPolicy

/// One counter's view of one request, with values only as marks.
package struct VelocityTally: Sendable, Hashable {
    /// The counter's index in the policy.
    package let counter: Int
    /// `DecisionMarks.velocity` of the value that the counter counts by.
    package let mark: [UInt8]
    /// The row of the mark that counts this request: its slice, or the mark of the distinct value.
    package let part: [UInt8]
    package let isDistinct: Bool
    /// The current slice.
    package let slice: Int64
    /// The first slice that counts.
    package let since: Int64
    /// Seconds since 1970: from then on the row no longer counts.
    package let endsAt: Int64
    /// The events that count.
    package let events: Set<PolicyEvent>
}

/// The values of a request that counters can use.
package struct VelocityQuestion: Sendable {
    package var counters: [PolicyCounter]
    /// By event, the indexes of the counters that count it or are read at it; an event without an
    /// entry uses all of them.
    package var used: [PolicyEvent: Set<Int>] = [:]
    /// The store's number of the requesting team.
    package var team: Int64
    /// The request's name for the account; nil if it names none.
    package var account: String?
    package var device: String?
    /// By the name after `context.`.
    package var context: [String: String]
    package var marks: DecisionMarks
    /// Seconds since 1970.
    package var now: Int64

    package init(
        counters: [PolicyCounter], team: Int64, account: String?, device: String?,
        context: [String: String],
        marks: DecisionMarks, now: Int64
    ) {
        self.counters = counters
        self.team = team
        self.account = account
        self.device = device
        self.context = context
        self.marks = marks
        self.now = now
    }

    /// The tallies of the event's counters whose values the request contains.
    /// - Parameters:
    ///   - event: as determined by Postern.
    ///   - inbox: a keyed hash of the account's inbox; nil if it is unknown.
    ///   - domain: the inbox's domain; nil if it is unknown or shared by many people.
    package func tallies(
        _ event: PolicyEvent, inbox: [UInt8]?, domain: String? = nil
    ) -> [VelocityTally] {
        counters.indices.filter { used[event]?.contains($0) ?? true }.compactMap { index in
            let counter = counters[index]
            guard let mark = mark(counter, counter.key, inbox, domain) else { return nil }
            let slice = now / counter.slice
            var part = withUnsafeBytes(of: slice.bigEndian) { Array($0) }
            if let distinct = counter.distinct {
                guard let value = self.mark(counter, distinct, inbox, domain) else { return nil }
                part = value
            }
            return VelocityTally(
                counter: index, mark: mark, part: part, isDistinct: counter.distinct != nil,
                slice: slice,
                since: (now - counter.window) / counter.slice,
                endsAt: (slice + 1) * counter.slice + counter.window,
                events: counter.events)
        }
    }

    private func mark(
        _ counter: PolicyCounter, _ key: PolicyCounter.Key, _ inbox: [UInt8]?, _ domain: String?
    ) -> [UInt8]? {
        let value: String? =
            switch key {
            case .account: account
            case .device: device
            case .inbox:
                inbox.map {
                    String(
                        decoding: $0.flatMap { [0x41 + $0 >> 4, 0x41 + $0 & 15] }, as: UTF8.self)
                }
            case .inboxDomain: domain?.lowercased()
            case .context(let name): context[name]
            }
        return value.map {
            marks.velocity(team: team, counter: counter.definition, key: key.text, value: $0)
        }
    }
}
