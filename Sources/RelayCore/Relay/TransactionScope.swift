// The common scope of the recipients of one transaction: which of them may share one message, and
// which may get copies of it.

import InternetMessage

/// The kind of mail in a transaction, or in a copy of its message.
enum TransactionScope {
    case empty
    case elsewhere
    case operatorMail([AddrSpec])
    case forward(RelayAccount)
    /// - beside: the accounts of relay addresses among the recipients, as in a reply to all: this
    ///   account or any other.
    case reply(AccountNumber, correspondents: [AddrSpec], beside: [RelayAccount])
    case returnPath(AddressToken)
    case answer(AnswerToken)

    /// The scope of both in one transaction; nil if they cannot share one message.
    static func merged(_ scope: TransactionScope, _ other: TransactionScope) -> TransactionScope? {
        switch (scope, other) {
        case (.empty, _): return other
        case (.elsewhere, .elsewhere): return scope
        case (.operatorMail(let targets), .operatorMail(let more)):
            return .operatorMail(targets + more.filter { !targets.contains($0) })
        case (.forward(let account), .forward(let other)):
            return account.number == other.number ? scope : nil
        case (
            .reply(let account, let correspondents, let beside),
            .reply(let other, let more, let alsoBeside)
        ):
            guard account == other else { return nil }
            return .reply(
                account,
                correspondents: correspondents + more.filter { !correspondents.contains($0) },
                beside: beside + alsoBeside)
        case (.returnPath(let token), .returnPath(let other)): return token == other ? scope : nil
        case (.answer(let token), .answer(let other)): return token == other ? scope : nil
        default: return nil
        }
    }

    /// Reverse addresses and relay addresses in one transaction, as in a reply to all. They may
    /// belong to any accounts: an answer at RCPT that they do not belong together would reveal
    /// their owners.
    static func repliedToAll(
        _ scope: TransactionScope, _ other: TransactionScope
    ) -> TransactionScope? {
        switch (scope, other) {
        case (.reply(let number, let correspondents, let beside), .forward(let account)),
            (.forward(let account), .reply(let number, let correspondents, let beside)):
            .reply(number, correspondents: correspondents, beside: beside + [account])
        default: nil
        }
    }

    /// Whether all of it belongs to one account.
    var isOfOneAccount: Bool {
        guard case .reply(let number, _, let beside) = self else { return true }
        return beside.allSatisfy { ([$0] + $0.successors).contains { $0.number == number } }
    }

    /// Whether a copy can serve two scopes that cannot share one message: two forwards, or two
    /// replies. One proof is enough for both.
    static func isFannable(_ scope: TransactionScope, _ other: TransactionScope) -> Bool {
        switch (scope, other) {
        case (.forward, .forward), (.reply, .reply): true
        default: false
        }
    }

    /// The account of the mail, if it belongs to one.
    var account: AccountNumber? {
        switch self {
        case .forward(let account): account.number
        case .reply(let number, _, _): number
        default: nil
        }
    }
}

/// The accepted recipients of a transaction, by the message that carries them.
struct RecipientParts {
    /// The message relayed in place comes first, then its copies. Paths are kept exactly as in
    /// RCPT.
    private(set) var all: [(scope: TransactionScope, paths: [String])] = [(.empty, [])]

    var first: (scope: TransactionScope, paths: [String]) { all[0] }
    var further: ArraySlice<(scope: TransactionScope, paths: [String])> { all.dropFirst() }
    var paths: [String] { all.flatMap(\.paths) }

    /// The place of a recipient, and the scope of all recipients there; nil if it must come in its
    /// own transaction.
    /// - Parameters:
    ///   - mayMix: whether recipients for different kinds of message may share one for now. Called
    ///     only if needed, like `canFanOut`.
    ///   - canFanOut: whether copies can be handed over.
    func place(
        for own: TransactionScope, mayMix: () -> Bool, canFanOut: () -> Bool
    ) -> (index: Int, scope: TransactionScope)? {
        func places(
            _ together: (TransactionScope, TransactionScope) -> TransactionScope?
        ) -> [(index: Int, scope: TransactionScope)] {
            all.indices.compactMap { index in together(all[index].scope, own).map { (index, $0) } }
        }
        if let same = places(TransactionScope.merged).first { return same }
        guard mayMix() else { return nil }
        let mixed = places(TransactionScope.repliedToAll)
        if let mixed = mixed.first(where: { $0.scope.isOfOneAccount }) ?? mixed.first {
            return mixed
        }
        return TransactionScope.isFannable(first.scope, own) && canFanOut() ? (all.count, own) : nil
    }

    mutating func add(_ path: String, at place: (index: Int, scope: TransactionScope)) {
        if place.index == all.count { all.append((.empty, [])) }
        all[place.index].scope = place.scope
        // The relay does not change recipients that it does not handle.
        if case .elsewhere = place.scope { return }
        all[place.index].paths.append(path)
    }

    /// Removes recipients.
    /// - Parameter scope: of the remaining recipients.
    mutating func narrow(_ index: Int, to scope: TransactionScope, _ paths: [String]) {
        all[index] = (paths.isEmpty ? all[index].scope : scope, paths)
    }
}
