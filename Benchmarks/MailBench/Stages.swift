// Postern's processor time for one message, by stage. Runs the engine of the milter in this
// process, on the installation's own store, with a clock around each injected protocol. The product
// is not changed for it.

import Accounts
import BenchReport
import DNSClient
import Foundation
import InternetMessage
import MailAuth
import MailCrypto
import PosternConfiguration
import Relay
import RelayCore

/// Adds up time by stage. One thread.
private final class StageClock: @unchecked Sendable {
    private(set) var seconds: [String: Double] = [:]
    /// Time of stages within the measured one.
    private var nested = 0.0

    func measure<Value, Failure: Error>(
        _ stage: String, _ work: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let outer = nested
        nested = 0
        let start = Clock.thread()
        defer {
            let whole = Clock.thread() - start
            seconds[stage, default: 0] += whole - nested
            nested = outer + whole
        }
        return try work()
    }
}

private struct TimedDirectory: RelayDirectory {
    let base: any RelayDirectory
    let clock: StageClock

    func account(
        relayAddress localPart: String, domain: String
    ) throws(DirectoryFailure) -> RelayAccount? {
        try clock.measure("store: relay address") { () throws(DirectoryFailure) in
            try base.account(relayAddress: localPart, domain: domain)
        }
    }
    func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? {
        try clock.measure("store: account") { () throws(DirectoryFailure) in
            try base.account(number)
        }
    }
    func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        try clock.measure("store: sources") { () throws(DirectoryFailure) in
            try base.sources(covering: author)
        }
    }
    func isBlocked(_ author: AddrSpec, by account: AccountNumber) throws(DirectoryFailure) -> Bool {
        try clock.measure("store: blocks") { () throws(DirectoryFailure) in
            try base.isBlocked(author, by: account)
        }
    }
    func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? {
        try clock.measure("store: tokens") { () throws(DirectoryFailure) in
            try base.storedAddress(token)
        }
    }
    func store(
        _ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int
    ) throws(DirectoryFailure) -> Bool {
        try clock.measure("store: tokens") { () throws(DirectoryFailure) in
            try base.store(addresses, account: account, day: day, newPerDay: newPerDay)
        }
    }
    func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool {
        try clock.measure("store: daily limit") { () throws(DirectoryFailure) in
            try base.reserve(direction, account: account, day: day, limit: limit)
        }
    }
    func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {
        base.release(direction, account: account, day: day)
    }
    func isHandedOver(
        _ mark: [UInt8], account: AccountNumber, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        try base.isHandedOver(mark, account: account, now: now)
    }
    func beginHandOver(
        _ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64
    ) throws(DirectoryFailure) {
        try base.beginHandOver(copies, until: until)
    }
    func rememberHandedOver(
        _ marks: [[UInt8]], account: AccountNumber, until: Int64
    ) throws(DirectoryFailure) {
        try base.rememberHandedOver(marks, account: account, until: until)
    }
    func forgetHandedOver(_ marks: [[UInt8]], account: AccountNumber) throws(DirectoryFailure) {
        try base.forgetHandedOver(marks, account: account)
    }
    func reserveAutomatic(
        account: AccountNumber, correspondent: [UInt8], day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        try base.reserveAutomatic(account: account, correspondent: correspondent, day: day)
    }
    func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord {
        try base.recordFailure(failure, of: account, rate: rate)
    }
    func admission(
        of team: String, to provider: ProviderFamily, perHour: Int, now: Int64
    ) throws(DirectoryFailure) -> DeliveryAdmission {
        try base.admission(of: team, to: provider, perHour: perHour, now: now)
    }
    func recordComplaint(
        of account: AccountNumber, mark: [UInt8], at provider: ProviderFamily?, day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        try base.recordComplaint(
            of: account, mark: mark, at: provider, day: day)
    }
    func record(
        _ report: AggregateReport, reporter: String, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        try base.record(report, reporter: reporter, now: now)
    }
    func recordAnswer(
        to token: AnswerToken, author: AddrSpec
    ) throws(DirectoryFailure) -> AnswerRecord {
        try base.recordAnswer(to: token, author: author)
    }
    func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {
        base.count(counter, account: account, day: day)
    }
    func count(
        _ outcome: DeliveryOutcome, at provider: ProviderFamily, account: AccountNumber, now: Int64
    ) {
        base.count(outcome, at: provider, account: account, now: now)
    }
}

private struct TimedAuthenticator: SenderAuthenticator {
    let base: any SenderAuthenticator
    let clock: StageClock

    func begin(
        client: SMTPClientIdentity, header: HeaderSection, now: Int64
    ) -> any AuthenticationSession {
        Session(
            base: clock.measure("DKIM: fields") {
                base.begin(client: client, header: header, now: now)
            }, clock: clock)
    }

    private final class Session: AuthenticationSession {
        let base: any AuthenticationSession
        let clock: StageClock
        init(base: any AuthenticationSession, clock: StageClock) {
            self.base = base
            self.clock = clock
        }
        func update(body: UnsafeRawBufferPointer) {
            clock.measure("DKIM: body") { base.update(body: body) }
        }
        func finish() -> AuthenticationEvidence {
            clock.measure("DKIM key and RSA, SPF, DMARC") { base.finish() }
        }
    }
}

private struct TimedSigner: MessageSigner {
    let base: any MessageSigner
    let clock: StageClock

    func begin() -> any SigningSession { Session(base: base.begin(), clock: clock) }

    private final class Session: SigningSession {
        let base: any SigningSession
        let clock: StageClock
        init(base: any SigningSession, clock: StageClock) {
            self.base = base
            self.clock = clock
        }
        func update(body: UnsafeRawBufferPointer) {
            clock.measure("signing: body") { base.update(body: body) }
        }
        func finish(header: HeaderSection, domain: String, now: Int64) throws -> [HeaderField] {
            try clock.measure("signing: fields and RSA") {
                try base.finish(header: header, domain: domain, now: now)
            }
        }
    }
}

enum Stages {
    private static func now() -> Int64 { Int64(Date().timeIntervalSince1970) }

    private static func installation(_ world: MailFixture) throws -> Installation {
        let settings = world.fixture.settings.filter { $0 != "--set" }
        return try Installation.open(
            flag: world.fixture.configuration, environment: [:], set: settings, now: now())
    }

    private static func engine(
        _ installation: Installation, counters: CounterBuffer?,
        directory: ((any RelayDirectory) -> any RelayDirectory)? = nil,
        clock: StageClock? = nil
    ) throws -> RelayEngine {
        let resolver = try Resolvers.perMessage(installation.configuration, path: "bench")
        let native = EngineFactory.authenticator(installation.configuration, resolver: resolver)
        let signer = try RelaySigner(keys: installation.store.dkimKeys)
        let plain = try EngineFactory.engine(
            installation: installation, authenticator: native, signer: signer, counters: counters,
            replyMemory: ReplyMemory(limit: 1 << 30), now: now)
        guard let clock else { return plain }
        guard let keys = TokenKeys(installation.keys.token),
            let timed = RelayEngine(
                settings: plain.settings, keys: keys,
                directory: TimedDirectory(base: plain.directory, clock: clock),
                authenticator: TimedAuthenticator(base: native, clock: clock),
                signer: TimedSigner(base: signer, clock: clock),
                replyMemory: plain.replyMemory, randomness: plain.randomness)
        else { throw BenchFailure("no engine") }
        return timed
    }

    /// The decision about the team's message. Changes nothing in the store.
    static func decide(_ world: MailFixture) throws -> RelayDecision {
        let installation = try installation(world)
        defer { try? installation.close() }
        return try play(world, .forward, try engine(installation, counters: nil), nil)
    }

    private static func play(
        _ world: MailFixture, _ contestant: FilterUnderTest, _ engine: RelayEngine,
        _ clock: StageClock?
    ) throws -> RelayDecision {
        func stage<Value>(_ name: String, _ work: () throws -> Value) rethrows -> Value {
            guard let clock else { return try work() }
            return try clock.measure(name) { try work() }
        }
        let parsed = Message.parse(world.message(contestant))
        // As libmilter passes them: name and value separate, folds as LF alone.
        let transaction = RelayTransaction(
            engine: engine,
            client: SMTPClientIdentity(
                address: "127.0.0.1", helo: "mail.app.example", mailFrom: world.sender(contestant)),
            now: now())
        do {
            try stage("recipient") {
                try transaction.addRecipient("<\(world.recipient(contestant))>")
            }
            stage("header fields") {
                for field in parsed.header.fields {
                    transaction.addHeader(HeaderField(bytes: Array(field.bytes)))
                }
            }
            try stage("end of header") { try transaction.endHeader() }
            try stage("body") { try transaction.addBody(parsed.body) }
        } catch let refusal as Refusal {
            return .refuse(refusal)
        }
        return stage("rewriting and decision") { transaction.finish() }
    }

    /// Measures `messages` of each kind and adds a result for each stage.
    static func measure(_ world: MailFixture, messages: Int, into report: inout BenchReport) throws
    {
        let raw = try rsa()
        report.add(BenchResult("cpu.rsa.sign", raw.sign * 1e6, "µs"))
        report.add(BenchResult("cpu.rsa.verify", raw.verify * 1e6, "µs"))
        let installation = try installation(world)
        defer { try? installation.close() }
        for contestant in [FilterUnderTest.forward, .reply] {
            let clock = StageClock()
            let engine = try engine(
                installation, counters: CounterBuffer(installation.store.counters), clock: clock)
            // Caches are filled and statements prepared before.
            let warm = StageClock()
            for _ in 0..<20 { _ = try play(world, contestant, engine, warm) }
            let before = clock.seconds
            for _ in 0..<messages {
                let decision = try play(world, contestant, engine, clock)
                guard decision.outcome == .relay else {
                    throw BenchFailure("not relayed: \(decision.reasons)")
                }
            }
            var total = 0.0
            for (stage, seconds) in clock.seconds.sorted(by: { $0.value > $1.value }) {
                let each = (seconds - (before[stage] ?? 0)) / Double(messages)
                total += each
                report.add(BenchResult("cpu.\(contestant.rawValue).\(stage)", each * 1e6, "µs"))
            }
            report.add(BenchResult("cpu.\(contestant.rawValue).engine", total * 1e6, "µs"))
        }
    }

    /// Seconds of libcrypto alone for a signature with RSA-2048, and for its verification.
    static func rsa(rounds: Int = 400) throws -> (sign: Double, verify: Double) {
        let key = try RSAPrivateKey.generate()
        let digest = SHA256.hash(Array("bench".utf8))
        let signature = try key.signSHA256(digest: digest)
        let pair = try RSAPublicKey(der: key.publicKeyInfo())
        var start = Clock.thread()
        for _ in 0..<rounds { _ = try key.signSHA256(digest: digest) }
        let sign = (Clock.thread() - start) / Double(rounds)
        start = Clock.thread()
        for _ in 0..<rounds {
            guard pair.verifySHA256(digest: digest, signature: signature) else {
                throw BenchFailure("RSA")
            }
        }
        return (sign, (Clock.thread() - start) / Double(rounds))
    }
}
