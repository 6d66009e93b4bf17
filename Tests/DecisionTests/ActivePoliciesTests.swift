// The policies in force on a host: the policy for each team and app, and the behaviour when a newer
// one does not load.

import Accounts
import Database
import Decisions
import Foundation
import Logging
import MailCrypto
import PosternSQLite
import RiskPolicy
import StoreTesting
import Synchronization
import TestSupport
import Testing

/// A store in its own folder, with one team and one app.
final class PolicyTestStore: Sendable {
    static let now: Int64 = 1_790_000_000
    static let change = Change(actor: "uid:0", now: now)
    let folder: URL
    let database: any Database
    let store: Store

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-policies-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        database = try MigratedStore.sqlite(
            at: folder.appendingPathComponent("postern.db").path, busyTimeout: 0.05)
        let keys = try #require(KeyRing(random: (0..<96).map { UInt8(truncatingIfNeeded: $0) }))
        store = Store(database: database, keys: keys, relayDomains: ["relay.example"])
        _ = try store.teams.add(id: "juice", name: "Juice", Self.change)
        _ = try store.apps.add(
            team: "juice", clientID: "com.example.juice", group: nil, Self.change)
    }

    deinit {
        try? database.close()
        try? FileManager.default.removeItem(at: folder)
    }

    var policies: PolicyRepository { store.policies }

    func active(host: String = "mx1", log: LogRecorder = LogRecorder()) -> ActivePolicies {
        ActivePolicies(policies, host: host, now: Self.now, logger: log.logger)
    }

    /// Activates a small policy without any check, as another version of the program might.
    @discardableResult
    func activate(
        _ name: String, _ version: String, reach: PolicyRepository.Reach = .automatic,
        condition: String = "account.age_hours < 72"
    ) throws -> String {
        let text = """
            policy: \(name)
            version: "\(version)"
            challenges: [{kind: human_check}]
            defaults: {challenge: human_check}
            signals: {event: string, account.age_hours: int?}
            rules:
            - {id: r, effect: require, events: [sign_in], challenge: human_check, reason: R, condition: '\(condition)'}
            """
        let document = PolicyDocument(files: ["policy.yaml": text + "\n"])
        let stored = StoredPolicy(name: name, version: version, document: document.octets)
        _ = try policies.activate(stored, reach: reach, Self.change)
        return stored.hash
    }
}

@Suite(.blocking) struct ActivePoliciesTests {
    private let now = PolicyTestStore.now

    @Test func builtInPolicy_newStore_isInstalledOnceAndDecides() throws {
        let test = try PolicyTestStore()
        #expect(try ActivePolicies.installBuiltIn(test.policies, PolicyTestStore.change))
        #expect(try !ActivePolicies.installBuiltIn(test.policies, PolicyTestStore.change))
        let active = test.active()
        let policy = try #require(active.policy(team: 1, app: "com.example.juice"))
        #expect(
            policy.name == "risk-default" && policy.hash.hasPrefix("sha256:")
                && policy.hash.utf8.count == 71)
        #expect(active.health.isHealthy)
        #expect(active.health.serving.map(\.hash) == [policy.hash])
        // The document is the folder's own text.
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../policy/rules/default/policy.yaml")
        let document = try #require(
            PolicyDocument(octets: try test.policies.policy(hash: policy.hash).document))
        #expect(document.files["policy.yaml"] == (try String(contentsOf: file, encoding: .utf8)))
        #expect(document.files.keys.sorted() == ["policy.yaml", "tests.yaml"])
    }

    @Test func activePolicies_storeWithoutPolicy_areEmpty() throws {
        let test = try PolicyTestStore()
        let active = test.active()
        #expect(active.policy(team: 1, app: nil) == nil)
        #expect(!active.health.isHealthy)
        try test.activate("a", "1")
        active.refresh(now: now)
        #expect(active.policy(team: 1, app: nil)?.name == "a")
        #expect(active.health.isHealthy)
    }

    @Test func activePolicies_appAndTeamBound_preferAppThenTeam() throws {
        let test = try PolicyTestStore()
        try test.activate("rest", "1")
        try test.activate("teams", "1", reach: .bound)
        try test.activate("apps", "1", reach: .bound)
        try test.policies.bind(.team("juice"), to: "teams", PolicyTestStore.change)
        try test.policies.bind(.app("com.example.juice"), to: "apps", PolicyTestStore.change)
        let active = test.active()
        #expect(active.policy(team: 1, app: "com.example.juice")?.name == "apps")
        #expect(active.policy(team: 1, app: "com.example.other")?.name == "teams")
        #expect(active.policy(team: 2, app: nil)?.name == "rest")
        try test.policies.unbind(.app("com.example.juice"), PolicyTestStore.change)
        active.refresh(now: now)
        #expect(active.policy(team: 1, app: "com.example.juice")?.name == "teams")
    }

    @Test func activePolicies_changedByAnotherProcess_followOnRefresh() throws {
        let test = try PolicyTestStore()
        let first = try test.activate("a", "1")
        let active = test.active()
        let second = try test.activate("a", "2")
        #expect(active.policy(team: 1, app: nil)?.hash == first)
        active.refresh(now: now)
        #expect(active.policy(team: 1, app: nil)?.hash == second)
        _ = try test.policies.rollback(nil, PolicyTestStore.change)
        active.refresh(now: now)
        #expect(active.policy(team: 1, app: nil)?.hash == first)
    }

    @Test func activePolicies_newPolicyDoesNotLoad_keepLastGood() throws {
        let test = try PolicyTestStore()
        let good = try test.activate("a", "1")
        let log = LogRecorder()
        let active = test.active(log: log)
        let bad = try test.activate("a", "2", condition: "account.age_hour < 72")
        active.refresh(now: now)
        active.refresh(now: now + 2)
        #expect(active.policy(team: 1, app: nil)?.hash == good)
        #expect(
            active.health.problems.count == 1
                && active.health.problems[0].contains(StoredPolicy.short(bad)))
        let errors = log.lines.filter { $0.hasPrefix("error") }
        #expect(
            errors.count == 1 && errors[0].contains("did you mean 'account.age_hours'?"),
            "\(errors)")
        let state = try #require(try test.policies.hosts().first)
        #expect(state.host == "mx1" && state.wanted == bad && state.serving == good)
        #expect(state.reason?.contains("unknown name 'account.age_hour'") == true)
        // A host that starts now falls back to what decided before.
        let fresh = test.active(host: "mx2")
        #expect(fresh.policy(team: 1, app: nil)?.hash == good)
        #expect(!fresh.health.isHealthy)
        // A good one fixes it.
        let mended = try test.activate("a", "3")
        active.refresh(now: now + 4)
        #expect(active.policy(team: 1, app: nil)?.hash == mended)
        #expect(active.health.isHealthy)
        #expect(try test.policies.hosts().first?.reason == nil)
    }

    @Test func activePolicies_nothingLoads_useBuiltIn() throws {
        let test = try PolicyTestStore()
        try test.activate("a", "1", condition: "nonsense")
        let active = test.active()
        #expect(active.policy(team: 1, app: nil)?.name == "risk-default")
        #expect(!active.health.isHealthy)
    }

    @Test func activePolicies_boundPolicyNeverLoaded_useDefault() throws {
        let test = try PolicyTestStore()
        try test.activate("rest", "1")
        try test.activate("own", "1", reach: .bound, condition: "nonsense")
        try test.policies.bind(.team("juice"), to: "own", PolicyTestStore.change)
        let active = test.active()
        #expect(active.policy(team: 1, app: nil)?.name == "rest")
        #expect(active.health.problems.count == 1)
    }

    @Test func activePolicies_documentDamaged_keepLastGood() throws {
        let test = try PolicyTestStore()
        let good = try test.activate("a", "1")
        let active = test.active()
        let damaged = try test.activate("a", "2")
        try test.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                "UPDATE policies SET document = ?1 WHERE hash = ?2",
                [.blob(Array("x".utf8)), .text(damaged)])
        }
        active.refresh(now: now)
        #expect(active.policy(team: 1, app: nil)?.hash == good)
        #expect(try test.policies.hosts().first?.reason?.contains("damaged") == true)
    }

    @Test func activePolicies_storeDown_keepLastGoodAndLogOnce() throws {
        let test = try PolicyTestStore()
        let good = try test.activate("a", "1")
        let log = LogRecorder()
        let active = test.active(log: log)
        try test.database.close()
        active.refresh(now: now + 2)
        active.refresh(now: now + 4)
        #expect(active.policy(team: 1, app: nil)?.hash == good)
        #expect(!active.health.isStoreReachable && !active.health.isHealthy)
        #expect(log.lines.count { $0.hasPrefix("error") } == 1, "\(log.lines)")
    }

    @Test func activePolicies_readDuringActivations_areWhole() async throws {
        let test = try PolicyTestStore()
        try test.activate("a", "0")
        let active = test.active()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<20_000 {
                        let policy = try #require(active.policy(team: 1, app: "x"))
                        try #require(
                            policy.policy.rules.count == 1
                                && policy.version == policy.policy.version)
                    }
                }
            }
            group.addTask {
                for version in 1...30 {
                    try test.activate("a", "\(version)")
                    active.refresh(now: PolicyTestStore.now)
                }
            }
            try await group.waitForAll()
        }
        #expect(active.policy(team: nil, app: nil)?.version == "30")
    }

    @Test func policyDocument_writtenAndRead_isTheSame() {
        let document = PolicyDocument(files: [
            "policy.yaml": "a\n", "lists/é b.txt": "", "tests.yaml": "x",
        ])
        #expect(PolicyDocument(octets: document.octets) == document)
        let octets = document.octets
        for cut in 0..<octets.count where cut != octets.count {
            let read = PolicyDocument(octets: Array(octets[..<cut]))
            #expect(read == nil || read != document)
        }
        for text in [
            "", "postern-policy-1", "postern-policy-1\n5 a\nb\n", "postern-policy-1\n-1 a\nb\n",
            "postern-policy-1\n9223372036854775807 a\nb\n",
            "postern-policy-1\n1 a\nbx", "postern-policy-1\n1 a\nb\n1 a\nb\n",
            "postern-policy-1\nx a\nb\n",
            "postern-policy-1\n1 \nb\n",
        ] {
            #expect(PolicyDocument(octets: Array(text.utf8)) == nil, "\(text)")
        }
    }
}
