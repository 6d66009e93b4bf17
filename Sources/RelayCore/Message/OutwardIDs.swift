// Message ids of others and of the user, as a team may see them.

import InternetMessage

/// The ids of one header section on their way to a team. What the team made goes back unchanged, recognized by its domain or by a
/// witness; every other id is hidden. Neither depends on what is in the id: a team could write guesses of the inbox into its own.
struct OutwardIDs {
    /// Fields that name other messages.
    static let threadFields = ["In-Reply-To", "References"]

    private let account: RelayAccount
    private let ids: MessageIDs
    private let isRelayDomain: @Sendable (String) -> Bool
    private let witnesses: [[UInt8]]
    private let holdsToken: ([UInt8]) -> Bool

    /// - Parameters:
    ///   - header: the one that the ids are in, with the witnesses that its forward gave it.
    ///   - holdsToken: whether one of the account's tokens is in an id. Those no team knows, so that it tells it nothing.
    init(engine: RelayEngine, account: RelayAccount, header: HeaderSection, holdsToken: @escaping ([UInt8]) -> Bool) {
        self.account = account
        self.holdsToken = holdsToken
        ids = engine.ids
        let settings = engine.settings
        isRelayDomain = { settings.isRelayDomain($0) }
        witnesses = Self.threadFields.flatMap { header.all($0) }.flatMap { MessageIDs.ids(in: $0.rawValue) }
            .filter { engine.ids.isWitness($0, isRelayDomain: settings.isRelayDomain) }
    }

    /// The ids as the team may see them, without witnesses.
    func outward(_ all: [[UInt8]]) -> [[UInt8]] {
        all.filter { !ids.isWitness($0, isRelayDomain: isRelayDomain) }.map { isTeams($0) ? $0 : hidden($0) }
    }

    /// One of the user's ids as the team sees it.
    func hidden(_ id: [UInt8]) -> [UInt8] { ids.hide(id, account: account.number, relayDomain: account.relayAddress.domain) }

    /// Whether the team made an id, or has seen it in the hidden form that it has.
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
