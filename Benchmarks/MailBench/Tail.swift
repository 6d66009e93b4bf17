// How long the sender of a message waits for its answer while decisions are made: at 70 % of the
// maximum rate.

import BenchReport
import BenchStores
import Foundation
import PostfixHarness
import PostgresHarness
import RelayHarness

struct Tail {
    /// Decisions a second, in addition to the mail.
    static let decisions = 500.0
    static let clientID = "com.bench.mail"

    let world: MailFixture
    private let server: PostgresServer?
    let decisions: LoadTarget
    let messages: Int
    let sessions: Int

    /// An installation that also makes decisions.
    /// - Parameter accounts: other accounts in the store.
    init(_ engine: Engine, messages: Int, size: Int, sessions: Int, accounts: Int) throws {
        let port = try FreePort.next()
        server =
            engine == .sqlite
            ? nil
            : try PostgresServer.installed.map {
                try PostgresServer(
                    binaries: $0, settings: ["shared_buffers=2GB", "max_wal_size=8GB"])
            }
        world = try MailFixture(
            [.noop, .forward, .reply], size: size, sessions: 200,
            settings: ["http.listen": "127.0.0.1:\(port)", "http.requests_per_second": "100000"],
            server: server, accounts: accounts)
        (self.messages, self.sessions) = (messages, sessions)
        let fixture = world.fixture
        try fixture.run(["app", "add", "app", Self.clientID])
        decisions = LoadTarget(
            address: "127.0.0.1:\(port)", key: try Self.key(fixture),
            body: try Self.question(fixture), accounts: 1)
    }

    func end() {
        world.stop()
        server?.remove()
    }

    /// A key that may request decisions.
    static func key(_ fixture: RelayFixture) throws -> String {
        let output = try fixture.run(["api-key", "issue", "app", "--scope", "decisions:write"])
        guard
            let key = output.split(whereSeparator: \.isWhitespace).first(where: {
                $0.hasPrefix("pk_")
            })
        else {
            throw BenchFailure("no key was issued")
        }
        return String(key)
    }

    /// A decision request about anna.
    static func question(_ fixture: RelayFixture) throws -> String {
        let account = try JSONSerialization.jsonObject(
            with: Data(fixture.run(["account", "show", "app", "anna", "--json"]).utf8))
        guard let sub = (account as? [String: Any])?["sub"] as? String else {
            throw BenchFailure("no account")
        }
        return #"{"event":"sign_in","client_id":"\#(clientID)","sub":"\#(sub)"}"#
    }

    /// The results for a filter.
    struct Figures {
        /// The maximum of messages a second.
        let most: Double
        /// At 70 % of that, round by round.
        let mail: [Latencies]
        let decisions: Latencies
    }

    private static let rounds = 3

    /// - Parameters:
    ///   - verp: whether each message has its own envelope sender.
    ///   - most: the assumed maximum of messages a second; nil to measure it.
    func measure(_ contestant: FilterUnderTest, verp: Bool, most: Double? = nil) throws -> Figures {
        _ = try source(contestant, verp: verp, messages: min(messages, 200)).run()
        let most =
            try most ?? Double(messages)
            / source(contestant, verp: verp, messages: messages).run().seconds
        try world.waitUntilDelivered()
        let seconds = Int((Double(messages) / most / 0.7).rounded(.up))
        let target = decisions
        let beside = Watched<Result<MeasuredLoad, any Error>?>(nil)
        Thread.detachNewThread {
            let load = Result {
                try target.run("/v1/decisions", seconds: seconds, rate: Self.decisions)
            }
            beside.with { $0 = load }
        }
        var calm = source(contestant, verp: verp, messages: messages / Self.rounds)
        calm.rate = 0.7 * most
        let mail = try (0..<Self.rounds).map { _ in try calm.run().latencies }
        guard let load = try beside.wait(seconds: 120, for: { $0 })?.get() else {
            throw BenchFailure("http-load hangs")
        }
        guard load.result.failures == 0 else {
            throw BenchFailure("decisions failed: \(load.line)")
        }
        try world.waitUntilDelivered()
        return Figures(most: most, mail: mail, decisions: load.result.latencies)
    }

    private func source(_ contestant: FilterUnderTest, verp: Bool, messages: Int) -> Source {
        let fixed = world.sender(contestant)
        return Source(
            port: world.port(contestant), sessions: sessions, messages: messages,
            recipients: [world.recipient(contestant)],
            sender: {
                verp
                    ? "bounce+\($0)-\(UInt32.random(in: 0 ... .max))-of-the-list-of-customers@app.example"
                    : fixed
            },
            message: world.message(contestant))
    }
}
