// The combined meaning of a server's code and text.

import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct StatusCodesTests {
    private static func understood(_ text: String) throws -> String {
        let stated = try #require(StatusCodes.enhanced(in: text))
        return StatusCodes.understood(stated, diagnostic: text).description
    }

    /// From reports of operators about large providers.
    @Test(arguments: [
        "550 5.1.0 <bounces@relay.example> sender rejected. Please see http://www.spectrum.net/support/ AUP#In-1310",
        "550 5.1.1 <jane@home.example> - IP has sent to too many recipients this hour",
        "550 5.1.1 [198.51.100.7] has been blocked using a blocklist",
        "550 5.1.0 Authentication required: SPF check failed",
        "550 5.1.1 Rejected by SPF, see RFC 7208",
        "554 5.1.1 Your host has a poor reputation",
        "550 5.0.0 Message rejected as spam",
        "550 5.1.1 jane@home.example rejected by local policy",
        "550 5.2.1 Sending rate of your IP is too high: throttled",
        "550 5.1.1 Connection frequency limited", "550 5.1.1 rejected RBL: cbl.abuseat.example",
        "550 5.1.1 refused by SURBL", "550 5.1.1 Recipient address rejected: Access denied",
        "550 5.1.1 You have exceeded the maximum number of messages per hour",
        "550 5.1.1 Mail volume exceeds limits", "550 5.1.1 abuse detected",
        "550 5.1.1 Administrative prohibition", "550 5.1.1 DNS PTR missing",
        "550 5.1.1 low sender score", "550 5.1.1 looks like bulk mail",
        "550 5.1.1 Ihre IP-Adresse ist nicht erlaubt", "550 5.1.1 слишком много писем",
    ])
    func understood_codeOfAMailboxBesideAnObjectionToTheSender_isARefusal(text: String) throws {
        #expect(try Self.understood(text) == "5.7.1")
    }

    @Test(arguments: [
        (
            "550 5.1.1 <jane@home.example>: Recipient address rejected: User unknown in relay recipient table",
            "5.1.1"
        ),
        (
            "550 5.4.1 Recipient address rejected: Access denied. [AM7EUR03.prod.protection.outlook.example]",
            "5.1.1"
        ),
        ("550 5.0.0 Requested action not taken: mailbox unavailable", "5.1.1"),
        ("550 5.2.1 The email account that you tried to reach is disabled", "5.2.1"),
        (
            "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup",
            "5.1.10"
        ),
        ("550 5.4.1 connection refused", "5.4.1"),
        ("552 5.2.2 <jane@home.example> over quota", "5.2.2"),
    ])
    func understood_wordsOfAMailbox_areOfTheMailbox(text: String, status: String) throws {
        #expect(try Self.understood(text) == status)
    }

    /// An inbox in the text changes nothing: the team reads the code.
    @Test(arguments: [
        "spam", "policy", "too.many.messages", "user.unknown", "no-such-user", "Virus",
    ])
    func understood_wordsWithinAnAddress_areNone(local: String) throws {
        for form in [
            "<LOCAL@home.example>", "LOCAL@home.example", "rfc822;LOCAL@blocked.spam.example",
            "LOCAL@home.example...",
        ] {
            let (of, other) = (
                form.replacing("LOCAL", with: local), form.replacing("LOCAL", with: "jane")
            )
            for text in [
                "550 5.1.1 \(of): User unknown", "550 5.0.0 \(of) failed",
                "550 5.0.0 \(of)no such user",
            ] {
                #expect(
                    try Self.understood(text) == Self.understood(text.replacing(of, with: other)),
                    "\(text)")
            }
        }
    }
}
