// The extra checks of a user as the user sees them, and the user's objections, on both engines.

import Accounts
import Database
import Decisions
import PersonalData
import TestSupport
import Testing

@Suite(.blocking) struct AccountCheckTests {
    @Test(arguments: Engine.all) func check_askedOfUser_isShownAndObjectedToOnce(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let (persons, account) = (test.inner.store.persons, try test.account("u1"))
        _ = try test.decided("u1", challenges: [], id: "rd_0")
        _ = try test.decided("u1", challenges: ["email_code", "human_check"], id: "rd_1")
        _ = try test.decided("u1", challenges: ["email_code"], id: "rd_2")
        _ = try test.report("rd_1", .initiated, "email_code", at: TestStore.now + 1)
        _ = try test.report("rd_1", .passed, "email_code", at: TestStore.now + 5)
        let checks = try persons.checks(account: account)
        #expect(checks.map(\.decisionID) == ["rd_2", "rd_1"])
        #expect(
            checks.map(\.end) == [.open, .passed]
                && checks[1].challenges == ["email_code", "human_check"])
        // A user can object only to checks of the user's own account.
        try test.inner.user("u2")
        let other = try test.account("u2")
        for (number, id) in [(account, "rd_0"), (account, "rd_9"), (other, "rd_1")] {
            expectRefusal(.notFound) {
                try persons.object(account: number, decision: id, TestStore.change)
            }
        }
        try persons.object(account: account, decision: "rd_1", TestStore.change)
        try persons.object(
            account: account, decision: "rd_1", Change(actor: "user:u1", now: TestStore.now + 9))
        #expect(try persons.checks(account: account).map(\.objectedAt) == [nil, TestStore.now])
        let audit = try test.inner.store.audit.page(action: "decision.object", limit: 10).rows
        #expect(audit.map(\.detail) == ["rd_1"])
        // Objections are deleted with their decision.
        _ = try test.inner.store.decisions.deleteExpired(before: TestStore.now + 1)
        let left: Int64? = try test.inner.database.value("SELECT COUNT(*) FROM decision_objections")
        #expect(left == 0)
    }
}
