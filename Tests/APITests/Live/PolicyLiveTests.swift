// A wrong edit of a policy while the service runs: it continues to decide and relay, and reports
// the error everywhere.

import Accounts
import Decisions
import Doctor
import Foundation
import PosternConfiguration
import PostfixHarness
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct PolicyLiveTests {
    @Test func policy_editedWithError_lastGoodStaysInForce() throws {
        let service = try LiveService()
        try service.run("team", "add", "juice", "--name", "Juice")
        try service.run("app", "add", "juice", "com.juice.app")
        let key = try service.key("juice", "--scope", "decisions:write")
        func decision() throws -> String {
            let question =
                #"{"event":"sensitive_action","client_id":"com.juice.app","sub":"nobody"}"#
            let answer = try service.ask("POST", "/v1/decisions", key: key, body: question)
            return answer.status == 200 ? answer.body : ""
        }
        let builtIn = StoredPolicy.builtIn.hash
        #expect(try eventually { try decision().contains(builtIn) })
        #expect(try service.ask("GET", "/readyz").body == #"{"policy":"active","status":"ready"}"#)

        // The edit of an administrator: refused at once, with its reason.
        let folder = service.folder + "/candidate"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let document = try #require(PolicyDocument(octets: StoredPolicy.builtIn.document))
        let text = try #require(document.files["policy.yaml"])
        let wrong = text.replacingOccurrences(
            of: "checks.failed_24h >= 3", with: "checks.failed_24 >= 3")
        #expect(wrong != text)
        try Data(wrong.utf8).write(to: URL(fileURLWithPath: folder + "/policy.yaml"))
        let refused = try ManagedProcess.run(
            service.program,
            ["policy", "activate", folder, "--config", service.folder + "/postern.yaml"])
        #expect(refused.status == 1)
        #expect(refused.output.contains("did you mean 'checks.failed_24h'?"))
        #expect(try service.run("policy", "list").contains("unknown name 'checks.failed_24'"))
        #expect(try decision().contains(builtIn))
        #expect(MilterProbe.ask(service.socket) == .fine)

        // The row of a newer program: active in the store, but this program cannot load it.
        let installation = try Installation.open(flag: service.folder, environment: [:], now: 1)
        defer { try? installation.close() }
        let bad = StoredPolicy(
            name: "risk-default", version: "2099",
            document: PolicyDocument(files: ["policy.yaml": wrong]).octets)
        let now = Int64(Date().timeIntervalSince1970)
        _ = try installation.store.policies.activate(
            bad, reach: .automatic, Change(actor: "test", now: now))
        #expect(
            try eventually {
                try service.ask("GET", "/readyz").body
                    == #"{"policy":"last_good","status":"ready"}"#
            })
        #expect(try decision().contains(builtIn), "the last good one decides")
        #expect(MilterProbe.ask(service.socket) == .fine)
        #expect(
            try eventually {
                try service.run("policy", "list").contains(
                    "refuses risk-default \(StoredPolicy.short(bad.hash))")
            })
        let status = try ManagedProcess.run(
            service.program, ["status", "--config", service.folder + "/postern.yaml"])
        #expect(status.status == 1)
        #expect(
            status.output.contains(
                "refuses risk-default \(StoredPolicy.short(bad.hash)) and uses \(StoredPolicy.short(builtIn))"
            )
        )
        try service.waitForLog("a policy does not load, an earlier one stays in force")

        // The rollback.
        try service.run("policy", "rollback")
        #expect(
            try eventually {
                try service.ask("GET", "/readyz").body == #"{"policy":"active","status":"ready"}"#
            })
        #expect(try !service.run("policy", "list").contains("refuses"))
    }
}
