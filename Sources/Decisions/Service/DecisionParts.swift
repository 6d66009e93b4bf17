// The parts that decide and write the log: created once for each process, used by routes, services
// and commands.

import Accounts
import Database
import Logging
import PosternMetrics
import SignIn

/// The service of decisions and its parts.
package struct DecisionParts: Sendable {
    package let service: DecisionService
    package let idempotency: IdempotencyGuard
    package let log: DecisionLogBuffer
    /// Group commit, which writes for many decisions and messages together.
    package let commits: GroupCommit
    private let reads: GroupRead

    /// From existing parts, for the sandbox.
    package init(
        service: DecisionService, idempotency: IdempotencyGuard, log: DecisionLogBuffer,
        commits: GroupCommit, reads: GroupRead
    ) {
        self.service = service
        self.idempotency = idempotency
        self.log = log
        self.commits = commits
        self.reads = reads
    }

    /// - Parameters:
    ///   - lists: live lists; the caller keeps them up to date.
    ///   - own: the `iss` of this installation's tokens and their signer; nil if it issues none.
    ///   - hasPage: whether the built-in page carries out checks.
    ///   - executor: runs calls of the store, which block.
    ///   - interpreting: runs policies that take long; nil for the same executor.
    ///   - metrics: counts decisions by outcome and rule.
    ///   - refusesOddContext, canned: as in `DecisionService.Settings`.
    package init(
        store: Store, policies: any PolicySource, lists: ListsInForce?, trust: IssuerTrust,
        own: (issuer: String, signer: IdentitySigner)?, hasPage: Bool,
        executor: any BlockingExecutor, interpreting: (any BlockingExecutor)? = nil,
        metrics: ServiceMetrics? = nil,
        refusesOddContext: Bool = false, canned: (@Sendable (String) -> CannedResponse?)? = nil,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        let trust = TokenTrust(own: own, others: trust)
        log = DecisionLogBuffer(store.decisions, store.decisionWrites)
        let database = store.database.first
        commits = GroupCommit(database)
        reads = GroupRead(database)
        let breaker = StoreBreaker()
        let labels = ContextLabels()
        service = DecisionService(
            store: store, policies: policies, lists: lists,
            verifier: TokenVerifier(issuers: trust, keys: trust), log: log,
            commits: commits,
            reads: reads, executor: executor, interpreting: interpreting, breaker: breaker,
            settings: DecisionService.Settings(
                ownIssuer: own?.issuer, hasPage: hasPage, refusesOddContext: refusesOddContext,
                canned: canned),
            now: now, logger: logger
        ) { record in
            guard let metrics else { return }
            metrics.decisions(record.decision).add()
            // The operator sets the names of rules, so their number is that of the policy.
            for rule in record.asked.isEmpty ? record.skips : record.asked {
                metrics.decisionRules(rule).add()
            }
            for rule in record.errors { metrics.decisionErrors(rule).add() }
            let troubles = record.contextTroubles
            for name in troubles.ignored {
                metrics.decisionContext(ContextTrouble.ignored.rawValue, labels.label(name)).add()
            }
            for (name, _) in troubles.unusable {
                metrics.decisionContext(ContextTrouble.invalid.rawValue, labels.label(name)).add()
            }
        }
        idempotency = IdempotencyGuard(store: store, executor: executor, breaker: breaker, now: now)
    }

    /// Writes waiting data and releases everything: for commands.
    package func end() throws {
        defer { close() }
        try log.flush()
    }

    /// Ends the threads of group commit and group read.
    package func close() {
        commits.close()
        reads.close()
    }
}
