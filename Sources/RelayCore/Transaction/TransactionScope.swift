// What the recipients of one transaction have in common: which may share one message, and which may have copies of it.

import InternetMessage

/// What a transaction, or a copy of its message, carries.
enum TransactionScope {
    case empty
    case elsewhere
    case operatorMail([AddrSpec])
    case forward(RelayAccount)
    /// - own: the account by its own relay address, where that is among the recipients too, as a reply to all puts it there.
    case reply(AccountNumber, correspondents: [AddrSpec], own: RelayAccount?)
    case returnPath(AddressToken)
    case answer(AnswerToken)

    /// Both in one transaction; nil where they do not go together.
    static func merged(_ scope: TransactionScope, _ other: TransactionScope) -> TransactionScope? {
        switch (scope, other) {
        case (.empty, _): return other
        case (.elsewhere, .elsewhere): return scope
        case (.operatorMail(let targets), .operatorMail(let more)): return .operatorMail(targets + more.filter { !targets.contains($0) })
        case (.forward(let account), .forward(let other)): return account.number == other.number ? scope : nil
        case (.reply(let account, let correspondents, let own), .reply(let other, let more, let alsoOwn)):
            guard account == other else { return nil }
            return .reply(account, correspondents: correspondents + more.filter { !correspondents.contains($0) }, own: own ?? alsoOwn)
        case (.returnPath(let token), .returnPath(let other)): return token == other ? scope : nil
        case (.answer(let token), .answer(let other)): return token == other ? scope : nil
        default: return nil
        }
    }

    /// Reverse addresses and the relay address of the same account in one transaction: what a reply to all is sent to.
    static func repliedToAll(_ scope: TransactionScope, _ other: TransactionScope) -> TransactionScope? {
        switch (scope, other) {
        case (.reply(let number, let correspondents, let own), .forward(let account)),
            (.forward(let account), .reply(let number, let correspondents, let own)):
            ([account] + account.successors).contains { $0.number == number }
                ? .reply(number, correspondents: correspondents, own: own ?? account) : nil
        default: nil
        }
    }

    /// Whether a copy can carry what does not go together: forwards beside a forward, replies beside a reply, which one proof serves.
    static func isFannable(_ scope: TransactionScope, _ other: TransactionScope) -> Bool {
        switch (scope, other) {
        case (.forward, .forward), (.reply, .reply): true
        default: false
        }
    }

    /// Whose mail it is, where it belongs to one account.
    var account: AccountNumber? {
        switch self {
        case .forward(let account): account.number
        case .reply(let number, _, _): number
        default: nil
        }
    }
}
