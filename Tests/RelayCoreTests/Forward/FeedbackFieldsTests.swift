// Our own Feedback-ID and CFBL-Address: stable tags that name no one, and complaints that come back
// and count for the right team.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct FeedbackFieldsTests {
    /// The header section of a forward as it leaves.
    private func forward(
        _ fixture: Fixture, from sender: String = "bounce@app.example", to local: String,
        fields: String = ""
    ) -> HeaderSection {
        let message =
            "\(fields)From: Billing <billing@app.example>\r\nTo: \(local)@relay.example\r\n"
            + "Subject: Hello\r\nMessage-ID: <1@app.example>\r\n\r\nHello\r\n"
        let parsed = Message.parse(Array(message.utf8))
        var after = ModifiedMessage(
            header: parsed.header, body: parsed.body, sender: sender,
            recipients: ["\(local)@relay.example"])
        after.apply(
            fixture.play(from: sender, to: ["\(local)@relay.example"], message: message).decision
                .modifications)
        return HeaderSection(after.header)
    }

    private func value(_ name: String, _ header: HeaderSection) -> String {
        let all = header.all(name)
        return all.count == 1 ? all[0].unfoldedValue : "\(all.count) fields"
    }

    /// The address of CFBL-Address, which must have the one form of RFC 9477.
    private func address(_ header: HeaderSection) -> String? {
        let parts = value(FeedbackFields.complaintName, header).split(separator: ";")
        guard parts.count == 2, parts[1].trimmingPrefix(" ") == "report=arf" else { return nil }
        return String(parts[0])
    }

    private static let report = """
        From: fbl@provider.example\r\nSubject: complaint\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/report; report-type=feedback-report;\r\n boundary="b"\r\n\r\n\
        --b\r\n\r\nThis is an email abuse report.\r\n\
        --b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: KIND\r\nUser-Agent: X/1\r\nVersion: 1\r\n\r\n\
        --b\r\nContent-Type: message/rfc822\r\n\r\nSubject: Hello\r\n\r\nBuy now\r\n--b--\r\n
        """

    @Test(arguments: ["bounce@app.example", "elsewhere@bounces.example", ""])
    func complaint_atTheAddressOfAForward_countsForItsTeam(sender: String) throws {
        let fixture = Fixture(evidence: .signed("app.example"))
        for account in [Fixture.bob, Fixture.anna] {
            let header = forward(fixture, from: sender, to: account.relayAddress.localPart)
            let address = try #require(self.address(header))
            #expect(address.hasSuffix("@relay.example"))
            // A user who takes a message out of the spam folder does not complain.
            _ = fixture.play(
                from: "fbl@provider.example", to: [address],
                message: Self.report.replacing("KIND", with: "not-spam"))
            #expect(fixture.directory.complaints.last != account.number)
            for _ in 0..<2 {
                let answer = fixture.play(
                    from: "fbl@provider.example", to: [address],
                    message: Self.report.replacing("KIND", with: "abuse"))
                #expect(answer.decision.outcome == .discard)
            }
            #expect(fixture.directory.complaints.last == account.number)
        }
        #expect(fixture.directory.complaints == [Fixture.bob.number, Fixture.anna.number])
        // No one can make the address of another account.
        let made = try #require(self.address(forward(fixture, to: "annarelay2")))
        let forged =
            String(made.prefix(3)) + (made.dropFirst(3).first == "a" ? "b" : "a")
            + made.dropFirst(4)
        let refused = fixture.play(
            from: "fbl@provider.example", to: [forged],
            message: Self.report.replacing("KIND", with: "abuse"))
        #expect(refused.refusals[forged] != nil && fixture.directory.complaints.count == 2)
    }

    @Test func feedbackID_ofATeam_isTheSameForAllItsUsersAtAProvider() throws {
        func account(
            _ number: UInt64, _ local: String, _ inbox: String, team: String
        )
            -> RelayAccount
        {
            Fixture.account(number, local, team: team, inboxes: [inbox])
        }
        let fixture = Fixture(
            accounts: [
                account(1, "annarelay2", "anna@gmail.com", team: "app.example"),
                account(2, "bobrelay22", "bob@googlemail.com", team: "app.example"),
                account(3, "carlrelay2", "carl@outlook.com", team: "app.example"),
                account(4, "doraRelay2".lowercased(), "dora@doras.example", team: "app.example"),
                account(5, "evarelay22", "eva@evas.example", team: "app.example"),
            ], evidence: .signed("app.example"))
        func tags(_ local: String) throws -> [String] {
            let value = value(
                FeedbackFields.identifierName,
                forward(fixture, to: local, fields: "Feedback-ID: camp:app:::sender\r\n"))
            let tags = value.split(separator: ":", omittingEmptySubsequences: false).map(
                String.init)
            try #require(tags.count == 4, "\(value)")
            return tags
        }
        let (anna, bob, carl) = try (tags("annarelay2"), tags("bobrelay22"), tags("carlrelay2"))
        let (dora, eva) = try (tags("dorarelay2"), tags("evarelay22"))
        #expect(anna == bob, "one provider, one team")
        #expect(anna[0] != carl[0] && anna[2] != carl[2], "another provider has other tags")
        #expect(anna[1] == carl[1] && anna[3] == carl[3])
        // A domain that may be one person's names no one.
        #expect(dora == eva && dora[2].isEmpty)
        for tags in [anna, carl, dora] {
            #expect(Set(tags).count == 4)
            #expect((5...15).contains(tags[3].utf8.count), "as Google wants the sender")
            #expect(
                tags.joined().utf8.allSatisfy {
                    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                        || (UInt8(ascii: "2")...UInt8(ascii: "7")).contains($0)
                })
        }
    }

    @Test func feedbackID_tags_dependOnTeamPurposeAndKey() throws {
        let keys = Fixture.keys
        let other = try #require(
            TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: 8, count: 32)],
                active: UInt8(ascii: "a")))
        func tags(
            _ keys: TokenKeys, _ purpose: FeedbackFields.Purpose, _ team: String?
        ) -> [Substring] {
            FeedbackFields(keys: keys).identifier(purpose, team: team, provider: "gmail.com")
                .unfoldedValue.split(separator: ":", omittingEmptySubsequences: false)
        }
        let one = tags(keys, .forward, "juice")
        #expect(one == tags(keys, .forward, "juice"))
        #expect(zip(one, tags(other, .forward, "juice")).allSatisfy { $0 != $1 })
        #expect(one[0] != tags(keys, .forward, "shop")[0])
        #expect(tags(keys, .notice, nil)[0].isEmpty)
        #expect(
            Set(FeedbackFields.Purpose.allCases.map { tags(keys, $0, "juice")[1] }).count
                == FeedbackFields.Purpose.allCases.count)
    }

    @Test func feedbackID_eachTag_isThatOfItsPart() {
        let fields = FeedbackFields(keys: Fixture.keys)
        let value = fields.identifier(.reply, team: "juice", provider: "gmail.com").unfoldedValue
        let parts: [FeedbackFields.Part] = [
            .team("juice", provider: "gmail.com"), .purpose(.reply), .provider("gmail.com"),
            .sender,
        ]
        #expect(value == parts.map(fields.tag(of:)).joined(separator: ":"))
        #expect(Set(parts.map(fields.tag(of:))).count == 4)
    }

    @Test func fields_ofTheTeam_areReplaced() {
        let fixture = Fixture(evidence: .signed("app.example"))
        let header = forward(
            fixture, to: "annarelay2",
            fields: "Feedback-ID: camp:app:::sender\r\nX-Feedback-ID: camp\r\n"
                + "CFBL-Address: fbl@app.example; report=arf\r\nCFBL-Feedback-ID: anna\r\n"
                + "DKIM2-Signature: i=1\r\nMessage-Instance: m=1\r\n")
        #expect(!value(FeedbackFields.identifierName, header).contains("camp"))
        #expect(address(header)?.hasSuffix("@relay.example") == true)
        for name in ["X-Feedback-ID", "CFBL-Feedback-ID", "DKIM2-Signature", "Message-Instance"] {
            #expect(header.first(name) == nil, "\(name)")
        }
    }

    /// The longest domain leaves a line that every server takes.
    @Test func complaintAddress_longDomain_fitsItsLine() {
        let domain = Array(repeating: String(repeating: "a", count: 60), count: 4).joined(
            separator: ".")
        let field = FeedbackFields.complaints(
            to: AddrSpec(localPart: String(repeating: "x", count: 64), domain: domain))
        #expect(field.fitsLines)
        #expect(field.unfoldedValue.hasSuffix("@\(domain); report=arf"))
    }
}
