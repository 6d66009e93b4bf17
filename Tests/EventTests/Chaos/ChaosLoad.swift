// The load on the hosts: switches of forwarding, decisions and commands; and the records of what
// was acknowledged.

import Foundation
import PostfixHarness
import SignIn
import Testing

/// Switches forwarding, and records the acknowledged switches.
final class Changes: Sendable {
    static let users = 12
    private let hosts: EventHosts
    private let pause: UInt32
    /// The successive states of each user's forwarding; only one thread changes a user.
    private let known = Watched<[Int: [Bool]]>([:])
    private let failed = Watched(0)

    /// - Parameter pause: microseconds after each switch.
    init(_ hosts: EventHosts, pause: UInt32 = 0) {
        self.hosts = hosts
        self.pause = pause
    }

    var count: Int { known.with { $0.values.reduce(0) { $0 + $1.count } } }
    var failures: Int { failed.with { $0 } }

    func change(user: Int) {
        let was = known.with { $0[user]?.last } ?? true
        do {
            try hosts.toggle(user, on: !was)
            note(user, !was)
        } catch {
            // The switch was not acknowledged. Its result is visible later.
            failed.with { $0 += 1 }
            let end = Date(timeIntervalSinceNow: standardTimeout)
            while Date() < end {
                if let isOn = try? hosts.isForwarding(user) {
                    if isOn != was { note(user, isOn) }
                    return
                }
                usleep(50_000)
            }
            Issue.record("the store did not come back: \(error)")
        }
        usleep(pause)
    }

    private func note(_ user: Int, _ isOn: Bool) {
        known.with { $0[user, default: []].append(isOn) }
    }

    func check(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let events = Dictionary(
            grouping: try hosts.store.outbox.events(limit: 1_000_000).reversed(),
            by: \.accountNumber)
        #expect(count > 0, sourceLocation: sourceLocation)
        for (user, states) in known.with({ $0 }) {
            let written = events[try hosts.account(user)]?.map(\.type) ?? []
            #expect(
                written == states.map { $0 ? .emailEnabled : .emailDisabled }, "user \(user)",
                sourceLocation: sourceLocation)
            #expect(
                try hosts.isForwarding(user) == states.last, "user \(user)",
                sourceLocation: sourceLocation)
        }
    }

    var summary: String { "\(count) changes, \(failures) attempts failed" }
}

/// Requests decisions about the same nonce from all hosts at once, or from one host twice.
final class Asker: Sendable {
    private let hosts: EventHosts
    private let key: String
    private let signing: IdentitySigningKey
    private struct Counts {
        var ids: [Int: Set<String>] = [:]
        var answers: [Int: Int] = [:]
    }
    private let counts = Watched(Counts())
    /// Whether any request got its answer from the store.
    var hasDecided: Bool { !counts.with(\.ids).isEmpty }

    init(_ hosts: EventHosts) throws {
        self.hosts = hosts
        (signing, _) = try IdentitySigningKey.generate()
        let keys = hosts.data + "/issuer.json"
        try Data(PublishedKeys.document([signing.publicJWK])).write(to: URL(fileURLWithPath: keys))
        let added = try hosts.run([
            "issuer", "add", "other", "--iss", "https://issuer.example", "--jwks-inline", keys,
        ])
        try #require(added.status == 0, "\(added.output)")
        key = try hosts.key("juice", "--scope", "decisions:write")
    }

    func ask(nonce: Int, ports: [UInt16]) {
        // Valid also for hosts with clocks that are off by an hour.
        let now = Int64(Date().timeIntervalSince1970)
        guard
            let token = try? signing.sign([
                "iss": "https://issuer.example", "aud": "com.juice", "sub": .string("s\(nonce)"),
                "iat": .integer(now - 7_200),
                "exp": .integer(now + 7_200), "nonce": .string("n\(nonce)"),
            ])
        else { return }
        let body =
            #"{"event":"sign_up","client_id":"com.juice","identity_token":"\#(token)","nonce":"n\#(nonce)"}"#
        let group = DispatchGroup()
        for port in ports.count == 1 ? ports + ports : ports {
            group.enter()
            Thread.detachNewThread { [self] in
                let answer = try? HTTPClient.post(
                    port: port, path: "/v1/decisions", bearer: key, body: body, timeout: 5)
                let parts = answer?.body.components(separatedBy: "\"decision_id\":\"") ?? []
                let id = parts.count == 2 ? parts[1].components(separatedBy: "\"").first : nil
                // An answer without the store is not a decision about a nonce, and is marked as
                // degraded.
                let isDegraded = answer?.body.contains("\"degraded\":true") == true
                counts.with { counts in
                    counts.answers[answer?.status ?? 0, default: 0] += 1
                    if answer?.status == 200, !isDegraded, let id {
                        counts.ids[nonce, default: []].insert(id)
                    }
                }
                group.leave()
            }
        }
        group.wait()
        usleep(50_000)
    }

    func check() {
        let ids = counts.with { $0.ids }
        #expect(!ids.isEmpty)
        for (nonce, ids) in ids {
            #expect(ids.count == 1, "nonce \(nonce) has \(ids.count) decisions")
        }
    }

    var summary: String {
        let counts = counts.with { $0 }
        return "\(counts.ids.count) nonces decided, answers "
            + counts.answers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(
                separator: ", ")
    }
}

/// An operator's commands in sequence: displays, key rotations, changes of policies, backups.
final class ChaosCommands: Sendable {
    private let hosts: EventHosts
    private let all: [[String]]
    private let backups: String?
    private let statuses = Watched<[String: [Int32: Int]]>([:])

    /// - Parameters:
    ///   - backsUp: whether `postern store backup` can copy the store.
    ///   - wait: seconds that a rotation waits for the hosts.
    init(_ hosts: EventHosts, backsUp: Bool, wait: Int) throws {
        self.hosts = hosts
        let policy = try hosts.newFolder("policies") + "/mine"
        let exported = try hosts.run(["policy", "show", "--export", policy])
        try #require(exported.status == 0, "\(exported.output)")
        for (name, old, new) in [
            ("policy.yaml", "account.age_hours < 72 &&", "account.age_hours < 48 &&"),
            ("tests.yaml", "account.age_hours: 71", "account.age_hours: 47"),
        ] {
            let text = try String(contentsOfFile: "\(policy)/\(name)", encoding: .utf8)
            try #require(text.contains(old))
            try Data(text.replacingOccurrences(of: old, with: new).utf8).write(
                to: URL(fileURLWithPath: "\(policy)/\(name)"))
        }
        backups = backsUp ? try hosts.newFolder("backups") : nil
        all =
            [
                ["status"], ["policy", "activate", policy], ["event", "retry", "--team", "juice"],
                ["keys", "file", "rotate", "--wait", "\(wait)"], ["event", "list"],
                ["keys", "signing", "rotate"],
                ["team", "list"],
                ["policy", "rollback"], ["account", "list", "--team", "juice"],
            ] + (backsUp ? [["store", "backup"]] : [])
    }

    func run(_ round: Int) {
        var command = all[round % all.count]
        let name = command.prefix(2).joined(separator: " ")
        let copy = backups.map { "\($0)/\(round).db" }
        if command == ["store", "backup"], let copy { command.append(copy) }
        let status = try? hosts.run(command).status
        if command.starts(with: ["store", "backup"]), let copy {
            try? FileManager.default.removeItem(atPath: copy)
        }
        statuses.with { $0[name, default: [:]][status ?? -1, default: 0] += 1 }
        usleep(200_000)
    }

    /// They may fail with a reason. None may hang, crash, or be unknown (EX_USAGE).
    func check() {
        for (name, statuses) in statuses.with({ $0 }) {
            #expect(
                statuses.keys.allSatisfy { (0..<128).contains($0) && $0 != 64 },
                "\(name): \(statuses)")
        }
    }

    /// The commands, with the count of each exit status.
    var summary: String {
        let texts = statuses.with { $0 }.sorted { $0.key < $1.key }.map { name, statuses in
            let counts = statuses.sorted { $0.key < $1.key }.map {
                $0.key == 0 ? "\($0.value)" : "\($0.value) with \($0.key)"
            }
            return "\(name) \(counts.joined(separator: " + "))"
        }
        return "commands: " + texts.joined(separator: ", ")
    }
}
