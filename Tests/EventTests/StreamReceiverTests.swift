// Streams to a receiver of another project: nothing is lost or out of order, even if the receiver
// makes errors.

import Accounts
import Events
import Foundation
import InternetMessage
import Monitoring
import PostfixHarness
import PostgresHarness
import SharedSignals
import SignIn
import Support
import TestSupport
import Testing

/// The receiver of Tools/ssf_receiver.py, as a process.
final class PythonReceiver: Sendable {
    static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent(
            "Tools/ssf_receiver.py"
        )
        .path
    static let authorization = "Bearer receivers-own"

    let process: ManagedProcess
    private let database: String

    /// - Parameter keys: the JWK Set of the transmitter.
    init(
        _ mode: String, folder: URL, issuer: String, keys: [UInt8], _ environment: [String: String]
    ) throws {
        let file = folder.appendingPathComponent("\(mode)-keys.json")
        try Data(keys).write(to: file)
        database = folder.appendingPathComponent("\(mode).db").path
        let all = [
            "ISSUER": issuer, "AUDIENCE": "com.juice", "KEYS": file.path, "DATABASE": database,
            "CERTIFICATE": TestReceiver.certificate("receiver.pem"),
            "KEY": TestReceiver.certificate("receiver-key.pem"),
            "PATH": "/usr/bin:/bin",
        ].merging(environment) { $1 }
        process = try ManagedProcess(
            try #require(ReceiverExampleTests.python), ["-u", Self.script, mode], environment: all)
    }

    /// The port of a push receiver.
    func port() throws -> Int {
        let line = try process.waitForLine(containing: "port ")
        return try #require(line.split(separator: " ").last.flatMap { Int($0) })
    }

    /// `jti`, subject and URI of the accepted events, in that order.
    func taken() throws -> [[String]] {
        let code = """
            import sqlite3, sys
            for row in sqlite3.connect(sys.argv[1], timeout=30).execute("SELECT jti, subject, event FROM taken ORDER BY n"): print(*row)
            """
        let read = try ManagedProcess.run(
            try #require(ReceiverExampleTests.python), ["-c", code, database])
        try #require(read.status == 0, "\(read.output)")
        return read.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    }

    /// The accepted events are all events of the stream, and those of each account in their order.
    func check(_ written: [OutboxEvent], sourceLocation: SourceLocation = #_sourceLocation) throws {
        let taken = try taken()
        #expect(Set(taken.map { $0[0] }) == Set(written.map(\.jti)), sourceLocation: sourceLocation)
        for account in Set(written.map(\.accountNumber)) {
            let ofAccount = written.filter { $0.accountNumber == account }.map(\.jti)
            #expect(
                taken.map { $0[0] }.filter { ofAccount.contains($0) } == ofAccount, "out of order",
                sourceLocation: sourceLocation
            )
        }
    }
}

extension Store {
    /// Creates the stream of com.juice.
    fileprivate func addStream(
        _ text: String, issuer: String, _ change: Change
    ) throws -> EventStream {
        let request = try StreamRequest(
            StrictJSON.parseObject(Array(text.utf8), limit: 65_536), isNew: true)
        return try streams.add(
            StreamRepository.Owner(team: "juice", group: nil), app: "com.juice", request,
            StreamRepository.Rules(issuer: issuer, allowsPrivate: true), change)
    }

    fileprivate func written(to stream: EventStream) throws -> [OutboxEvent] {
        try outbox.events(limit: 1_000_000).reversed().filter { $0.endpointNumber == stream.number }
    }
}

@Suite(
    .blocking,
    .enabled(
        if: ReceiverExampleTests.python != nil, "skipped: no python3 with PyJWT (make test-tools)"))
struct StreamReceiverTests {
    private static func push(_ port: Int, authorization: Bool = true) -> String {
        let header =
            authorization ? #","authorization_header":"\#(PythonReceiver.authorization)""# : ""
        return
            #"{"delivery":{"method":"urn:ietf:rfc:8935","endpoint_url":"https://hooks.example:\#(port)/events"\#(header)}}"#
    }

    /// PyJWT compares iat with the real time, and accepts none from the future.
    private static func setClock(_ fixture: EventFixture) {
        fixture.clock.advance(Int64(Date().timeIntervalSince1970) - 3_600 - fixture.clock.now)
    }

    /// The published keys after streams are signed.
    private static func keys(_ signer: IdentitySigner) async throws -> [UInt8] {
        _ = try await signer.key(.rs256)
        return try await signer.publishedKeys()
    }

    @Test(.timeLimit(.minutes(15))) func stream_slowOrFailingReceiver_getsEventsInOrder()
        async throws
    {
        let fixture = try EventFixture(users: 4, timeout: 2)
        Self.setClock(fixture)
        let receiver = try PythonReceiver(
            "push", folder: fixture.folder, issuer: EventFixture.issuer,
            keys: try await Self.keys(fixture.signer),
            [
                "AUTHORIZATION": PythonReceiver.authorization,
                "BEHAVIOURS":
                    "slow,garbage,err:invalid_request,lost,err:authentication_failed,400,401,err:made_up,404,500,lost,503,err:invalid_key",
            ])
        defer { receiver.process.end() }
        let stream = try fixture.store.addStream(
            Self.push(try receiver.port()), issuer: EventFixture.issuer, fixture.change)
        for round in 0..<4 {
            for user in 0..<4 { try fixture.toggle("u\(user)", on: round % 2 == 1) }
            fixture.clock.advance(1)
        }
        let accounts = try fixture.store.accounts.accounts()
        try fixture.store.grants.revokeAll(account: accounts[0].number, fixture.change)
        try fixture.store.accounts.delete(account: accounts[1].number, fixture.change)
        let written = try fixture.store.written(to: stream)
        #expect(written.count == 18)
        try await fixture.deliver(within: 2 * 86_400)
        try receiver.check(written)
        let left = try fixture.store.written(to: stream).filter { $0.state != .delivered }
        #expect(left.isEmpty, "\(left.compactMap(\.lastError))")
        let uris = Set(try receiver.taken().map { $0[2] })
        #expect(
            uris == [
                EventType.emailDisabled.facts.uri, EventType.emailEnabled.facts.uri,
                SecurityEventURI.sessionRevoked,
                SecurityEventURI.accountPurged,
            ])
        await fixture.stop()
    }

    @Test(.timeLimit(.minutes(5))) func stream_receiverRefuses_namesErrorCode() async throws {
        let fixture = try EventFixture(users: 2, timeout: 5)
        Self.setClock(fixture)
        let receiver = try PythonReceiver(
            "push", folder: fixture.folder, issuer: EventFixture.issuer,
            keys: try await Self.keys(fixture.signer),
            ["AUTHORIZATION": "Bearer another"])
        defer { receiver.process.end() }
        let stream = try fixture.store.addStream(
            Self.push(try receiver.port(), authorization: false), issuer: EventFixture.issuer,
            fixture.change)
        for user in 0..<2 { try fixture.toggle("u\(user)", on: false) }
        await fixture.delivery.deliverDue()
        // All other events would fail in the same way, so the endpoint pauses.
        let endpoint = try #require(
            try fixture.store.outbox.waitingEndpoints().first { $0.number == stream.number })
        #expect(
            endpoint.failures > 0
                && endpoint.lastError == "the response has status 400 (authentication_failed)")
        #expect(try receiver.taken().isEmpty)
        await fixture.stop()
    }

    /// `events.private_receivers: no` must also stop receivers that were allowed before.
    @Test(arguments: [true, false]) func stream_privateReceiverNoLongerAllowed_isRefused(
        _ isHTTP: Bool
    ) async throws {
        let fixture = try EventFixture(allowsPrivateStreams: false)
        let receiver = try await TestReceiver()
        let url =
            isHTTP
            ? "http://hooks.example:\(receiver.port)/" : "https://hooks.example:\(receiver.port)/"
        let stream = try fixture.store.addStream(
            #"{"delivery":{"method":"urn:ietf:rfc:8935","endpoint_url":"\#(url)"}}"#,
            issuer: EventFixture.issuer, fixture.change)
        // An administrator set this endpoint, so it continues.
        try fixture.endpoint(receiver)
        try fixture.toggle("u0", on: false)
        await fixture.delivery.deliverDue()
        #expect(receiver.taken.map(\.type) == ["email-disabled"])
        let failed = try #require(
            try fixture.store.endpoints.endpoints().first { $0.number == stream.number })
        #expect(failed.failures == 1 && failed.pending == 1)
        #expect(
            failed.lastError?.hasSuffix("and events.private_receivers is no") == true,
            "\(failed.lastError ?? "-")")
        #expect(try fixture.store.events.forbiddenStreams().map(\.stream) == [stream.id])
        #expect(
            try StatusReport.receivers(fixture.store).first?.sentence.contains(
                "stream \(stream.id) of com.juice") == true)
        await receiver.stop()
        await fixture.stop()
    }

    @Test func notification_apple2025Dialect_namesAccountDeleted() async throws {
        try await withFixture { fixture, receiver in
            _ = try fixture.store.endpoints.set(
                team: "juice", app: "com.juice",
                url: EndpointURL("https://hooks.example:\(receiver.port)/"), allowsPrivate: true,
                dialect: .apple2025, fixture.change)
            try fixture.toggle("u0", on: false)
            try fixture.store.accounts.delete(
                account: try #require(fixture.store.accounts.accounts().first).number,
                fixture.change)
            try await fixture.deliver(within: 10)
            #expect(receiver.taken.map(\.type) == ["email-disabled", "account-deleted"])
            for payload in receiver.payloads {
                let claims = try StrictJSON.parseObject(CompactJWS(payload).payload, limit: 65_536)
                #expect(
                    try claims["exp"]?.number?.integer == #require(claims["iat"]?.number?.integer)
                        + 86_400)
            }
            // Our own intake accepts both names.
            #expect(AccountEventKind(type: "account-deleted") == .accountDelete)
            #expect(AccountEventKind(type: "account-delete") == .accountDelete)
        }
    }
}

/// Hosts that are killed during deliveries, while one receiver gets pushes and another one polls.
@Suite(
    .blocking,
    .enabled(
        if: ReceiverExampleTests.python != nil, "skipped: no python3 with PyJWT (make test-tools)"))
struct StreamHostsTests {
    private static let (users, rounds) = (10, 12)

    @Test(.timeLimit(.minutes(20))) func stream_hostKilled_losesNothing() async throws {
        try await run(nil, hosts: 1)
    }

    @Test(
        .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"),
        .timeLimit(.minutes(20)))
    func stream_oneOfTwoHostsKilled_losesNothing() async throws {
        let server = try #require(PostgresServer.shared)
        try await run(server, hosts: 2)
    }

    private func run(_ server: PostgresServer?, hosts count: Int) async throws {
        let hosts = try await EventHosts(server, users: Self.users)
        do { try await run(hosts, count: count) } catch {
            await hosts.stop()
            throw error
        }
        await hosts.stop()
    }

    private func run(_ hosts: EventHosts, count: Int) async throws {
        let store = hosts.store
        let issuer = "https://relay.example"
        let change = Change(actor: "uid:0", now: 1)
        let folder = URL(fileURLWithPath: try hosts.newFolder("receivers"))
        let signer = IdentitySigner(
            store.identityKeys, now: { Int64(Date().timeIntervalSince1970) },
            logger: .init(label: "test"))
        _ = try await signer.key(.rs256)
        let keys = try await signer.publishedKeys()
        // A group of apps has one stream: com.juice gets pushes, com.press polls.
        _ = try store.apps.add(team: "juice", clientID: "com.press", group: nil, change)
        for user in 0..<Self.users {
            _ = try store.grants.authorize(
                AuthorizationRequest(clientID: "com.press", userID: "u\(user)"), change)
        }
        let pushed = try PythonReceiver(
            "push", folder: folder, issuer: issuer, keys: keys,
            ["AUTHORIZATION": PythonReceiver.authorization])
        defer { pushed.process.end() }
        let push = try store.addStream(
            #"{"delivery":{"method":"urn:ietf:rfc:8935","endpoint_url":"https://hooks.example:\#(try pushed.port())/","authorization_header":"\#(PythonReceiver.authorization)"}}"#,
            issuer: issuer, change)
        let poll = try store.streams.add(
            StreamRepository.Owner(team: "juice", group: nil), app: "com.press",
            StreamRequest([:], isNew: true),
            StreamRepository.Rules(issuer: issuer, allowsPrivate: true), change)
        let places = folder.appendingPathComponent("hosts")
        var running: [ManagedProcess] = []
        func start(_ number: Int) throws {
            let process = try hosts.serve(
                "mx\(number)", settings: ["events.private_receivers": "yes"])
            try process.waitForLine(containing: "listening for HTTP")
            if number < running.count { running[number] = process } else { running.append(process) }
            let urls = running.compactMap { process in
                process.lines.first { $0.contains("listening for HTTP") }?.split(separator: " ")
                    .first {
                        $0.hasPrefix("address=")
                    }
                    .map { "http://\($0.dropFirst(8))/ssf/poll/\(poll.id)" }
            }
            try #require(urls.count == running.count)
            try Data(urls.joined(separator: "\n").utf8).write(to: places, options: .atomic)
        }
        for number in 0..<count { try start(number) }
        let polling = try PythonReceiver(
            "poll", folder: folder, issuer: issuer, keys: keys,
            [
                "AUDIENCE": "com.press", "HOSTS": places.path,
                "TOKEN": try hosts.key("juice", "--scope", "ssf.manage"),
                "WANTED": "\(Self.users * Self.rounds)",
            ])
        defer { polling.process.end() }
        for round in 0..<Self.rounds {
            try hosts.toggleAll(rounds: 1, from: round)
            guard round % 4 == 1 else { continue }
            let victim = round / 4 % count
            running[victim].signal(SIGKILL)
            _ = try running[victim].waitForExit()
            try start(victim)
        }
        try polling.process.waitForLine(containing: "done", seconds: 600)
        try polling.check(try store.written(to: poll))
        try wait("everything was pushed", atMost: 2 * standardTimeout) {
            try store.written(to: push).allSatisfy { $0.state == .delivered }
        }
        try pushed.check(try store.written(to: push))
        #expect(try store.written(to: poll).allSatisfy { $0.state == .delivered })
        #expect(try store.written(to: poll).count == Self.users * Self.rounds)
    }
}
