// All DNS queries are made before the body, if the caller wants to keep the body.

import InternetMessage
import Testing

@testable import MailAuth

struct NativeAuthenticatorTests {
    private static let now: Int64 = 1_793_600_000
    private static let client = SMTPClientIdentity(
        address: "192.0.2.1", helo: "mail.app.example", mailFrom: "a@app.example")

    private static func dns() throws -> DKIMTestDNS {
        DKIMTestDNS(txt: [
            DKIMForge.keyName: "v=DKIM1; k=ed25519; p=\(try DKIMForge.publicKey())",
            "app.example": "v=spf1 ip4:192.0.2.2 -all",
            "_dmarc.app.example": "v=DMARC1; p=reject",
        ])
    }

    private static func session(
        _ message: DKIMTestMessage, _ dns: DKIMTestDNS
    ) -> any AuthenticationSession {
        NativeAuthenticator { dns }.begin(client: client, header: message.header, now: now)
    }

    @Test func session_prepared_asksNoDNSAfterBody() throws {
        let message = try DKIMForge.sign()
        let dns = try Self.dns()
        let session = Self.session(message, dns)
        let best = try #require(session.prepare())
        let asked = dns.questions.count
        #expect(asked >= 3)
        feed(message.body, chunk: 7) { session.update(body: $0) }
        let evidence = session.finish()
        #expect(dns.questions.count == asked)
        #expect(
            evidence == best && evidence.dkim.first?.result == .pass
                && evidence.dmarc?.result == .pass)
        // The result is the same without preparation.
        let plain = Self.session(message, try Self.dns())
        feed(message.body, chunk: 7) { plain.update(body: $0) }
        #expect(plain.finish() == evidence)
    }

    @Test func session_wrongBody_failsOnlyAtFinish() throws {
        let message = try DKIMForge.sign()
        let session = Self.session(message, try Self.dns())
        #expect(session.prepare()?.dkim.first?.result == .pass)
        feed(Array("Another body\r\n".utf8), chunk: 7) { session.update(body: $0) }
        let evidence = session.finish()
        #expect(evidence.dkim.first?.result == .fail && evidence.dmarc?.result == .fail)
    }

    /// A forged signature without the key is refused before the body too.
    @Test func session_signedFieldChanged_failsInPreparation() throws {
        var message = try DKIMForge.sign()
        message.header.fields = message.header.fields.map {
            $0.isNamed("From") ? HeaderField("From", "eve@app.example") : $0
        }
        #expect(Self.session(message, try Self.dns()).prepare()?.dkim.first?.result == .fail)
    }
}
