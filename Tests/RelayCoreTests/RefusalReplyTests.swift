// The declaration of each reply agrees with RFC 5321 and RFC 3463, and docs/OPERATING-REFUSALS.md
// shows it.

import RelayCore
import TestSupport
import Testing

@Suite struct RefusalReplyTests {
    private static let table = DocumentSection(
        "refusals", by: "RefusalReplyTests", in: "OPERATING-REFUSALS.md")

    private static func row(_ reply: RefusalReply) -> String {
        let facts = reply.facts
        let text = reply.text(["…", "…"])
        let words = facts.reasons.map { "`\($0)`" }.joined(separator: ", ")
        return "| `\(reply.status)` \(text) | \(words) | \(facts.meaning) | \(facts.remedy) |\n"
    }

    @Test func operatingDocument_refusals_areThoseOfTheRelay() throws {
        let head = "| reply | `reason` in the log | means | what to do |\n|---|---|---|---|\n"
        #expect(try Self.table.holds(head + RefusalReply.allCases.map(Self.row).joined()))
    }

    @Test(arguments: RefusalReply.allCases) func refusal_codes_areOfOneClass(_ reply: RefusalReply)
    {
        let facts = reply.facts
        #expect(
            [4, 5].contains(facts.code / 100)
                && facts.enhanced.utf8.first == "\(facts.code)".utf8.first)
        #expect(
            facts.text.utf8.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "%") })
        #expect(
            reply.text(["a", "b"]).utf8.allSatisfy {
                $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: "}")
            })
        #expect(!facts.reasons.isEmpty && !facts.remedy.utf8.contains(UInt8(ascii: "|")))
        // A statement about an account is for its own team, and its user sees it as something that
        // they can change.
        #expect(facts.audience == .teams || facts.forUser != nil)
        // A request to send mail again is not reported, unless the user can change its cause.
        #expect(facts.code / 100 == 5 || facts.forUser == nil || facts.audience == .ownTeam)
    }
}
