// Mail of others to an address that only a team was given, on a real Postfix: refused as before,
// and kept with its proof.

import DNSTesting
import Foundation
import InternetMessage
import MailAuth
import MailCrypto
import PosternSQLite
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayUseByOthersTests {
    private static let inbox = "anna@home.example"

    /// A message with a signature of its author's domain; the content has the user's inbox.
    private static func message(
        from domain: String, to recipient: String, signer: DKIMSigner?, fields: [HeaderField] = []
    ) throws -> [UInt8] {
        var header = HeaderSection(
            fields + [
                HeaderField("From", "\"\(inbox)\" <offers@\(domain)>"),
                HeaderField("To", recipient), HeaderField("Subject", "For \(inbox)"),
                HeaderField("Message-ID", "<1.\(inbox)>"),
                HeaderField("Date", "Fri, 21 Nov 2025 05:00:00 +0000"),
            ])
        let body = Array("Dear \(inbox)\r\n".utf8)
        if let signer {
            let hasher = DKIMBodyHasher()
            hasher.update(body: body)
            header.fields.insert(
                try signer.sign(
                    header: header, bodyHash: hasher.finish(),
                    now: Int64(Date().timeIntervalSince1970)), at: 0)
        }
        return header.serialized + [0x0D, 0x0A] + body
    }

    @Test func strangersMail_signedOrNot_isRefusedAlikeAndKeptForTheUser() throws {
        let key = try Ed25519PrivateKey.generate()
        let record =
            "v=DKIM1; k=ed25519; p=\(Data(try key.rawPublicKey()).base64EncodedString())"
        let port = try FreePort.next()
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options { options in
                options.settings["http.listen"] = "127.0.0.1:\(port)"
                options.zone = """
                    {"juice.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]},
                     "home.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]},
                     "spam.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]},
                     "k1._domainkey.spam.example": {"TXT": ["\(record)"]},
                     "k1._domainkey.list.example": {"TXT": ["\(record)"]}}
                    """
            })
        defer { fixture.stop() }
        let spam = try DKIMSigner(domain: "spam.example", selector: "k1", key: .ed25519(key))
        let list = try DKIMSigner(domain: "list.example", selector: "k1", key: .ed25519(key))
        let messages: [[UInt8]] = [
            try Self.message(from: "spam.example", to: address, signer: spam),
            try Self.message(from: "spam.example", to: address, signer: spam),
            // Sent again to this address: signed for someone else.
            try Self.message(from: "spam.example", to: "mallory@spam.example", signer: spam),
            try Self.message(from: "forged.example", to: address, signer: nil),
            try Self.message(
                from: "list.example", to: address, signer: list,
                fields: [HeaderField("List-Post", "<mailto:list@list.example>")]),
        ]
        for message in messages {
            let result = try fixture.postfix.send(
                from: "<bounce@spam.example>", to: ["<\(address)>"], message: message)
            let reply = try #require(result.data)
            #expect(
                "\(reply)".contains(
                    "550 5.7.1 <bounce@spam.example>: unauthorized sender; the domain of From ("),
                "\(reply)")
        }
        let issued = try fixture.run([
            "api-key", "issue", "--operator", "--scope", "metrics:read",
        ])
        let reader = try #require(
            issued.split(whereSeparator: \.isWhitespace).first { $0.hasPrefix("pk_") })
        let metrics = try ManagedProcess.run(
            "/usr/bin/curl",
            [
                "-s", "--retry", "5", "--retry-all-errors", "-f", "-H",
                "Authorization: Bearer \(reader)", "http://127.0.0.1:\(port)/metrics",
            ]
        ).output
        #expect(metrics.contains("postern_uses_by_others_total{proof=\"signature\"} 2\n"))
        #expect(metrics.contains("postern_uses_by_others_total{proof=\"none\"} 2\n"))
        // The service writes what it collected before it ends.
        #expect(try fixture.end() == 0)
        let database = try SQLiteDatabase(path: fixture.folder + "/postern/postern.db")
        defer { try? database.close() }
        let rows = try database.rows(
            "SELECT domain, selector, count FROM uses_by_others ORDER BY domain"
        ).map { row in
            let (domain, selector, count): (String, String, Int64) = try (
                row["domain"], row["selector"], row["count"]
            )
            return "\(domain) \(selector) \(count)"
        }
        #expect(rows == ["  2", "spam.example k1 2"])
        // Nothing of the messages is stored: the inbox is in each of their parts.
        let all = try database.rows(
            "SELECT domain, selector FROM uses_by_others UNION ALL SELECT domain, '' FROM account_refusals"
        ).map { row in try (row["domain"] as String) + (row["selector"] as String) }.joined()
        #expect(!all.contains("anna") && !all.contains("home.example"))
    }
}
