// Each change of a user on the page adds a line to the audit.

import Accounts
import Database
import HTTPTypes
import StoreTesting
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct PortalAuditTests {
    /// Tables whose changes have no line, each with its reason.
    private static let unaudited: [(table: String, reason: String)] = [
        ("audit", "it is the audit"), ("notices", "counts our own messages"),
        ("page_links", "a link that was mailed"),
        ("page_sessions", "when a page was last open; signing in and out have lines"),
        ("page_repeats", "that a form was sent a moment ago"),
        ("account_notes", "what users write for themselves"),
        ("account_blocks", "what users block for themselves"),
    ]

    /// The fields of nearly all forms of the page, sent at once: each form reads its own.
    private static let fields = [
        "state": "off", "name": "Shop", "note": "n", "inbox": "2", "sender": "a@b.example",
        "email": "new@home.example", "sure": "yes", "decision": "rd_1",
    ]

    private func state(_ fixture: PortalFixture) throws -> [String: String] {
        try fixture.store.database.rows(without: Self.unaudited.map(\.table))
    }

    @Test func forms_thatChangeSomething_leaveALine() async throws {
        try await PortalFixture.with { fixture in
            _ = try fixture.store.inboxes.add(
                user: "anna", try PortalFixture.inbox("anna2@home.example"), isVerified: true,
                isReplyOnly: false,
                PortalFixture.change)
            try fixture.askForCheck(reasons: "new_account")
            let routes = fixture.routes.filter {
                $0.method == .post && $0.path.hasPrefix("/me/") && !$0.path.contains("sign-in")
            }
            // Requests that delete come last.
            let ends = ["/remove", "/sign-out", "/end", "/delete", "/apps/"]
            let ordered =
                routes.filter { route in !ends.contains { route.path.contains($0) } }
                + routes.filter { route in ends.contains { route.path.contains($0) } }
            var changed = Set<String>()
            for route in ordered {
                let anna = Browser(fixture)
                try await anna.signIn("anna")
                let path = route.path.replacing("{account}", with: "1").replacing(
                    "{inbox}", with: "2"
                )
                .replacing("{group}", with: "1").replacing("{passkey}", with: "1").replacing(
                    "{session}", with: "1")
                func lines() throws -> Int64 {
                    try fixture.store.database.value("SELECT COUNT(*) FROM audit") ?? 0
                }
                let (before, count) = (try state(fixture), try lines())
                let fields =
                    switch path.split(separator: "/").last {
                    case "write": ["correspondent": "friend@b.example"]
                    case "schedule": ["after": "3"]
                    default: Self.fields
                    }
                let answer = try await anna.submit(path, fields)
                fixture.queue.drain()
                guard (200..<400).contains(answer.status) else { continue }
                let after = try state(fixture)
                let tables = after.keys.filter { after[$0] != before[$0] }.sorted()
                guard !tables.isEmpty else { continue }
                changed.insert(route.path)
                #expect(
                    try lines() > count,
                    "POST \(route.path): \(tables) changed, and no line says who did it")
            }
            #expect(changed.count >= 8, "\(changed.sorted())")
        }
    }
}
