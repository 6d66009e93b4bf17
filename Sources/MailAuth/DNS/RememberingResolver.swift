// Sends each DNS query of one message only once.

import Synchronization

/// Wraps a resolver for one message that is evaluated twice. The second evaluation, after the body,
/// does not repeat the queries of the first, and does not wait for them again.
final class RememberingResolver: DNSResolver {
    private struct Question: Hashable {
        let name: String
        let type: DNSRecordType
    }

    private let base: any DNSResolver
    /// At most as many as the message's budget allows.
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
