// Policies in the store: storage, bindings, and rollback.

import Accounts
import Decisions
import TestSupport
import Testing

@Suite(.blocking) struct PolicyRepositoryTests {
    private func policy(_ name: String, _ version: String) -> StoredPolicy {
        StoredPolicy(name: name, version: version, document: Array("\(name) \(version)".utf8))
    }

    private func later(_ seconds: Int64) -> Change {
        Change(actor: "uid:0", now: TestStore.now + seconds)
    }

    @Test(arguments: Engine.all) func activate_firstPolicy_isDefaultUntilReplaced(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let policies = test.store.policies
        // Its last reference closes the database.
        defer { withExtendedLifetime(test) {} }
        #expect(try policies.arrangement().standard == nil)
        let first = try policies.activate(policy("a", "1"), reach: .bound, TestStore.change)
        #expect(
            first.policy.isDefault && first.isChange && first.replaced == nil
                && first.replacedDefault == nil)
        let same = try policies.activate(policy("a", "1"), later(1))
        #expect(!same.isChange)
        let second = try policies.activate(policy("a", "2"), later(2))
        #expect(second.replaced == policy("a", "1").hash)
        let standard = try #require(try policies.arrangement().standard)
        #expect(
            standard.version == "2" && standard.hash == policy("a", "2").hash
                && standard.since == TestStore.now + 2)
        #expect(try policies.policy(hash: standard.hash).document == Array("a 2".utf8))
        #expect(try policies.policies().map(\.version) == ["2", "1"])
    }

    @Test(arguments: Engine.all) func activate_otherName_isDefaultUnlessBound(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let policies = test.store.policies
        _ = try policies.activate(policy("a", "1"), TestStore.change)
        _ = try policies.activate(policy("own", "1"), reach: .bound, TestStore.change)
        #expect(try policies.arrangement().standard?.name == "a")
        try policies.bind(.team("juice"), to: "own", TestStore.change)
        _ = try policies.activate(policy("own", "2"), TestStore.change)
        #expect(try policies.arrangement().standard?.name == "a")
        let other = try policies.activate(policy("b", "1"), TestStore.change)
        #expect(other.replacedDefault == "a")
        #expect(try policies.arrangement().policies.filter(\.isDefault).map(\.name) == ["b"])
        #expect(
            try policies.activate(policy("own", "2"), reach: .everyone, TestStore.change)
                .replacedDefault == "b")
    }

    @Test(arguments: Engine.all) func rollback_repeated_goesBackStepByStep(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let policies = test.store.policies
        // Its last reference closes the database.
        defer { withExtendedLifetime(test) {} }
        for version in ["1", "2", "3"] {
            _ = try policies.activate(policy("a", version), TestStore.change)
        }
        _ = try policies.activate(policy("b", "1"), TestStore.change)
        func decides() throws -> String {
            try policies.arrangement().standard.map { "\($0.name) \($0.version)" } ?? ""
        }
        #expect(try decides() == "b 1")
        #expect(try policies.rollbackTarget(nil).version == "3")
        let step = try policies.rollback(nil, later(1))
        #expect(step.policy.name == "a" && step.policy.isDefault && step.replacedDefault == "b")
        #expect(try decides() == "a 3")
        #expect(try policies.arrangement().policies.map(\.name) == ["a"])
        #expect(try policies.rollback(nil, later(2)).policy.version == "2")
        #expect(try policies.rollback("a", later(3)).policy.version == "1")
        expectRefusal(.unmet) { _ = try policies.rollback(nil, later(4)) }
        expectRefusal(.notFound) { _ = try policies.rollback("b", later(4)) }
        #expect(try decides() == "a 1")
        // After new activations a rollback goes through them, and not to policies that were rolled
        // back before.
        _ = try policies.activate(policy("a", "3"), later(5))
        #expect(try policies.rollback(nil, later(6)).policy.version == "1")
    }

    @Test(arguments: Engine.all) func rollback_onlyVersionOfBoundPolicy_isRefused(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let policies = test.store.policies
        // Its last reference closes the database.
        defer { withExtendedLifetime(test) {} }
        _ = try policies.activate(policy("a", "1"), TestStore.change)
        _ = try policies.activate(policy("own", "1"), reach: .bound, TestStore.change)
        try policies.bind(.team("juice"), to: "own", TestStore.change)
        expectRefusal(.unmet) { _ = try policies.rollback("own", TestStore.change) }
    }

    @Test(arguments: Engine.all) func binding_unboundOrAppRemoved_isDeleted(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let policies = test.store.policies
        _ = try test.store.apps.add(
            team: "juice", clientID: "com.example.juice", group: nil, TestStore.change)
        _ = try policies.activate(policy("a", "1"), TestStore.change)
        _ = try policies.activate(policy("own", "1"), reach: .bound, TestStore.change)
        #expect(try policies.target("juice") == .team("juice"))
        #expect(try policies.target("com.example.juice") == .app("com.example.juice"))
        expectRefusal(.notFound) { _ = try policies.target("nobody") }
        expectRefusal(.notFound) {
            try policies.bind(.team("juice"), to: "unknown", TestStore.change)
        }
        try policies.bind(.team("juice"), to: "own", TestStore.change)
        try policies.bind(.app("com.example.juice"), to: "own", TestStore.change)
        try policies.bind(.app("com.example.juice"), to: "a", TestStore.change)
        #expect(
            try policies.arrangement().bindings.map { "\($0.target) \($0.name)" } == [
                "team juice own", "app com.example.juice a",
            ])
        try policies.unbind(.team("juice"), TestStore.change)
        expectRefusal(.notFound) { try policies.unbind(.team("juice"), TestStore.change) }
        try test.store.apps.remove(team: "juice", clientID: "com.example.juice", TestStore.change)
        #expect(try policies.arrangement().bindings.isEmpty)
        _ = try test.store.apps.add(team: "juice", clientID: "juice", group: nil, TestStore.change)
        expectRefusal(.unmet) { _ = try policies.target("juice") }
    }

    @Test(arguments: Engine.all) func policy_eachChange_isLoggedAndRaisesRevision(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let policies = test.store.policies
        var seen = [try policies.revision()]
        _ = try policies.activate(policy("a", "1"), TestStore.change)
        seen.append(try policies.revision())
        _ = try policies.activate(policy("a", "2"), TestStore.change)
        seen.append(try policies.revision())
        _ = try policies.rollback(nil, TestStore.change)
        seen.append(try policies.revision())
        try policies.bind(.team("juice"), to: "a", TestStore.change)
        seen.append(try policies.revision())
        try policies.unbind(.team("juice"), TestStore.change)
        seen.append(try policies.revision())
        try policies.recordRefusal(
            name: "a", version: "3", reason: "policy.yaml:1:1: error: no", TestStore.change)
        #expect(seen == seen.sorted() && Set(seen).count == 6)
        let changes = try policies.changes()
        #expect(
            changes.map(\.action) == [.refuse, .unbind, .bind, .rollback, .activate, .activate])
        #expect(changes[0].detail.contains("1:1"))
        #expect(
            changes[3].hash == policy("a", "1").hash
                && changes[3].hashBefore == policy("a", "2").hash)
        #expect(try policies.earlier("a") == [policy("a", "2").hash, policy("a", "1").hash])
        let audit = try test.store.audit.entries().map(\.action).filter { $0.hasPrefix("policy.") }
        #expect(
            audit == [
                "policy.refuse", "policy.unbind", "policy.bind", "policy.rollback",
                "policy.activate", "policy.activate",
            ])
    }

    @Test(arguments: Engine.all) func resolve_nameOrHashPrefix_returnsHash(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let policies = test.store.policies
        // Its last reference closes the database.
        defer { withExtendedLifetime(test) {} }
        _ = try policies.activate(policy("a", "1"), TestStore.change)
        _ = try policies.activate(policy("a", "2"), TestStore.change)
        let old = policy("a", "1").hash
        #expect(try policies.resolve("a") == policy("a", "2").hash)
        #expect(try policies.resolve(old) == old)
        #expect(try policies.resolve(StoredPolicy.short(old)) == old)
        #expect(try policies.resolve(String(StoredPolicy.short(old).prefix(6)).uppercased()) == old)
        expectRefusal(.notFound) {
            _ = try policies.resolve(String(StoredPolicy.short(old).prefix(5)))
        }
        expectRefusal(.notFound) { _ = try policies.resolve("b") }
        expectRefusal(.invalid) { _ = try policies.activate(policy("a b", "1"), TestStore.change) }
    }

    @Test(arguments: Engine.all) func activate_damagedDocument_repairsIt(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let policies = test.store.policies
        let good = policy("a", "1")
        _ = try policies.activate(good, TestStore.change)
        try test.database.write(.durable) { connection in
            try connection.run("UPDATE policies SET document = ?1", [.blob([1, 2, 3])])
        }
        #expect(try !policies.policy(hash: good.hash).isIntact)
        #expect(try !policies.activate(good, TestStore.change).isChange)
        #expect(try policies.policy(hash: good.hash).isIntact)
    }

    @Test(arguments: Engine.all) func hostReport_repeated_replacesEarlierOne(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let policies = test.store.policies
        // Its last reference closes the database.
        defer { withExtendedLifetime(test) {} }
        let state = PolicyHostState(
            host: "mx1", name: "a", wanted: "h1", serving: "h0", reason: "does not load", at: 5)
        try policies.report(host: "mx1", [state])
        try policies.report(
            host: "mx2",
            [
                PolicyHostState(
                    host: "mx2", name: "a", wanted: "h1", serving: "h1", reason: nil, at: 6)
            ])
        #expect(try policies.hosts().map(\.host) == ["mx1", "mx2"])
        #expect(try policies.hosts().first == state)
        try policies.report(host: "mx1", [])
        #expect(try policies.hosts().map(\.host) == ["mx2"])
    }

    /// A host on which the active policy does not load decides with the last one that did, even if
    /// that was replaced long ago.
    @Test(arguments: Engine.all) func deleteUnneeded_fallbackOfHost_isKeptAsLongAsLog(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let policies = test.store.policies
        for version in ["1", "2", "3"] {
            _ = try policies.activate(policy("a", version), TestStore.change)
        }
        let day: Int64 = 86_400
        let fallback = TestStore.now + 100 * day
        func host(serves version: String, at time: Int64) throws {
            try policies.report(
                host: "mx1",
                [
                    PolicyHostState(
                        host: "mx1", name: "a", wanted: "w", serving: policy("a", version).hash,
                        reason: nil, at: time)
                ])
        }
        try host(serves: "1", at: fallback)
        try host(serves: "3", at: fallback + 1)
        func oldest(_ time: Int64) throws -> DecisionRecord {
            DecisionRecord(
                id: "rd_\(time)", teamNumber: 1, clientID: "c", claimedEvent: "sign_in",
                event: "sign_in", decision: "allow",
                policyName: "a", policyVersion: "1", policyHash: policy("a", "1").hash,
                credentialState: "authorized",
                evaluatedAt: time, expiresAt: time + 1)
        }
        try test.store.decisions.insert([oldest(fallback), oldest(fallback + 31 * day)])
        #expect(try policies.deleteUnneeded(addedBefore: fallback) == 0)
        _ = try test.store.decisions.deleteExpired(before: fallback + 1)
        #expect(try policies.deleteUnneeded(addedBefore: fallback) == 1)
        #expect(try policies.policies().map(\.version).sorted() == ["2", "3"])
    }

    @Test(arguments: Engine.all) func deleteUnneeded_policyInUse_isKept(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let policies = test.store.policies
        for version in ["1", "2", "3", "4"] {
            _ = try policies.activate(policy("a", version), TestStore.change)
        }
        // 4 is active, and a rollback leads to 3. The log has a decision from the time when 1 and 2
        // were replaced.
        let record = DecisionRecord(
            id: "rd_1", teamNumber: 1, clientID: "c", claimedEvent: "sign_in", event: "sign_in",
            decision: "allow",
            policyName: "a",
            policyVersion: "2", policyHash: policy("a", "2").hash, credentialState: "authorized",
            evaluatedAt: TestStore.now + 30 * 86_400, expiresAt: 2)
        try test.store.decisions.insert([record])
        #expect(try policies.deleteUnneeded(addedBefore: TestStore.now) == 0, "they are young")
        #expect(
            try policies.deleteUnneeded(addedBefore: TestStore.now + 1) == 0,
            "a host may have decided by them")
        _ = try test.store.decisions.deleteExpired(before: record.evaluatedAt + 1)
        try policies.report(
            host: "mx1",
            [
                PolicyHostState(
                    host: "mx1", name: "a", wanted: "w", serving: policy("a", "2").hash,
                    reason: "r", at: TestStore.now + 5)
            ])
        #expect(try policies.deleteUnneeded(addedBefore: TestStore.now + 1) == 1)
        #expect(
            try policies.policies().map(\.version).sorted() == ["2", "3", "4"],
            "a host decides by 2")
        try policies.report(host: "mx1", [])
        #expect(try policies.deleteUnneeded(addedBefore: TestStore.now + 1) == 1)
        #expect(try policies.rollback(nil, later(9)).policy.version == "3")
    }
}
