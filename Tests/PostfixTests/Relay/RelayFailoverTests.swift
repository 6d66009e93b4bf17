// A failover of PostgreSQL under mail, replies, decisions and changes: the primary is killed, and
// its synchronous standby becomes the primary.

import Foundation
import PostfixHarness
import PostgresHarness
import RelayHarness
import TestSupport
import Testing

@Suite(
    .blocking, needsPostfix,
    .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct RelayFailoverTests {
    @Test(
        "The primary is killed and the standby promoted: each accepted message arrives once, decisions are answered throughout, and acknowledged changes remain",
        .timeLimit(.minutes(20)))
    func hosts_primaryKilled_loseNothing() throws {
        let primary = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let standby = try PostgresServer(standbyOf: primary)
        // Not before the copy: the standby would wait for a standby of its own when it is promoted.
        try primary.psql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        try primary.psql("SELECT pg_reload_conf()")
        // The standby first: a program that used the first server that answers would use it.
        let url = try primary.url(schema: "relay").replacingOccurrences(
            of: "@\(primary.host)/", with: "@\(standby.host),\(primary.host)/")
        let hosts = try Hosts(
            url,
            settings: [
                "limits.messages_per_day": "1000000", "http.public_url": "https://relay.example",
            ])
        defer { hosts.stop() }
        let traffic = Traffic(hosts)
        let clients = try FailoverClients(hosts, traffic)
        let load = FailoverLoad()
        for lane in 0..<3 {
            load.begin { traffic.send("m\($0).\(lane)@juice.example", first: lane) }
        }
        load.begin { clients.reply($0) }
        for host in hosts.all.indices {
            load.begin { _ in clients.decide(host) }
            load.begin { clients.addUser("c\($0)-\(host)", host) }
        }
        let result = Result {
            func flow() throws {
                let before = clients.progress
                try wait("mail, replies, decisions and changes flow", atMost: 2 * standardTimeout) {
                    zip(clients.progress, before).allSatisfy { $0 >= $1 + 5 }
                }
            }
            try flow()
            let (deferred, failed) = (traffic.deferred.with { $0 }, clients.failed.with { $0 })
            primary.kill()
            try wait("mail is put off, and decisions continue", atMost: 2 * standardTimeout) {
                traffic.deferred.with { $0 } >= deferred + 3
                    && clients.failed.with { $0 } >= failed + 3
                    && clients.degraded.with { $0.allSatisfy { $0 >= 3 } }
            }
            try standby.promote()
            try flow()
        }
        load.end()
        if case .failure = result { print("failover, not finished: \(clients.summary)") }
        try result.get()
        for fixture in hosts.all {
            try fixture.postfix.waitUntilDone(seconds: 10 * standardTimeout)
        }
        traffic.check(
            expected: traffic.taken.with { $0 }, replies: FailoverClients.correspondent)
        clients.checkReplies()
        clients.checkDecisions()
        try clients.checkUsers()
        print("failover: \(traffic.summary); \(clients.summary)")
    }
}

/// Everything beside the forwards, with a record of what was acknowledged.
private final class FailoverClients: Sendable {
    static let correspondent = "news@juice.example"
    let failed = Watched(0)
    /// Decisions that a host made without the store, by host.
    let degraded: Watched<[Int]>
    private let hosts: Hosts
    private let traffic: Traffic
    private let ports: [UInt16]
    private let (key, operatorKey): (String, String)
    private let sub: String
    /// The address to which anna replies.
    private let reverse: String
    private let replies = Watched<[String]>([])
    private let users = Watched<[String]>([])
    /// Statuses of decisions; 0 for no answer.
    private let answers = Watched<[Int: Int]>([:])

    init(_ hosts: Hosts, _ traffic: Traffic) throws {
        (self.hosts, self.traffic) = (hosts, traffic)
        ports = try hosts.all.map { try $0.httpPort() }
        degraded = Watched(ports.map { _ in 0 })
        let first = hosts.first
        try first.run(["app", "add", "juice", "com.juice"])
        func key(_ arguments: [String]) throws -> String {
            let issued = try first.run(["api-key", "issue"] + arguments)
            return String(try #require(issued.firstMatch(of: /pk_[a-z0-9_]+/)).output)
        }
        self.key = try key(["juice", "--scope", "decisions:write"])
        operatorKey = try key(["--operator", "--scope", "users:write"])
        struct Account: Decodable { let sub: String }
        let accounts = try JSONDecoder().decode(
            [Account].self,
            from: Data(first.run(["account", "list", "--team", "juice", "--json"]).utf8))
        sub = try #require(accounts.first).sub
        reverse = try first.reverseAddress(of: Self.correspondent, for: hosts.address)
    }

    /// Counts that rise while everything works.
    var progress: [Int] {
        [
            traffic.taken.with { $0 }, replies.with { $0.count }, users.with { $0.count },
            answers.with { $0[200] ?? 0 } - degraded.with { $0.reduce(0, +) },
        ]
    }

    func reply(_ round: Int) {
        let subject = "Reply \(round)"
        let text =
            "From: anna@home.example\nTo: \(reverse)\nSubject: \(subject)\n"
            + "Message-ID: <r\(round)@home.example>\n\nThanks\n"
        let isTaken = traffic.deliver(
            "r\(round)@home.example", from: "anna@home.example", to: reverse, text, first: round)
        if isTaken { replies.with { $0.append(subject) } }
    }

    func decide(_ host: Int) {
        let answer = try? HTTPClient.post(
            port: ports[host], path: "/v1/decisions", bearer: key,
            body:
                #"{"event":"sign_in","client_id":"com.juice","sub":"\#(sub)"}"#,
            timeout: 20)
        answers.with { $0[answer?.status ?? 0, default: 0] += 1 }
        if answer?.body.contains(#""degraded":true"#) == true { degraded.with { $0[host] += 1 } }
        // Below the limit of requests a second of one key (429), which decisions without the store
        // would exceed.
        usleep(25_000)
    }

    /// A change that is acknowledged only when it is committed.
    func addUser(_ name: String, _ host: Int) {
        let answer = try? HTTPClient.post(
            port: ports[host], path: "/v1/users", bearer: operatorKey,
            body: #"{"user":"\#(name)","inbox":"\#(name)@home.example","is_verified":true}"#,
            timeout: 60)
        if answer?.status == 201 {
            users.with { $0.append(name) }
        } else {
            failed.with { $0 += 1 }
        }
    }

    func checkReplies() {
        let sent = replies.with { $0 }
        let arrived = hosts.arrived.filter { $0.recipients == ["<\(Self.correspondent)>"] }
        #expect(arrived.count == sent.count)
        #expect(Set(arrived.compactMap { $0.value("Subject") }) == Set(sent))
        #expect(arrived.allSatisfy { $0.address("From") == hosts.address })
    }

    func checkDecisions() {
        let answers = answers.with { $0 }
        #expect(Set(answers.keys) == [200], "answers by status: \(answers)")
    }

    func checkUsers() throws {
        let listed = try hosts.second.run(["user", "list"])
        let names = Set(
            listed.split { !($0.isLetter || $0.isNumber || $0 == "-") }.map(String.init))
        let lost = users.with { $0 }.filter { !names.contains($0) }
        #expect(lost.isEmpty, "acknowledged and not there: \(lost)")
    }

    var summary: String {
        "\(replies.with { $0.count }) replies, \(users.with { $0.count }) users added, "
            + "\(failed.with { $0 }) attempts failed, decisions by status "
            + "\(answers.with { $0 }), \(degraded.with { $0.reduce(0, +) }) of them degraded"
    }
}

/// Threads that repeat an action until the end.
private final class FailoverLoad: Sendable {
    private let isOver = Watched(false)
    private let group = DispatchGroup()

    func begin(_ body: @escaping @Sendable (_ round: Int) -> Void) {
        group.enter()
        Thread.detachNewThread { [self] in
            var round = 0
            while !isOver.with({ $0 }) {
                body(round)
                round += 1
            }
            group.leave()
        }
    }

    /// Waits for the last round of each.
    func end() {
        isOver.with { $0 = true }
        #expect(group.wait(timeout: .now() + 10 * standardTimeout) == .success)
    }
}
