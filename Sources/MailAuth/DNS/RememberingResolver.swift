// Asks each question of one message once.

import Synchronization

/// Wraps a resolver for one message that is evaluated twice: what was asked before the body is not asked again behind it, nor
/// waited for.
final class RememberingResolver: DNSResolver {
    private struct Question: Hashable {
        let name: String
        let type: DNSRecordType
    }

    private let base: any DNSResolver
    /// As many as the budget of a message allows to ask.
    private let answers = Mutex<[Question: DNSAnswer]>([:])

    init(_ base: any DNSResolver) { self.base = base }

    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        let question = Question(name: name, type: type)
        if let known = answers.withLock({ $0[question] }) { return known }
        let answer = base.query(name, type)
        answers.withLock { $0[question] = answer }
        return answer
    }
}
