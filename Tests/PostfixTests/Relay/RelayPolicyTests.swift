// Invalid policies next to the running service: mail still passes, the old policy decides, and
// everyone is informed.

import Accounts
import Decisions
import Foundation
import PosternSQLite
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayPolicyTests {
    private func overview(_ fixture: RelayFixture) throws -> [String: Any] {
        let text = try fixture.run(["policy", "list", "--json"])
        return try #require(
            try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    private func activeHash(_ fixture: RelayFixture) throws -> String {
        let rows = try #require(try overview(fixture)["policies"] as? [[String: Any]])
        return try #require(rows.first { $0["is_default"] as? Bool == true }?["hash"] as? String)
    }

    /// Reads `policy list` until its entry of the host is as required; the service checks every two
    /// seconds.
    private func host(
        _ fixture: RelayFixture, where isTrue: ([String: Any]) -> Bool
    ) throws -> [String: Any] {
        for _ in 0..<Int(standardTimeout * 5) {
            let hosts = try overview(fixture)["hosts"] as? [[String: Any]] ?? []
            if let host = hosts.first(where: isTrue) { return host }
            usleep(200_000)
        }
        throw HarnessError(
            "no host says so: \(try overview(fixture))\n\((try? fixture.process.output) ?? "")")
    }

    private func expectMail(_ fixture: RelayFixture, _ address: String) throws {
        let sent = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        #expect(sent.data?.code == 250, "\(sent)\n\(fixture.postfix.log)")
    }

    private func replace(_ path: String, _ old: String, _ new: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try #require(text.contains(old))
        try text.replacingOccurrences(of: old, with: new).write(
            toFile: path, atomically: true, encoding: .utf8)
    }

    @Test func policy_invalidEdit_keepsTheOldOne() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let before = try activeHash(fixture)
        _ = try host(fixture) { $0["serving"] as? String == before }
        let folder = fixture.folder + "/mine"
        try fixture.run(["policy", "show", "--export", folder])
        try replace(
            folder + "/policy.yaml", "account.age_hours < 72 &&", "account.age_hour < 72 &&")
        let refused = try ManagedProcess.run(
            fixture.program, ["policy", "activate", folder, "--config", fixture.configuration])
        #expect(refused.status == 1)
        #expect(
            refused.output.contains(
                "unknown name 'account.age_hour'; did you mean 'account.age_hours'?"),
            "\(refused.output)")
        #expect(
            refused.output.contains("policy.yaml:") && refused.output.contains("^"),
            "\(refused.output)")
        let list = try fixture.run(["policy", "list"])
        #expect(
            list.contains("refused ") && list.contains("did you mean 'account.age_hours'?"),
            "\(list)")
        #expect(try activeHash(fixture) == before)
        try expectMail(fixture, address)
        // After the fix, it is used while the service runs.
        try replace(
            folder + "/policy.yaml", "account.age_hour < 72 &&", "account.age_hours < 48 &&")
        try replace(folder + "/tests.yaml", "account.age_hours: 71", "account.age_hours: 47")
        let lines = try fixture.process.lines.count
        try fixture.run(["policy", "activate", folder])
        let after = try activeHash(fixture)
        #expect(after != before)
        try fixture.process.waitForLine(containing: "policy in force", from: lines)
        _ = try host(fixture) { $0["serving"] as? String == after && $0["reason"] == nil }
        try expectMail(fixture, address)
    }

    /// A policy as another version of the program, or an edit of the database, might leave it.
    @Test func policy_notLoadable_keepsTheLastGoodOne() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let good = try activeHash(fixture)
        _ = try host(fixture) { $0["serving"] as? String == good }
        let database = try SQLiteDatabase(path: fixture.folder + "/postern/postern.db")
        let bad = StoredPolicy(
            name: "risk-default", version: "9",
            document: Array("postern-policy-1\n3 policy.yaml\n???\n".utf8))
        let lines = try fixture.process.lines.count
        _ = try PolicyRepository(database: database).activate(
            bad, Change(actor: "test", now: Int64(Date().timeIntervalSince1970)))
        try database.close()
        try fixture.process.waitForLine(
            containing: "a policy does not load, an earlier one stays in force", from: lines)
        let host = try host(fixture) { $0["reason"] != nil }
        #expect(host["serving"] as? String == good && host["wanted"] as? String == bad.hash)
        #expect(try fixture.run(["policy", "list"]).contains("refuses risk-default"))
        try expectMail(fixture, address)
        // The same after a restart, and the usual command restores a policy.
        #expect(try fixture.end() == 0)
        try fixture.serve()
        _ = try self.host(fixture) { $0["serving"] as? String == good && $0["reason"] != nil }
        try expectMail(fixture, address)
        try fixture.run(["policy", "rollback"])
        _ = try self.host(fixture) { $0["serving"] as? String == good && $0["reason"] == nil }
    }
}
