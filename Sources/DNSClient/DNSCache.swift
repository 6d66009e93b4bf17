// Answers by query, until they expire. Limited in entries and octets; the least recently used
// answer is removed first.

import MailAuth

/// A query in comparable form.
package struct DNSQuestion: Sendable, Hashable {
    /// Lower case, without trailing dot.
    package let name: String
    package let type: DNSRecordType

    package init(name: String, type: DNSRecordType) {
        self.name = name
        self.type = type
    }

    /// By the name alone, as few names are queried for more than one type, and the type would be
    /// hashed as its text.
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// The cache itself: a value that its owner protects. Times are seconds on any clock that does not
/// go back.
package struct DNSCache: Sendable {
    private struct Entry {
        let question: DNSQuestion
        let answer: DNSAnswer
        let expires: Int64
        let cost: Int
        /// Neighbours in order of use; -1 ends the list.
        var newer: Int
        var older: Int
    }

    /// Estimated cost of an entry in octets, in addition to its text.
    private static let overhead = 160

    private let limits: DNSCacheLimits
    private var slots: [DNSQuestion: Int] = [:]
    private var entries: [Entry?] = []
    private var free: [Int] = []
    private var newest = -1
    private var oldest = -1
    /// The cost of all entries, in octets.
    package private(set) var bytes = 0

    package init(limits: DNSCacheLimits) { self.limits = limits }

    /// The number of answers in the cache.
    package var count: Int { slots.count }

    /// The answer to a query, unless there is none or it has expired.
    package mutating func answer(_ question: DNSQuestion, now: Int64) -> DNSAnswer? {
        guard let slot = slots[question], let entry = entries[slot] else { return nil }
        guard entry.expires > now else {
            remove(slot)
            return nil
        }
        if slot != newest {
            unlink(slot)
            link(slot)
        }
        return entry.answer
    }

    /// Keeps an answer for `ttl` seconds, within the limits. Never keeps a temporary failure, or an
    /// answer that alone exceeds the limit in octets.
    package mutating func store(
        _ answer: DNSAnswer, for question: DNSQuestion, ttl: Int64, now: Int64
    ) {
        var longest = limits.maximumNegativeTTL
        switch answer {
        case .temporaryFailure: return
        case .records: longest = limits.maximumTTL
        case .noData, .nxDomain: break
        }
        if let slot = slots[question] { remove(slot) }
        let cost = Self.cost(question, answer)
        guard cost <= limits.bytes, limits.entries > 0 else { return }
        while oldest >= 0, slots.count >= limits.entries || bytes + cost > limits.bytes {
            remove(oldest)
        }
        let lifetime = min(max(ttl, limits.minimumTTL), longest)
        let (expires, overflow) = now.addingReportingOverflow(lifetime)
        let entry = Entry(
            question: question, answer: answer, expires: overflow ? .max : expires, cost: cost,
            newer: -1, older: -1)
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
            entries[slot] = entry
        } else {
            slot = entries.count
            entries.append(entry)
        }
        slots[question] = slot
        bytes += cost
        link(slot)
    }

    private static func cost(_ question: DNSQuestion, _ answer: DNSAnswer) -> Int {
        var cost = overhead + question.name.utf8.count
        guard case .records(let records) = answer else { return cost }
        for record in records {
            cost += 48
            switch record {
            case .txt(let text): cost += text.count
            case .address(let octets): cost += octets.count
            case .mx(_, let name), .ptr(let name): cost += name.utf8.count
            }
        }
        return cost
    }

    private mutating func remove(_ slot: Int) {
        guard let entry = entries[slot] else { return }
        unlink(slot)
        slots[entry.question] = nil
        bytes -= entry.cost
        entries[slot] = nil
        free.append(slot)
    }

    private mutating func link(_ slot: Int) {
        entries[slot]?.older = newest
        entries[slot]?.newer = -1
        if newest >= 0 { entries[newest]?.newer = slot }
        newest = slot
        if oldest < 0 { oldest = slot }
    }

    private mutating func unlink(_ slot: Int) {
        guard let entry = entries[slot] else { return }
        if entry.newer >= 0 {
            entries[entry.newer]?.older = entry.older
        } else if newest == slot {
            newest = entry.older
        }
        if entry.older >= 0 {
            entries[entry.older]?.newer = entry.newer
        } else if oldest == slot {
            oldest = entry.newer
        }
    }
}
