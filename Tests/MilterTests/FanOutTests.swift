// Copies of a message that the milter hands over: the records made before, and the recognition of
// copies that return.

import Milter
import MilterTesting
import RelayCore
import Synchronization
import TestSupport
import Testing

@testable import RelayMilter

/// Accepts every copy, or answers it as the test requires.
private final class Carrier: CopyCarrier {
    struct State {
        var clients: [CopyClient] = []
        var logins: [String] = []
        var paths: [[String]] = []
    }

    private let state = Mutex(State())
    private let answer: @Sendable ([String]) -> CopyOutcome

    init(answer: @escaping @Sendable ([String]) -> CopyOutcome = { _ in .taken(queueID: nil) }) {
        self.answer = answer
    }

    var clients: [CopyClient] { state.withLock(\.clients) }
    var logins: [String] { state.withLock(\.logins) }
    var paths: [[String]] { state.withLock(\.paths) }

    func open(for client: CopyClient, login: @escaping () -> String) -> (any CopySession)? {
        let given = login()
        state.withLock {
            $0.clients.append(client)
            $0.logins.append(given)
        }
        return Session(self)
    }

    private final class Session: CopySession {
        private let carrier: Carrier
        init(_ carrier: Carrier) { self.carrier = carrier }
        func hand(
            over original: FanOutOriginal, parameters: [String], to paths: [String]
        ) -> CopyOutcome {
            carrier.state.withLock { $0.paths.append(paths) }
            return carrier.answer(paths)
        }
        func close() {}
    }
}

@Suite(.blocking) struct FanOutTests {
    private static let carla = RelayMilterFixture.account(
        3, "carlarelay2", inbox: "carla@inbox.example")
    private static let all = [
        "<annarelay2@relay.example>", "<bobrelay22@relay.example>", "<carlarelay2@relay.example>",
    ]

    private static func send(
        _ fixture: RelayMilterFixture, to recipients: [String] = all
    ) -> MessageOutcome {
        let connection = MilterTransaction().connect(daemonName: "smtp").helo("client.test")
        return fixture.play(
            recipients.reduce(connection.mail("<b@app.example>")) { $0.rcpt($1) }.teamMessage()
                .endOfMessage()
        )
        .message
    }

    private static func fixture(_ carrier: Carrier) -> RelayMilterFixture {
        RelayMilterFixture(carrier: carrier, more: [carla])
    }

    /// On a full disk, not all copies may leave each time the sender repeats the message.
    @Test func copy_storeFull_isNotMade() {
        let carrier = Carrier()
        let fixture = Self.fixture(carrier)
        fixture.directory.runFull(after: 0)
        for _ in 0..<2 {
            let message = Self.send(fixture)
            #expect(
                message.final.status == "451 4.3.0"
                    && message.final.parts?.text.hasPrefix("Temporary trouble") == true)
        }
        #expect(carrier.paths.isEmpty)
        fixture.directory.runFull(after: .max)
        #expect(
            Self.send(fixture).delivered != nil && carrier.paths == [[Self.all[1]], [Self.all[2]]])
    }

    @Test func copy_storeFullAfterFirstNote_isTheLastOne() {
        let carrier = Carrier()
        let fixture = Self.fixture(carrier)
        // The next copy is recorded, and nothing after it.
        fixture.directory.runFull(after: 1)
        #expect(Self.send(fixture).final.status == "451 4.3.0" && carrier.paths == [[Self.all[1]]])
        // The disk stays full, so no more copies are made.
        #expect(Self.send(fixture).final.status == "451 4.3.0" && carrier.paths.count == 1)
        // There is space again, and a recipient with a copy does not get it twice.
        fixture.directory.runFull(after: .max)
        #expect(
            Self.send(fixture).delivered != nil && carrier.paths == [[Self.all[1]], [Self.all[2]]])
    }

    /// A refusal that has nothing to do with the recipient of a copy must not count against it.
    @Test func copy_refusedForStoreTrouble_blamesNoRecipient() {
        let carrier = Carrier { _ in
            .refused(
                SMTPReply(
                    code: 451, enhanced: "4.3.0", text: "Temporary trouble here; try again later"))
        }
        let fixture = Self.fixture(carrier)
        let first = Self.send(fixture)
        #expect(
            first.final.status == "451 4.3.0"
                && first.final.parts?.text.hasPrefix("Temporary trouble") == true)
        // The recipients are not separated because of it either.
        let second = Self.send(fixture)
        #expect(Self.all.allSatisfy { second.reply(to: $0) == .continue })
    }

    /// Anyone on the machine can connect to the smtpd for copies and claim to be a client, for
    /// which SPF would then be checked.
    @Test func copyLogin_forgedUsedOrExpired_isRefused() throws {
        let carrier = Carrier()
        let fixture = Self.fixture(carrier)
        #expect(Self.send(fixture).delivered != nil)
        let client = try #require(carrier.clients.first)
        let given = try #require(carrier.logins.first)
        let handler = fixture.handler
        func copy(_ login: String?, address: String = "192.0.2.1") -> MilterReply? {
            let connection = MilterTransaction().connect(
                peer: .ipv4(address, port: 25_001), daemonName: RelayMilterSession.fanOutName
            ).helo("client.test")
            let macros = login.map { ["{auth_authen}": $0] } ?? [:]
            return connection.mail("<b@app.example>").rcpt(Self.all[1], macros: macros)
                .teamMessage().endOfMessage().run(handler)
                .message.reply(to: Self.all[1])
        }
        for login in [
            nil, "", "copies", given + "a", String(given.dropLast()),
            given.replacing("copies.1", with: "copies.2"),
            given.replacing(".", with: ".."),
        ] {
            #expect(copy(login)?.status == "451 4.7.0", "\(login ?? "none")")
        }
        #expect(
            copy(given, address: "203.0.113.9")?.status == "451 4.7.0",
            "it is good for its client alone")
        let late = fixture.engine.copyLogin(for: client.address, now: RelayMilterFixture.now - 601)
        #expect(
            copy(late)?.status == "451 4.7.0"
                && copy(
                    fixture.engine.copyLogin(for: client.address, now: RelayMilterFixture.now - 600)
                ) == .continue)
        // Postfix logs the login, so a reader of the log must not be able to use it.
        #expect(copy(given) == .continue)
        #expect(copy(given)?.status == "451 4.7.0", "it is good for one session")
        #expect(
            fixture.log.lines.contains {
                $0.hasPrefix("error 451 4.7.0") && $0.contains("reason=forged-copy")
            })
        #expect(!fixture.log.lines.contains { $0.contains(given) })
    }

    @Test func copyLogin_severalCopiesInOneSession_isTaken() throws {
        let fixture = Self.fixture(Carrier())
        let login = fixture.engine.copyLogin(for: "192.0.2.1", now: RelayMilterFixture.now)
        let session = MilterTransaction().connect(
            peer: .ipv4("192.0.2.1", port: 25_001), daemonName: RelayMilterSession.fanOutName
        ).helo("client.test")
        let macros = ["{auth_authen}": login]
        let outcome = fixture.play(
            session.mail("<b@app.example>").rcpt(Self.all[0], macros: macros).teamMessage()
                .endOfMessage()
                .mail("<b@app.example>").rcpt(Self.all[1], macros: macros).teamMessage()
                .endOfMessage())
        #expect(
            outcome.messages.count == 2 && outcome.messages.allSatisfy { $0.delivered != nil },
            "\(outcome.messages)")
    }

    @Test func copyLogin_used_isRefusedWhileValid() {
        let used = UsedCopyLogins()
        let start = ContinuousClock.now
        func take(_ login: String, after seconds: Int) -> Bool {
            used.take(login, at: start + .seconds(seconds))
        }
        #expect(take("a", after: 0) && !take("a", after: 0))
        // A period begins just before the login would be dropped.
        for (login, time) in [("b", 599), ("c", 601), ("d", 1_202)] {
            #expect(take(login, after: time))
        }
        #expect(!take("c", after: 1_203) && !take("d", after: 1_203))
        #expect(take("a", after: 1_203), "its time is long over")
    }

    // MARK: Lists that name Postern twice

    /// The refusal must name the cause of this loop.
    @Test func message_passedTwiceWithOneQueueID_namesTheCause() throws {
        let fixture = RelayMilterFixture()
        let handler = fixture.handler
        func pass(_ bytes: [UInt8], queueID: String) -> MessageOutcome {
            MilterTransaction().connect(daemonName: "smtp").helo("client.test").mail(
                "<b@app.example>"
            ).rcpt(Self.all[0]).message(
                bytes
            )
            .endOfMessage(macros: ["i": queueID]).run(handler).message
        }
        let first = pass(
            Array(
                "X-Test-Proved: app.example\r\nFrom: billing@app.example\r\nTo: annarelay2@relay.example\r\n\r\nx\r\n"
                    .utf8),
            queueID: "4Zq1")
        let passed = try #require(first.delivered).message
        let second = pass(passed, queueID: "4Zq1")
        #expect(
            second.final.status == "554 5.4.6"
                && second.final.parts?.text.contains("name Postern twice") == true)
        #expect(
            fixture.log.lines.last?.contains("setup postfix --apply") == true
                && fixture.log.lines.last?.hasPrefix("error") == true)
        // Another entry of the queue arrived by another way.
        let loop = pass(passed, queueID: "4Zq2")
        #expect(
            loop.final.status == "554 5.4.6"
                && loop.final.parts?.text.contains("has been here before") == true)
    }
}
