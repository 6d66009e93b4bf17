// The DNS budget of one message: a number of queries, and a total time for all of them.

import MailAuth
import Synchronization

/// Wraps a resolver for one message. Beyond the budget every answer is a temporary failure, which
/// the relay answers with 451.
package final class BudgetedResolver: DNSResolver {
    /// The maximum queries and time for one message.
    package struct Limits: Sendable {
        /// Queries, including those answered from the cache. SPF for two identities needs at most
        /// about 230 at its own limits, and rarely 20. A DMARC walk needs 8, a signature 1.
        package var questions: Int
        /// Milliseconds from the first query.
        package var milliseconds: Int64

        package init(questions: Int = 120, milliseconds: Int64 = 20_000) {
            self.questions = questions
            self.milliseconds = milliseconds
        }
    }

    private struct State {
        var questions = 0
        var deadline: Int64?
    }

    private let base: any DNSResolver
    /// The same resolver, if it accepts a time limit.
    private let timed: (any TimedDNSResolver)?
    private let limits: Limits
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    /// - Parameter now: milliseconds on a clock that does not go back.
    package init(
        _ base: any DNSResolver, limits: Limits = Limits(),
        now: @escaping @Sendable () -> Int64 = MonotonicClock.milliseconds
    ) {
        self.base = base
        timed = base as? any TimedDNSResolver
        self.limits = limits
        self.now = now
    }

    /// For a resolver that accepts a time limit; made for each message.
    package init(
        _ base: any TimedDNSResolver, limits: Limits = Limits(),
        now: @escaping @Sendable () -> Int64 = MonotonicClock.milliseconds
    ) {
        self.base = base
        timed = base
        self.limits = limits
        self.now = now
    }

    /// Queries made so far.
    package var questions: Int { state.withLock { $0.questions } }

    package func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        let now = now()
        let (isWithin, remaining) = state.withLock { state in
            state.questions += 1
            let deadline =
                state.deadline ?? now.addingReportingOverflow(limits.milliseconds).partialValue
            state.deadline = deadline
            return (state.questions <= limits.questions, deadline - now)
        }
        guard isWithin else {
            return .temporaryFailure("more than \(limits.questions) DNS queries for one message")
        }
        guard remaining > 0 else {
            return .temporaryFailure("more than \(limits.milliseconds) ms of DNS for one message")
        }
        guard let timed else { return base.query(name, type) }
        return timed.query(name, type, within: remaining)
    }
}
