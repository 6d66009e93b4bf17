// The measured installation: team, user, keys, a Postfix with a port for each filter, and messages
// signed once.

import BenchStores
import DNSClient
import Foundation
import InternetMessage
import MailAuth
import MailCrypto
import PosternConfiguration
import PostfixHarness
import PostgresHarness
import RelayHarness

/// A kind of filter, and the way of mail to it.
enum FilterUnderTest: String, CaseIterable {
    case bare, noop, fixed, forward, reply, opendkim

    /// Its description in the table.
    var explanation: String {
        switch self {
        case .bare: "Postfix without a filter"
        case .noop: "a libmilter filter that does nothing"
        case .fixed: "the same edits as Postern's with fixed strings, and one RSA-2048 signature"
        case .forward: "Postern forwarding: SPF, DKIM verification, rewriting, RSA-2048 signature"
        case .reply: "Postern relaying a reply: the same, and the body rewritten"
        case .opendkim: "OpenDKIM verifying, then OpenDKIM signing"
        }
    }
}

/// Everything that runs.
final class MailFixture {
    static let inbox = "anna@home.example"
    static let author = "billing@app.example"

    let fixture: RelayFixture
    let relayAddress: String
    let reverseAddress: String
    /// Lines ended by CRLF.
    let teamMessage: [UInt8]
    let userMessage: [UInt8]
    /// Proved only by SPF, so that its body may change.
    let unsignedMessage: [UInt8]
    private let sinkPort: UInt16
    private var sink: ManagedProcess?
    private var filters: [FilterUnderTest: [ManagedProcess]] = [:]
    private let services: [FilterUnderTest]
    /// The folder of the filters' sockets: unix sockets, as for Postern.
    private let sockets: String

    /// - Parameters:
    ///   - size: octets of a message.
    ///   - settings: more configuration keys of Postern.
    ///   - fansOut: whether a message to several users is fanned out.
    ///   - server: the server with the store's database; nil for SQLite.
    ///   - accounts: other accounts in the store, in addition to the recipient's.
    init(
        _ contestants: [FilterUnderTest], size: Int, sessions: Int,
        settings: [String: String] = [:], fansOut: Bool = false,
        server: PostgresServer? = nil, accounts: Int = 0
    ) throws {
        let keys = (
            team: try RSAPrivateKey.generate(), user: try RSAPrivateKey.generate(),
            other: try RSAPrivateKey.generate()
        )
        let records = try [("app.example", keys.team), ("home.example", keys.user)].map {
            domain, key in
            try DKIMKeyPublication(domain: domain, selector: "s1", key: .rsa(key))
        }
        services = contestants.filter { ![.forward, .reply].contains($0) }
        let sockets =
            NSTemporaryDirectory() + "postern-bench-" + UUID().uuidString.prefix(8).lowercased()
        try FileManager.default.createDirectory(
            atPath: sockets, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o755])
        self.sockets = sockets
        sinkPort = try FreePort.next()

        var options = RelayFixture.Options()
        let spf = #""TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]"#
        let names =
            records.map { #""\#($0.name)": {"TXT": ["\#($0.text)"]}"# }
            + ["app", "home"].map { #""\#($0).example": {\#(spf)}"# }
        options.zone = "{\(names.joined(separator: ", "))}"
        options.settings = ["limits.messages_per_day": "1000000"].merging(settings) { $1 }
        options.trustsLoopback = true
        options.fansOut = fansOut
        options.postfix = [
            "transport_maps": "inline:{ { * = smtp:[127.0.0.1]:\(sinkPort) } }",
            "default_process_limit": "\(sessions + 200)",
            "smtpd_client_connection_count_limit": "0",
        ]
        options.services = services.map { contestant in
            let milters = Self.milters(contestant, sockets).joined(separator: ",")
            return "127.0.0.1:{port} inet n - n - - smtpd -o smtpd_milters=\(milters)"
        }
        options.database = try server?.url(schema: "relay")
        fixture = try RelayFixture(options)
        if accounts > 0 {
            let now = Int64(Date().timeIntervalSince1970)
            let installation = try Installation.open(
                flag: fixture.configuration, environment: [:],
                set: fixture.settings.filter { $0 != "--set" }, now: now)
            try Seeding.fill(
                installation.store, server == nil ? .sqlite : .postgres, count: accounts, now: now)
            try installation.store.database.close()
        }
        try fixture.addTeam("app", name: "App", source: "app.example")
        try fixture.addUser("anna", inboxes: [Self.inbox])
        relayAddress = try fixture.address("app", "anna")
        reverseAddress = try fixture.reverseAddress(of: Self.author, for: relayAddress)
        teamMessage = try Self.signed(
            Self.fields(from: "Billing <\(Self.author)>", to: relayAddress), size: size,
            domain: "app.example", key: keys.team)
        unsignedMessage =
            HeaderSection(
                Self.fields(from: "Billing <\(Self.author)>", to: relayAddress).map {
                    HeaderField($0.0, $0.1)
                }
            )
            .serialized + [0x0D, 0x0A]
        userMessage = try Self.signed(
            Self.fields(from: "Anna Berg <\(Self.inbox)>", to: reverseAddress), size: size,
            domain: "home.example", key: keys.user
        )

        try Data(keys.other.pem().utf8).write(
            to: URL(fileURLWithPath: fixture.folder + "/other.pem"))
        try Data(keys.team.pem().utf8).write(to: URL(fileURLWithPath: fixture.folder + "/team.pem"))
        try Data(records.map { "\($0.name) \($0.text)\n" }.joined().utf8).write(
            to: URL(fileURLWithPath: fixture.folder + "/keys.txt"))
        sink = try ManagedProcess(
            "/usr/sbin/smtp-sink", ["-u", "postfix", "127.0.0.1:\(sinkPort)", "1024"])
        for contestant in services { try start(contestant) }
    }

    deinit { stop() }

    func stop() {
        for process in filters.values.joined() { process.end() }
        filters = [:]
        fixture.stop()
        sink?.end()
        sink = nil
        try? FileManager.default.removeItem(atPath: sockets)
    }

    private static func milters(_ contestant: FilterUnderTest, _ sockets: String) -> [String] {
        switch contestant {
        case .noop, .fixed: ["unix:\(sockets)/\(contestant.rawValue)"]
        case .opendkim: ["unix:\(sockets)/verify", "unix:\(sockets)/sign"]
        default: []
        }
    }

    private func start(_ contestant: FilterUnderTest) throws {
        switch contestant {
        case .noop, .fixed:
            var arguments = ["unix:\(sockets)/\(contestant.rawValue)"]
            if contestant == .fixed {
                let edits = fixture.folder + "/edits"
                try Data(FixedEdits.make(self)).write(to: URL(fileURLWithPath: edits))
                arguments += [edits, fixture.folder + "/other.pem"]
            }
            let process = try ManagedProcess(
                try ManagedProcess.builtProduct("bench-filter"), arguments)
            try process.waitForLine(containing: "serving")
            filters[contestant] = [process]
        case .opendkim:
            // One process either verifies a message or signs it, so two run one after the other.
            // The keys come from a file, without DNS.
            let common =
                "Syslog no\nUMask 000\nTestPublicKeys \(fixture.folder)/keys.txt\nCanonicalization relaxed/relaxed\n"
            let configurations = [
                "verify": "Mode v\nInternalHosts 192.0.2.1\nExternalIgnoreList 127.0.0.1\n",
                "sign":
                    "Mode s\nInternalHosts 127.0.0.1\nDomain app.example\nSelector s1\nKeyFile \(fixture.folder)/team.pem\nRequireSafeKeys no\n",
            ]
            filters[contestant] = try configurations.map { name, text in
                let path = fixture.folder + "/opendkim-\(name).conf"
                try Data((common + text + "Socket local:\(sockets)/\(name)\n").utf8).write(
                    to: URL(fileURLWithPath: path))
                return try ManagedProcess("/usr/sbin/opendkim", ["-f", "-x", path])
            }
            for name in configurations.keys {
                for _ in 0..<600 where !FileManager.default.fileExists(atPath: "\(sockets)/\(name)")
                { usleep(100_000) }
            }
        default: break
        }
    }

    /// The processes of a filter.
    func processes(_ contestant: FilterUnderTest) throws -> [ManagedProcess] {
        switch contestant {
        case .forward, .reply: [try fixture.process]
        default: filters[contestant] ?? []
        }
    }

    /// The port for mail to a filter.
    func port(_ contestant: FilterUnderTest) -> UInt16 {
        services.firstIndex(of: contestant).map { fixture.postfix.ports[$0] }
            ?? fixture.postfix.port
    }

    func recipient(_ contestant: FilterUnderTest) -> String {
        switch contestant {
        case .forward, .fixed: relayAddress
        case .reply: reverseAddress
        default: Self.inbox
        }
    }

    func sender(_ contestant: FilterUnderTest) -> String {
        contestant == .reply ? Self.inbox : "bounce@app.example"
    }

    func message(_ contestant: FilterUnderTest) -> [UInt8] {
        contestant == .reply ? userMessage : teamMessage
    }

    /// More users of the team, at most 676, and their relay addresses.
    func addUsers(_ count: Int) throws -> [String] {
        let letters = Array("abcdefghijklmnopqrstuvwxyz")
        let addresses = (0..<count).map {
            "fanout\(letters[$0 / 26])\(letters[$0 % 26])xx@relay.example"
        }
        let rows = addresses.enumerated().map {
            "user\($0.offset),user\($0.offset)@home.example,true,app,\($0.element)\n"
        }
        let file = fixture.folder + "/users.csv"
        try Data(("user,inbox,verified,team,address\n" + rows.joined()).utf8).write(
            to: URL(fileURLWithPath: file))
        try fixture.run(["import", file, "--trust-verified"])
        return addresses
    }

    /// Waits until Postfix has delivered everything.
    func waitUntilDelivered() throws {
        let queue = fixture.postfix.directory + "/queue/"
        let deadline = Clock.wall() + 600
        while Clock.wall() < deadline {
            if try ["incoming", "active", "maildrop"].allSatisfy({
                try FileManager.default.contentsOfDirectory(atPath: queue + $0).isEmpty
            }) {
                return
            }
            usleep(20_000)
        }
        throw HarnessError("messages stay in the queue:\n\(fixture.postfix.logTail)")
    }

    // MARK: Messages

    private static func fields(from author: String, to recipient: String) -> [(String, String)] {
        [
            ("From", author), ("To", recipient), ("Subject", "Your receipt of this month"),
            ("Date", "Sat, 21 Nov 2026 12:00:00 +0000"),
            ("Message-ID", "<20261121120000.4711@app.example>"), ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Transfer-Encoding", "7bit"),
            ("List-Unsubscribe", "<https://app.example/u/4711>"),
            ("X-Mailer", "Bench 1.0"),
        ]
    }

    private static func signed(
        _ fields: [(String, String)], size: Int, domain: String, key: RSAPrivateKey
    ) throws -> [UInt8] {
        var header = HeaderSection(fields.map { HeaderField($0.0, $0.1) })
        let line = Array(
            "Thank you for your order; the parcel left our house today and is on its way.\r\n".utf8)
        var body: [UInt8] = []
        let room = max(0, size - header.serialized.count - 800)
        while body.count < room { body += line }
        let hasher = DKIMBodyHasher()
        hasher.update(body: body)
        let signer = try DKIMSigner(domain: domain, selector: "s1", key: .rsa(key))
        header.fields.insert(
            try signer.sign(
                header: header, bodyHash: hasher.finish(), now: Int64(Date().timeIntervalSince1970)),
            at: 0)
        return header.serialized + [0x0D, 0x0A] + body
    }
}
