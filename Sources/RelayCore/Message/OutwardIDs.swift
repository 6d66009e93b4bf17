// Message ids of others and of the user, in the form that a team may see.

import InternetMessage
import LeakSearch

/// The ids of one header section on their way to a team. The team's own ids, recognised by domain
/// or witness, stay unchanged; every other id is hidden. Neither depends on an id's content, as a
/// team could write guesses of the inbox into its own ids.
struct OutwardIDs {
    /// Fields that name other messages.
    static let threadFields = ["In-Reply-To", "References"]

    private let account: RelayAccount
    private let ids: MessageIDs
    private let isRelayDomain: @Sendable (String) -> Bool
    private let witnesses: Set<[UInt8]>
    private let work: WorkBudget
    private let holdsToken: ([UInt8]) -> Bool

    /// Ids of one field that a team sees: the first and the last. References may be shortened like
    /// this (RFC 5537 section 3.4.4).
    static let maximumCount = 100

    /// - Parameters:
    ///   - header: contains the ids, and the witnesses that its forward added.
    ///   - work: the budget for the ids and the rest of their message.
    ///   - holdsToken: whether an id contains one of the account's tokens. No team knows these, so
    ///     the answer reveals nothing to a team.
    init(
        engine: RelayEngine, account: RelayAccount, header: HeaderSection, work: WorkBudget,
        holdsToken: @escaping ([UInt8]) -> Bool
    ) {
        self.account = account
        self.work = work
        self.holdsToken = holdsToken
        ids = engine.ids
        let settings = engine.settings
        isRelayDomain = { settings.isRelayDomain($0) }
        let thread = Self.threadFields.flatMap { header.all($0) }
        work.charge(thread.reduce(0) { $0 + Self.readingWork * $1.rawValue.count })
        witnesses = ids.witnesses(
            among: thread.flatMap { MessageIDs.ids(in: $0.rawValue) },
            isRelayDomain: settings.isRelayDomain)
    }

    /// Units of work for each octet of a field of ids.
    private static let readingWork = 20

    /// The ids of one field as the team may see them, without witnesses. If the message takes too
    /// much work, the rest is left out, as the message will be refused.
    func outward(_ all: [[UInt8]]) -> [[UInt8]] {
        var shown = all.filter { !ids.isWitness($0, isRelayDomain: isRelayDomain) }
        if shown.count > Self.maximumCount {
            shown.removeSubrange(1...(shown.count - Self.maximumCount))
        }
        return shown.compactMap { id in
            guard !work.isSpent else { return nil }
            work.charge(ids.work(id))
            if let original = ids.original(
                of: id, account: account.number, isRelayDomain: isRelayDomain)
            {
                return original
            }
            return isTeams(id) ? id : hidden(id)
        }
    }

    /// The hidden form of one of the user's ids.
    func hidden(_ id: [UInt8]) -> [UInt8] {
        ids.hide(id, account: account.number, relayDomain: account.relayAddress.domain)
    }

    /// Whether the team made an id, or has seen it in this hidden form.
    private func isTeams(_ id: [UInt8]) -> Bool {
        guard let at = id.lastIndex(of: UInt8(ascii: "@")) else { return false }
        let domain = String(decoding: id[(at + 1)...], as: UTF8.self)
        if ids.isHidden(id, account: account.number, isRelayDomain: isRelayDomain) { return true }
        let isMade =
            account.sources.contains { $0.ownsIdentifier(at: domain) }
            || ids.isWitnessed(id, by: witnesses, account: account.number)
        return isMade && !holdsToken(id)
    }
}
