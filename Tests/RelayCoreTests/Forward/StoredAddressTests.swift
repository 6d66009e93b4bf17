// Addresses that do not fit their tokens: how many a team can make the relay store, and when the
// limit is checked.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct StoredAddressTests {
    private static let relay = "annarelay2@relay.example"

    private static func play(_ fixture: Fixture, _ fields: String) -> RelayDecision {
        fixture.play(
            from: "bounce@app.example", to: [relay],
            message: "From: billing@app.example\r\n\(fields)\r\nx\r\n"
        ).decision
    }

    /// Addresses with a capital letter do not fit, as a reverse address must be readable in any
    /// letter case.
    private static func field(_ name: String, _ count: Int, _ mark: String = "a") -> String {
        "\(name): "
            + (0..<count).map { "Capital.\(mark)\($0)@app.example" }.joined(separator: ",\r\n ")
            + "\r\n"
    }

    private static func code(_ decision: RelayDecision) -> String {
        if case .refuse(let refusal) = decision.outcome {
            return "\(refusal.reply.code) \(refusal.reply.enhanced)"
        }
        return "\(decision.outcome)"
    }

    private static func limited(messages: Int = 100, addresses: Int = 2_000) -> RelaySettings {
        var settings = RelaySettings(relayDomains: ["relay.example"], authservID: "mx")
        settings.limits.messagesPerDay = messages
        settings.limits.storedAddressesPerDay = addresses
        return settings
    }

    /// One header section of 236 kB could otherwise store 20,000 rows.
    @Test func storedAddresses_ofOneMessage_areAtMost200() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        #expect(
            Self.code(Self.play(fixture, Self.field("To", 100) + Self.field("Cc", 100, "b")))
                == "relay")
        #expect(
            fixture.directory.storedCount == 200
                && fixture.directory.reserved(.forward, Fixture.anna.number) == 1)
        #expect(
            Self.code(Self.play(fixture, Self.field("To", 100, "c") + Self.field("Cc", 101, "d")))
                == "554 5.5.3")
        let many = (0..<4).map { Self.field("List-Post: <mailto:x>\r\nCc", 1_800, "e\($0)x") }
            .joined()
        #expect(Self.code(Self.play(fixture, many)) == "554 5.5.3")
        #expect(
            fixture.directory.storedCount == 200
                && fixture.directory.reserved(.forward, Fixture.anna.number) == 1)
        // The same address in another field does not count again.
        #expect(
            Self.code(
                Self.play(
                    fixture,
                    Self.field("To", 100) + Self.field("Cc", 100) + Self.field("Reply-To", 100, "b")
                ))
                == "relay")
        #expect(fixture.directory.storedCount == 200)
    }

    /// The limit is checked before addresses are stored.
    @Test func storedAddresses_messageOverTheLimit_areNone() {
        let fixture = Fixture(
            evidence: AuthenticationEvidence.signed("app.example"),
            settings: Self.limited(messages: 1))
        #expect(Self.code(Self.play(fixture, Self.field("To", 3))) == "relay")
        #expect(Self.code(Self.play(fixture, Self.field("To", 5, "b"))) == "452 4.7.1")
        #expect(fixture.directory.storedCount == 3)
    }

    @Test func storedAddresses_newInADay_areLimited() {
        let fixture = Fixture(
            evidence: AuthenticationEvidence.signed("app.example"),
            settings: Self.limited(addresses: 10))
        #expect(Self.code(Self.play(fixture, Self.field("To", 8))) == "relay")
        #expect(Self.code(Self.play(fixture, Self.field("To", 3, "b"))) == "452 4.7.1")
        // All or none. A deferred message releases its place.
        #expect(
            fixture.directory.storedCount == 8
                && fixture.directory.reserved(.forward, Fixture.anna.number) == 1)
        // Known addresses are not new.
        #expect(
            Self.code(Self.play(fixture, Self.field("To", 8) + Self.field("Cc", 2, "c"))) == "relay"
        )
    }

    /// The field does not fit the milter's command to Postfix, so the message is refused and not
    /// deferred repeatedly.
    @Test func forward_fieldGrowsTooLong_isRefused() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        func to(_ count: Int) -> String {
            "To: "
                + (0..<count).map { "person.number.\($0)@department.app.example" }.joined(
                    separator: ",\r\n ") + "\r\n"
        }
        #expect(Self.code(Self.play(fixture, to(300))) == "relay")
        #expect(Self.code(Self.play(fixture, to(1_200))) == "552 5.3.4")
        #expect(fixture.directory.reserved(.forward, Fixture.anna.number) == 1)
    }

    /// Hidden message ids are longer than the ids that they hide, but only a hundred of thousands
    /// are kept. A relay address is longer than its inbox, but a Subject keeps no address.
    @Test func reply_fieldGrowsTooLong_isRefused() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number,
            correspondent: AddrSpec(localPart: "billing", domain: "app.example")
        ).localPart
        func reply(_ name: String, _ words: [String]) -> String {
            Self.code(
                fixture.play(
                    from: "anna@inbox.example", to: ["\(reverse)@relay.example"],
                    message:
                        "From: anna@inbox.example\r\n\(name): \(words.joined(separator: "\r\n "))\r\n\r\nx\r\n"
                ).decision)
        }
        #expect(reply("References", (0..<2_000).map { "<\($0)@inbox.example>" }) == "relay")
        let words = Array(repeating: "anna@inbox.example", count: 2_800)
        #expect(reply("Subject", words) == "relay")
        #expect(reply("Sensitivity", words) == "552 5.3.4")
        #expect(fixture.directory.reserved(.reply, Fixture.anna.number) == 2)
    }
}
