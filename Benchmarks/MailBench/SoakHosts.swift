// Two hosts on one PostgreSQL with a team, its app and a receiver of its events, under the load of
// a soak test.

import BenchReport
import Foundation
import InternetMessage
import PostfixHarness
import PostgresHarness
import RelayHarness

/// Ends with `stop`.
final class SoakHosts {
    /// A host, and its load.
    struct Host {
        let fixture: RelayFixture
        let decisions: LoadTarget
    }

    static let inbox = "anna@home.example"
    static let author = "billing@app.example"

    let server: PostgresServer
    private(set) var hosts: [Host] = []
    let relayAddress: String
    private(set) var reverseAddress = ""
    private let sink: ManagedProcess
    private let receiver: ManagedProcess
    private let folder: String

    init() throws {
        guard let binaries = PostgresServer.installed else {
            throw BenchFailure("PostgreSQL is not installed")
        }
        server = try PostgresServer(
            binaries: binaries, settings: ["shared_buffers=512MB", "max_wal_size=2GB"])
        folder = NSTemporaryDirectory() + "postern-soak-" + UUID().uuidString.prefix(8).lowercased()
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o755])
        let (sinkPort, receiverPort) = (try FreePort.next(), try FreePort.next())
        sink = try ManagedProcess(
            "/usr/sbin/smtp-sink", ["-u", "postfix", "127.0.0.1:\(sinkPort)", "1024"])
        receiver = try ManagedProcess("/usr/bin/python3", ["-c", Self.receiver, "\(receiverPort)"])
        try receiver.waitForLine(containing: "serving")
        let spf = #"{"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]}"#
        var options = RelayFixture.Options()
        options.zone =
            #"{"app.example": \#(spf), "home.example": \#(spf), "hooks.example": {"A": ["127.0.0.1"]}}"#
        options.database = try server.url(schema: "relay")
        options.trustsLoopback = true
        options.postfix = ["transport_maps": "inline:{ { * = smtp:[127.0.0.1]:\(sinkPort) } }"]
        let ports = try (0..<2).map { _ in try FreePort.next() }
        var fixtures: [RelayFixture] = []
        for port in ports {
            options.settings = [
                "limits.messages_per_day": "1000000", "http.listen": "127.0.0.1:\(port)",
                "http.requests_per_second": "100000",
                "http.public_url": "https://relay.example",
            ]
            options.joins = fixtures.first
            fixtures.append(try RelayFixture(options))
        }
        let first = fixtures[0]
        try first.addTeam("app", name: "App", source: "app.example")
        try first.run(["app", "add", "app", Tail.clientID])
        try first.addUser("anna", inboxes: [Self.inbox])
        relayAddress = try first.address("app", "anna")
        try first.run(["keys", "signing", "generate"])
        try first.run([
            "endpoint", "set", "app", "http://hooks.example:\(receiverPort)/", "--allow-http",
            "--allow-private",
        ])
        reverseAddress = try first.reverseAddress(of: Self.author, for: relayAddress)
        let key = try Tail.key(first)
        let body = try Tail.question(first)
        hosts = zip(fixtures, ports).map { fixture, port in
            Host(
                fixture: fixture,
                decisions: LoadTarget(
                    address: "127.0.0.1:\(port)", key: key, body: body, accounts: 1))
        }
    }

    /// Takes any POST.
    private static let receiver = """
        import http.server, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()
            def log_message(self, *arguments): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
        print("serving", flush=True)
        server.serve_forever()
        """

    func stop() {
        for host in hosts.reversed() { host.fixture.stop() }
        sink.end()
        receiver.end()
        server.remove()
        try? FileManager.default.removeItem(atPath: folder)
    }

    // MARK: Changes

    /// Makes new keys for sealed data, as an operator does while both hosts serve.
    func rotateKeys() throws {
        let (first, second) = (hosts[0].fixture, hosts[1].fixture)
        let ended = Watched<Result<String, any Error>?>(nil)
        Thread.detachNewThread {
            let output = Result { try first.run(["keys", "file", "rotate", "--wait", "100"]) }
            ended.with { $0 = output }
        }
        while ended.with({ $0 == nil }) {
            try second.copyKeys(from: first)
            usleep(500_000)
        }
        _ = try ended.with { $0 }?.get()
        try second.copyKeys(from: first)
    }

    /// New users come, and those of the round before are deleted; one switches mail off and on.
    /// Each is an event, or several.
    func changePeople(_ round: Int, count: Int) throws {
        let fixture = hosts[round % 2].fixture
        let file = folder + "/users.csv"
        let rows = (0..<count).map { "r\(round)-\($0),r\(round)-\($0)@home.example,true,app\n" }
        try Data(("user,inbox,verified,team\n" + rows.joined()).utf8).write(
            to: URL(fileURLWithPath: file))
        try fixture.run(["import", file, "--trust-verified"])
        if round > 0 {
            for number in 0..<count {
                try fixture.run(["user", "remove", "r\(round - 1)-\(number)", "--yes"])
            }
        }
        let address = try fixture.run(["address", "issue", "app", "r\(round)-0"])
            .trimmingCharacters(in: .whitespacesAndNewlines)
        for word in ["off", "on"] { try fixture.run(["address", word, address]) }
    }

    /// - Parameter isReply: from the user; otherwise from the team.
    func source(_ host: Int, isReply: Bool, messages: Int, rate: Double) -> Source {
        let (author, recipient) =
            isReply ? (Self.inbox, reverseAddress) : (Self.author, relayAddress)
        let header = HeaderSection(
            [
                ("From", author), ("To", recipient), ("Subject", "Your receipt"),
                ("Date", "Sat, 21 Nov 2026 12:00:00 +0000"),
                ("Message-ID", "<4711@\(isReply ? "home" : "app").example>"),
            ].map { HeaderField($0.0, $0.1) })
        var source = Source(
            port: hosts[host].fixture.postfix.port, sessions: 20, messages: messages,
            recipients: [recipient],
            sender: {
                // A tenth of the senders does not fit into a return path.
                isReply
                    ? Self.inbox
                    : $0 % 10 == 0
                        ? "bounce+\($0)-of-the-list-of-everybody-who-ever-bought-something@app.example"
                        : Self.author
            }, message: header.serialized + Array("\r\nThank you.\r\n".utf8))
        source.rate = rate
        // Every sender must expect deferrals; a goal limits their number.
        source.deferrals = ["4"]
        return source
    }

    /// Octets of the database, and events that wait.
    func stored() throws -> (megabytes: Double, events: Int) {
        func number(_ sql: String) throws -> Double {
            Double(
                try server.psql("SET search_path TO relay; " + sql).split(
                    whereSeparator: \.isNewline
                ).last ?? "") ?? -1
        }
        return (
            try number("SELECT pg_database_size(current_database())") / 1e6,
            Int(try number("SELECT COUNT(*) FROM outbox WHERE state = 'pending'"))
        )
    }
}
