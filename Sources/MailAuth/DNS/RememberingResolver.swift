// Asks each DNS question of one message once.

import Synchronization

/// Wraps a resolver for one message that is evaluated twice: questions asked before the body are not asked, or waited for,
/// again after it.
final class RememberingResolver: DNSResolver {
    private struct Question: Hashable {
        let name: String
        let type: DNSRecordType
    }

    private let base: any DNSResolver
    /// At most as many as the message's budget allows to ask.
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
