// Encrypted replies: refused with a separate text.

import InternetMessage
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct EncryptedReplyTests {
    private static func rewrite(type: String, body: String) throws(Refusal) -> OutgoingMessage {
        let engine = Fixture(evidence: .init()).engine
        let header = HeaderSection([
            HeaderField("From", "<anna@inbox.example>"), HeaderField("Content-Type", type),
        ])
        return try ReplyRewriting(
            engine: engine, account: Fixture.anna, header: header,
            envelopeSender: "anna@inbox.example", isAutomatic: false,
            now: Fixture.now, hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens)
        ).rewrite(body: Array(body.utf8))
    }

    private static let armour =
        "-----BEGIN PGP MESSAGE-----\r\n\r\nhQEMAwAAAAAAAAAB\r\n-----END PGP MESSAGE-----\r\n"
    private static let replies = [
        (
            "multipart/encrypted; protocol=\"application/pgp-encrypted\"; boundary=e",
            "--e\r\nContent-Type: application/pgp-encrypted\r\n\r\nVersion: 1\r\n--e\r\nContent-Type: application/octet-stream\r\n\r\n\(armour)--e--\r\n"
        ),
        ("application/pkcs7-mime; smime-type=enveloped-data", "\u{30}\u{10}\u{6}"),
        ("application/x-pkcs7-mime; name=smime.p7m", "\u{30}\u{10}\u{6}"),
        ("text/plain", "Hello\r\n\(armour)"), ("text/html", "<pre>\(armour)</pre>"),
        ("application/octet-stream; name=a.asc", armour),
    ]

    @Test(arguments: replies)
    func reply_encrypted_isRefused(type: String, body: String) {
        let refusal = #expect(throws: Refusal.self) { try Self.rewrite(type: type, body: body) }
        #expect(refusal?.reply.enhanced == "5.7.4")
        #expect(refusal?.reason.code == .encryptedReply)
        #expect(refusal?.reply.text.contains("send it unencrypted") == true)
    }
}
