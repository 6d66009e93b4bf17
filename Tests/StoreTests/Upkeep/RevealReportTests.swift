// The report of who saw personal data, at the ends of months and years, on both engines.

import Accounts
import TestSupport
import Testing

@Suite(.blocking) struct RevealReportTests {
    @Test(arguments: Engine.all) func reveals_endsOfMonths_areInTheirMonths(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        // 2024 is a leap year. From `date -u -d … +%s`.
        let times: [(Int64, Int?)] = [
            (1_704_067_199, nil), (1_704_067_200, 1), (1_709_251_199, 2), (1_709_251_200, 3),
            (1_735_689_599, 12), (1_735_689_600, nil),
        ]
        for (time, _) in times {
            try test.store.audit.note(
                Change(actor: "uid:0", now: time), .user, "user:anna", reason: nil)
        }
        // Not of these actions.
        try test.store.audit.note(
            Change(actor: "uid:0", now: 1_704_067_201), "user.name", "user:anna")
        #expect(
            try test.store.audit.reveals(year: 2024).map(\.month) == times.compactMap(\.1))
        #expect(try test.store.audit.reveals(year: 2023).map(\.month) == [12])
    }

    @Test(arguments: Engine.all) func reveals_sameReasonAndActor_areOneRow(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        for (actor, action, subject, detail, reason) in [
            ("uid:0", RevealAction.user, "user:a", "", "x"), ("uid:0", .user, "user:b", "", "x"),
            ("uid:0", .user, "user:a", "", "x"), ("uid:1", .user, "user:a", "", "x"),
            ("uid:0", .trace, "mail", "ABC123", "x"), ("uid:0", .trace, "mail", "DEF", nil),
            ("uid:0", .user, "user:a", "", "reason: y"),
            // The same letters for Swift, and not for the audit.
            ("uid:0", .user, "user:a", "", "caf\u{E9}"),
            ("uid:0", .user, "user:a", "", "cafe\u{301}"),
        ] as [(String, RevealAction, String, String, String?)] {
            try test.store.audit.note(
                Change(actor: actor, now: TestStore.now), action, subject, detail, reason: reason)
        }
        let rows = try test.store.audit.reveals(year: 2026)
        #expect(
            rows.map { "\($0.actor) \($0.action) \($0.reason ?? "-") \($0.uses) \($0.subjects)" }
                .sorted()
                == [
                    "uid:0 trace - 1 1", "uid:0 trace x 1 1", "uid:0 user cafe\u{301} 1 1",
                    "uid:0 user caf\u{E9} 1 1", "uid:0 user reason: y 1 1", "uid:0 user x 3 2",
                    "uid:1 user x 1 1",
                ].sorted())
        #expect(rows.allSatisfy { $0.month == 9 })
    }
}
