// Answers requests: reads the facts, decides with the pure core, and applies the changes.

import Accounts
import CEL
import Database
import Logging
import MailCrypto
import RiskPolicy
import SignIn
import Support
import Synchronization

/// An answer that is ready to be sent.
package struct DecisionReply: Sendable {
    /// One line of JSON.
    package let body: String
    /// The new decision; nil for a repeated earlier answer.
    package let record: DecisionRecord?
}

/// Answers requests. Share one instance between threads.
///
/// While the store is unavailable it still answers, marked `degraded`: without history, from the
/// token and this process's memory.
package final class DecisionService: Sendable {
    /// Settings of the service.
    package struct Settings: Sendable {
        /// The `iss` of this installation's own tokens; nil if it issues none.
        package var ownIssuer: String?
        /// Whether the built-in page carries out checks for apps that ask for it.
        package var hasPage: Bool
        /// How long an answer is valid, in seconds.
        package var validity: Int64
        /// Fixed answers for test subjects, by `sub`; nil outside a sandbox.
        package var canned: (@Sendable (String) -> CannedResponse?)?
        /// Requests that use the store at a time; further ones are refused with
        /// `DecisionError.busy`.
        package var atOnce = Admission.standardLimit
        /// Whether context that the policy does not declare, or cannot use, leads to a refusal: for
        /// developers.
        package var refusesOddContext: Bool

        package init(
            ownIssuer: String? = nil, hasPage: Bool = false, validity: Int64 = 300,
            refusesOddContext: Bool = false,
            canned: (@Sendable (String) -> CannedResponse?)? = nil
        ) {
            self.refusesOddContext = refusesOddContext
            self.ownIssuer = ownIssuer
            self.hasPage = hasPage
            self.validity = validity
            self.canned = canned
        }
    }

    /// The subject and facts of a request's verified token.
    struct VerifiedSubject: Sendable {
        let facts: TokenFacts
        let subject: GrantSubject
        /// `DecisionMarks.subject`.
        let subjectMark: [UInt8]
        /// `DecisionMarks.nonce`; nil if the token has none.
        let nonceMark: [UInt8]?
        /// Seconds since 1970: from then on the token is certainly refused.
        let endsAt: Int64
        /// The token's `sub`.
        let name: String
    }

    /// Minimum seconds between two writes of when a grant was seen, because `hours_since_seen`
    /// counts hours.
    private static let seenResolution: Int64 = 3_600
    /// Most attempts for a request whose grant changes during the decision.
    private static let attempts = 3

    let store: Store
    private let policies: any PolicySource
    let lists: ListsInForce?
    private let verifier: any IdentityTokenVerifying
    /// 1.6 times the rate of requests that are logged one by one (docs/decisions/070).
    let log: DecisionLogBuffer
    /// 1.7 times the rate of sign-ups that are written one by one.
    let commits: GroupCommit
    /// 1.05 times the rate of reads one by one, between 0.6 and 1.7 by the round: not conclusive on
    /// a busy machine.
    private let reads: GroupRead
    private let admission: Admission
    let executor: any BlockingExecutor
    /// The executor for policies that take long: some ten milliseconds of work, too much for
    /// Swift's few threads.
    private let interpreting: any BlockingExecutor
    /// Not faster than a read for each request (0.9): it answers while the store is unavailable.
    let apps: AppDirectory
    /// Not for speed: no one can try a token again while the store is unavailable.
    let memory: DecisionMemory
    let breaker: StoreBreaker
    package let statistics = DecisionStatistics()
    let settings: Settings
    let now: @Sendable () -> Int64
    let logger: Logger
    /// Called once for each decision, for metrics.
    private let observe: @Sendable (DecisionRecord) -> Void
    /// Not for speed: a line in the log each hour instead of one for each request.
    let notices = ContextNotices()
    /// 1.05 times the rate without it, between 0.7 and 1.9 by the round: not conclusive on a busy
    /// machine.
    private let rates = Mutex<[Int64: (rates: AppRates, readAt: Int64)]>([:])

    /// - Parameters:
    ///   - lists: live lists; nil if there are none: signals that depend on them are then missing.
    ///   - executor: runs calls of the store, which block.
    ///   - interpreting: runs policies that take long; nil for the same executor. Do not share it
    ///     with health requests.
    package init(
        store: Store, policies: any PolicySource, lists: ListsInForce? = nil,
        verifier: any IdentityTokenVerifying,
        log: DecisionLogBuffer,
        commits: GroupCommit, reads: GroupRead, executor: any BlockingExecutor,
        interpreting: (any BlockingExecutor)? = nil,
        memory: DecisionMemory = DecisionMemory(),
        breaker: StoreBreaker = StoreBreaker(), settings: Settings = Settings(),
        now: @escaping @Sendable () -> Int64,
        logger: Logger, observe: @escaping @Sendable (DecisionRecord) -> Void = { _ in }
    ) {
        self.store = store
        self.policies = policies
        self.lists = lists
        self.verifier = verifier
        self.log = log
        self.commits = commits
        self.reads = reads
        admission = Admission(limit: settings.atOnce)
        self.executor = executor
        self.interpreting = interpreting ?? executor
        self.memory = memory
        self.breaker = breaker
        self.settings = settings
        self.now = now
        self.logger = logger
        self.observe = observe
        apps = AppDirectory(store.apps)
    }

    /// Reads the data that is needed while the store is unavailable. Blocks.
    package func warmUp() throws { try apps.preload(now: now()) }

    // MARK: Deciding

    /// Answers a request. Throws `DecisionError` for invalid requests. A valid one always gets an
    /// answer, unless there are too many at the same time (`busy`) or its token cannot be verified
    /// now.
    package func decide(
        _ question: DecisionRequest, for team: Requester
    ) async throws -> DecisionReply {
        try question.check()
        let time = try clock()
        let app = try await app(question.clientID, of: team)
        guard let policy = policies.policy(team: team.number, app: app.clientID) else {
            throw DecisionError.unavailable("no policy is active", retryAfter: 30)
        }
        let target = try await target(of: question, app: app)
        let source = policy.signals
        let context = source.context(question.context, areTyped: question.isContextTyped)
        if settings.refusesOddContext { try source.checkStrictly(context) }
        let token = try await meaning(of: question, app: app, now: time.seconds)
        if let token, let mark = token.nonceMark, let used = memory.nonce(mark) {
            return try repeated(used, by: token, event: question.event.rawValue)
        }
        let asking = DecisionContext(
            question: question, app: app, policy: policy, source: source, context: context,
            token: token, target: target, time: time,
            id: try Self.newID(now: time.seconds),
            appAccountMark: question.appAccount.map {
                store.decisionMarks.appAccount(team: team.number, account: $0)
            },
            canned: settings.canned.flatMap { canned in
                (token?.name ?? question.sub ?? question.appAccount).flatMap(canned)
            })
        if case .unavailable? = asking.canned {
            throw DecisionError.unavailable("this test subject never gets an answer", retryAfter: 2)
        }
        if breaker.isClosed, !commits.isStalled {
            do {
                return try await admission.run { try await decideWithHistory(asking) }
            } catch let failure as StoreFailure where !failure.isRefusal {
                breaker.failed()
                logger.warning(
                    "the store does not answer: deciding without history",
                    metadata: ["detail": "\(failure)"])
            }
        }
        return try await decideWithoutHistory(asking)
    }

    /// One request and all data that belongs to it.
    struct DecisionContext: Sendable {
        let question: DecisionRequest
        let app: DecisionApp
        let policy: LoadedPolicy
        let source: SignalSource
        let context: QuestionContext
        let token: VerifiedSubject?
        /// Where the result goes of a check that the page carries out; nil if it does not.
        let target: AuthorizationResponseTarget?
        let time: CELTimestamp
        let id: String
        let appAccountMark: [UInt8]?

        let canned: CannedResponse?

        /// Any name that the team uses for the account.
        var account: String? { token?.name ?? question.sub ?? question.appAccount }
        var subject: GrantSubject? { token?.subject ?? question.sub.map { .named($0) } }
    }

    private func decideWithHistory(_ asking: DecisionContext) async throws -> DecisionReply {
        let device = try await device(asking)
        var counted: CountedVelocity?
        var isAnswered = false
        // A request that gets its earlier answer, or is decided again without history, must not be
        // counted twice.
        defer {
            if !isAnswered, let counted { log.velocity.takeBack(counted.tallies, counted.event) }
        }
        for attempt in 1...Self.attempts {
            let turn = log.velocity.turn
            let (read, rates) = try await read(asking)
            let history = read.history
            let view = view(asking, history)
            var facts = SignalSource.Facts(
                view: view, history: history, token: asking.token?.facts, rates: rates,
                device: device,
                context: asking.context, time: asking.time)
            facts.lists = lists(asking)
            if let known = counted, known.event != view.event {
                // The event has changed: count the request under the new event.
                log.velocity.takeBack(known.tallies, known.event)
                counted = nil
            }
            if counted == nil { counted = try await count(read, view.event, turn: turn) }
            facts.velocity = counted?.counts ?? [:]
            let record = try await compose(asking, facts, isBound: read.isAppAccountBound)
            let url = try await challengeURL(asking, record, facts)
            let answer = DecisionResponse.json(record, challengeURL: url)
            let nonce = nonce(asking, record, answer)
            guard
                var decisionWrite = DecisionBuilder.decisionWrite(
                    record, facts, subject: asking.subject, app: asking.app, nonce: nonce)
            else {
                isAnswered = true
                note(record)
                log.add(record, seen: record.isAsked ? nil : seen(history, asking.time.seconds))
                await log.waitForRoom(executor)
                // The page looks for the decision as soon as the user follows the link.
                if url != nil { try await executor.run { [log] in try log.flush() } }
                return DecisionReply(body: answer, record: record)
            }
            // The last attempt is written regardless of other changes.
            if attempt == Self.attempts { decisionWrite.expected = nil }
            switch try await store.decisionWrites.apply(decisionWrite, in: commits) {
            case .written:
                isAnswered = true
                if let nonce { memory.remember(nonce) }
                note(record)
                return DecisionReply(body: answer, record: record)
            case .nonceConsumed(let used):
                memory.remember(used)
                if let token = asking.token {
                    return try repeated(used, by: token, event: asking.question.event.rawValue)
                }
            case .changed, .boundAlready: continue
            }
        }
        throw StoreFailure.temporary(.busy, "a grant changed again and again")
    }

    private func view(_ asking: DecisionContext, _ history: GrantHistory?) -> GrantView {
        GrantView(
            claimed: asking.question.event, history: history, token: asking.token?.facts,
            isGone: asking.app.isGone,
            now: asking.time.seconds)
    }

    /// One read on one snapshot; the app's rates are read again every few seconds.
    private func read(_ asking: DecisionContext) async throws -> (QuestionHistory, AppRates?) {
        let (app, now) = (asking.app, asking.time.seconds)
        let known =
            asking.source.readsRates
            ? knownRates(app.number, now: now) : AppRates(signUps1h: 0, baseline: nil)
        let read = try await store.history.read(
            HistoryRequest(
                team: app.teamNumber, group: app.groupNumber, subject: asking.subject,
                ratesOfApp: known == nil ? app.number : nil,
                appAccountMark: asking.appAccountMark, velocity: velocity(asking),
                domainClass: domainClass(asking),
                event: { self.view(asking, $0).event }, now: now), in: reads)
        if let fresh = read.rates { rates.withLock { $0[app.number] = (fresh, now) } }
        return (read, asking.source.readsRates ? known ?? read.rates : nil)
    }

    /// The facts about the device that the request names. From now on the account counts as one of
    /// the device.
    private func device(_ asking: DecisionContext) async throws -> DeviceFacts? {
        guard let device = asking.question.device,
            let account = asking.account
        else { return nil }
        return try await executor.run { [store] in
            try store.devices.facts(
                device: device, app: asking.app.number, account: account, now: asking.time.seconds)
        }
    }

    private func knownRates(_ app: Int64, now: Int64) -> AppRates? {
        rates.withLock { rates in
            guard let entry = rates[app], now - entry.readAt < AppDirectory.freshness else {
                return nil
            }
            return entry.rates
        }
    }

    private func decideWithoutHistory(_ asking: DecisionContext) async throws -> DecisionReply {
        let status = asking.token.flatMap {
            memory.firstStatus($0.subjectMark, given: $0.facts.realUserStatus)
        }
        let view = GrantView(
            claimed: asking.question.event, token: asking.token?.facts, rememberedStatus: status)
        var facts = SignalSource.Facts(
            view: view, history: nil, token: asking.token?.facts, context: asking.context,
            isHistoryAvailable: false,
            time: asking.time)
        facts.lists = lists(asking)
        let record = try await compose(asking, facts, isBound: false)
        let answer = DecisionResponse.json(record)
        let nonce = nonce(asking, record, answer)
        if let nonce, let token = asking.token, let used = memory.consume(nonce) {
            return try repeated(used, by: token, event: asking.question.event.rawValue)
        }
        if let velocity = velocity(asking) {
            log.velocity.count(velocity.tallies(view.event, inbox: nil), view.event)
        }
        if let decisionWrite = DecisionBuilder.decisionWrite(
            record, facts, subject: asking.subject, app: asking.app, nonce: nonce)
        {
            log.add(decisionWrite)
        } else {
            log.add(record)
        }
        note(record)
        return DecisionReply(body: answer, record: record)
    }

    /// Live lists, for a policy that reads them.
    private func lists(_ asking: DecisionContext) -> (any LiveLists)? {
        asking.policy.policy.scope.liveLists.isEmpty
            ? nil : lists?.lists(team: asking.app.teamNumber)
    }

    private func compose(
        _ asking: DecisionContext, _ facts: SignalSource.Facts, isBound: Bool
    ) async throws -> DecisionRecord {
        let request = CompositionRequest(
            id: asking.id, app: asking.app, claimed: asking.question.event,
            isNamed: asking.subject != nil,
            appAccountMark: asking.appAccountMark, isBound: isBound, validity: settings.validity)
        let marks = store.decisionMarks
        let composed: @Sendable () -> DecisionRecord = {
            DecisionBuilder.compose(
                request, facts, policy: asking.policy, signals: asking.source, marks: marks)
        }
        let record =
            asking.policy.policy.decidesAtOnce ? composed() : try await interpreting.run(composed)
        guard let canned = asking.canned else { return record }
        return canned.applied(to: record)
    }

    private func nonce(
        _ asking: DecisionContext, _ record: DecisionRecord, _ answer: String
    ) -> ConsumedNonce? {
        guard let token = asking.token, let mark = token.nonceMark else { return nil }
        return ConsumedNonce(
            mark: mark, subject: token.subjectMark, claimedEvent: record.claimedEvent,
            event: record.event, decisionID: record.id,
            answer: answer, expiresAt: token.endsAt)
    }

    private func seen(_ history: GrantHistory?, _ now: Int64) -> (grant: Int64, at: Int64)? {
        guard let grant = history?.grant, now - (grant.lastSeenAt ?? 0) >= Self.seenResolution
        else { return nil }
        return (grant.number, now)
    }

    private func note(_ record: DecisionRecord) {
        statistics.count(record)
        observe(record)
        noteContext(record)
        if record.overriddenBy != nil {
            logger.warning(
                "a guarantee overrode the rules of the policy",
                metadata: [
                    "decision": "\(record.id)", "policy": "\(record.policyName)",
                    "hash": "\(record.policyHash)",
                ])
        }
    }

    // MARK: The data of a request

    func clock() throws -> CELTimestamp {
        guard let time = CELTimestamp(seconds: now()) else {
            throw DecisionError.unavailable("the clock is wrong", retryAfter: 60)
        }
        return time
    }

    /// The app of a request. An app of another team is treated like one that does not exist.
    func app(_ clientID: String, of team: Requester) async throws -> DecisionApp {
        let time = now()
        var app = apps.fresh(clientID, now: time)
        if app == nil {
            app = apps.known(clientID)
            if breaker.isClosed {
                do {
                    app = try await executor.run { [apps] in try apps.read(clientID, now: time) }
                } catch let failure as StoreFailure where !failure.isRefusal {
                    breaker.failed()
                }
            }
            if app == nil, !breaker.isClosed {
                throw DecisionError.unavailable(
                    "the store is unavailable, and this host has no data about the app",
                    retryAfter: 5)
            }
        }
        guard let app = app?.asked(by: team.number) else {
            throw DecisionError.invalid("/client_id", "the team has no such app")
        }
        return app
    }

    /// The request's token, verified.
    private func meaning(
        of question: DecisionRequest, app: DecisionApp, now: Int64
    ) async throws -> VerifiedSubject? {
        guard let token = question.identityToken else { return nil }
        return try await meaning(
            of: token, nonce: question.nonce, sub: question.sub, app: app, now: now)
    }

    /// A token, verified for an app.
    func meaning(
        of token: String, nonce: String?, sub: String?, app: DecisionApp, now: Int64
    ) async throws -> VerifiedSubject {
        let expected = ExpectedNonce(
            nonce, form: SignIn.NonceForm(rawValue: app.nonceForm.rawValue),
            isRequired: app.isNonceRequired)
        let verified: VerifiedToken
        do {
            verified = try await verifier.verify(
                token, audience: app.clientID, nonce: expected, now: now)
        } catch TokenVerificationFailure.rejected(let rejection) {
            statistics.countRejectedToken()
            throw DecisionError.invalid(
                rejection.check == .nonce ? "/nonce" : "/identity_token", rejection.description)
        } catch TokenVerificationFailure.unavailable(let trouble) {
            logger.warning("a token cannot be verified now", metadata: ["detail": "\(trouble)"])
            throw DecisionError.unavailable(
                "the keys of the token's issuer are unavailable", retryAfter: trouble.retryAfter)
        } catch let failure as StoreFailure where !failure.isRefusal {
            breaker.failed()
            throw DecisionError.unavailable("the issuers cannot be read now", retryAfter: 5)
        }
        let claims = verified.claims
        if let sub, !sub.hasSameOctets(as: claims.subject) {
            throw DecisionError.invalid("/sub", "it is not the subject of the identity token")
        }
        let isOwn = settings.ownIssuer.map { $0.hasSameOctets(as: claims.issuer) } ?? false
        let marks = store.decisionMarks
        return VerifiedSubject(
            facts: TokenFacts(
                issuedAt: claims.issuedAt, realUserStatus: claims.realUserStatus?.rawValue,
                hasEmail: claims.email != nil,
                isExternal: !isOwn, methods: claims.authenticationMethods,
                authenticatedAt: claims.authenticatedAt),
            subject: isOwn
                ? .own(sub: claims.subject)
                : .external(issuer: claims.issuer, subject: claims.subject),
            subjectMark: marks.subject(issuer: claims.issuer, subject: claims.subject),
            nonceMark: claims.nonce.map {
                marks.nonce(issuer: claims.issuer, audience: claims.audience, claim: $0)
            },
            endsAt: claims.expiresAt &+ verified.issuer.leeway, name: claims.subject)
    }

    /// The earlier answer for a nonce, for the same subject and event.
    func repeated(
        _ used: ConsumedNonce, by token: VerifiedSubject, event: String
    ) throws -> DecisionReply {
        guard constantTimeEqual(used.subject, token.subjectMark),
            event == used.claimedEvent || event == used.event
        else {
            statistics.countRepeatedNonce()
            throw DecisionError.conflict(
                "the nonce was used before, for another account or event: request a new token")
        }
        return DecisionReply(body: used.answer, record: nil)
    }

    /// `rd_`, seven characters of time and 95 random bits. Decisions of the same time are adjacent
    /// in the log's index, so that writes do not spread over all of it.
    static func newID(now: Int64) throws -> String {
        let time = String(decoding: Base32.encode(UInt64(clamping: now), digits: 7), as: UTF8.self)
        return "rd_" + time + Base32.characters(fromRandom: try SecureRandom.bytes(count: 19))
    }
}
