// Links and calendars in the body of a forward that would bypass the relay. Everything else stays
// octet for octet.

import InternetMessage
import MailAuth
import MailCrypto
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

/// A message of the team to anna, and its outcome.
struct Forwarded {
    let fixture: Fixture
    let decision: RelayDecision
    private let incoming: Message

    static let head =
        "From: Eva <eva@app.example>\r\nTo: annarelay2@relay.example\r\nSubject: x\r\nMessage-ID: <1@app.example>\r\n"

    init(
        _ message: String, memory: Int = 1 << 28, chunk: Int = 65_535,
        signer: (any MessageSigner)? = nil,
        fixture given: Fixture? = nil
    ) {
        let fixture = given ?? Self.fixture(memory: memory, signer: signer)
        self.fixture = fixture
        incoming = Message.parse(Array((Self.head + message).utf8))
        decision = Self.play(incoming, fixture, chunk: chunk)
    }

    static func fixture(memory: Int = 1 << 28, signer: (any MessageSigner)? = nil) -> Fixture {
        let settings = RelaySettings(
            relayDomains: ["relay.example", "second.example"], authservID: "mx.relay.example")
        let fixture = Fixture(
            evidence: AuthenticationEvidence.signed("app.example"), settings: settings,
            replyMemory: memory)
        guard let signer,
            let engine = RelayEngine(
                settings: settings, keys: Fixture.keys, directory: fixture.directory,
                authenticator: fixture.engine.authenticator,
                signer: signer,
                replyMemory: fixture.engine.replyMemory, randomness: fixture.engine.randomness)
        else { return fixture }
        return Fixture(directory: fixture.directory, engine: engine)
    }

    private static func play(_ message: Message, _ fixture: Fixture, chunk: Int) -> RelayDecision {
        let transaction = RelayTransaction(
            engine: fixture.engine,
            client: SMTPClientIdentity(
                address: "192.0.2.1", helo: "c.example", mailFrom: "b@app.example"),
            now: Fixture.now)
        do throws(Refusal) {
            try transaction.addRecipient("<annarelay2@relay.example>")
            for field in message.header.fields { transaction.addHeader(field) }
            try transaction.endHeader()
            var rest = message.body
            while !rest.isEmpty {
                try transaction.addBody(rest.prefix(chunk))
                rest = rest.dropFirst(chunk)
            }
        } catch {
            return .refuse(error)
        }
        return transaction.finish()
    }

    /// The outgoing body; nil if it was not replaced.
    var newBody: String? {
        for case .replaceBody(let pieces) in decision.modifications {
            return String(decoding: pieces.joined(), as: UTF8.self)
        }
        return nil
    }

    var body: String { newBody ?? String(decoding: incoming.body, as: UTF8.self) }

    var code: String {
        if case .refuse(let refusal) = decision.outcome {
            return "\(refusal.reply.code) \(refusal.reply.enhanced)"
        }
        return "\(decision.outcome)"
    }

    func reverse(_ address: String) -> String {
        AddrSpec(envelope: address).map {
            fixture.engine.tokens.reverse(account: Fixture.anna.number, correspondent: $0).localPart
                + "@relay.example"
        } ?? ""
    }

    /// The address in the form of a link.
    func link(_ address: String) -> String {
        "mailto:" + reverse(address).replacing("=", with: "%3D")
    }
}

@Suite(.blocking) struct BodyLinkTests {
    private static let html = "Content-Type: text/html; charset=utf-8\r\n\r\n"
    private static let plain = "Content-Type: text/plain; charset=utf-8\r\n\r\n"

    @Test(arguments: [
        (#"<a href="mailto:eva@app.example">x</a>"#, #"<a href="{eva@app.example}">x</a>"#),
        (
            #"<A HREF = 'MAILTO:eva@app.example?Subject=Hi%20you&amp;cc=max%40app.example'>x</A>"#,
            #"<A HREF = '{eva@app.example}?Subject=Hi%20you&amp;cc={{max@app.example}}'>x</A>"#
        ),
        (#"<a href=mailto:eva@app.example>x</a>"#, #"<a href={eva@app.example}>x</a>"#),
        (
            #"<a href="mailto:eva@app.example,max@app.example">x</a>"#,
            #"<a href="{eva@app.example},{{max@app.example}}">x</a>"#
        ),
        (
            #"<a href="mailto:eva@app.example?bcc=spy@app.example">x</a>"#,
            #"<a href="{eva@app.example}">x</a>"#
        ),
        (
            #"<a href="mailto:?to=eva@app.example&subject=x">x</a>"#,
            #"<a href="mailto:?to={{eva@app.example}}&amp;subject=x">x</a>"#
        ),
        // References, tabs and line breaks, as in obfuscated addresses.
        (
            "<a href=\"&#109;&#97;&#x69;l&#116;&#111;&#58;&#101;va&#64;app&#46;example\">x</a>",
            #"<a href="{eva@app.example}">x</a>"#
        ),
        (
            "<a href=\"mailto&colon;eva&commat;app.example\">x</a>",
            #"<a href="{eva@app.example}">x</a>"#
        ),
        ("<a href=\" mail\r\nto:eva@app\t.example\">x</a>", #"<a href=" {eva@app.example}">x</a>"#),
        ("<a href=\"m&#97;ilto:%65va@app.example\">x</a>", #"<a href="{eva@app.example}">x</a>"#),
        // A form, a script, a comment for Outlook.
        (#"<form action="mailto:eva@app.example">"#, #"<form action="{eva@app.example}">"#),
        (
            #"<b onclick="location='mailto:eva@app.example'">"#,
            #"<b onclick="location='{eva@app.example}'">"#
        ),
        (
            #"<!--[if mso]><a href="mailto:eva@app.example"><![endif]-->"#,
            #"<!--[if mso]><a href="{eva@app.example}"><![endif]-->"#
        ),
        ("<p>Write to mailto:eva@app.example.</p>", "<p>Write to {eva@app.example}.</p>"),
        (
            "<p>(mailto:eva@app.example)&lt;mailto:eva@app.example&gt;</p>",
            "<p>({eva@app.example})&lt;{eva@app.example}&gt;</p>"
        ),
    ])
    func link_mailAddressInHTML_isRewritten(_ text: String, _ expected: String) {
        let result = Forwarded(Self.html + text + "\r\n")
        #expect(result.body == fill(expected, result) + "\r\n")
        #expect(result.decision.reasons.contains { $0.code == .bodyRewritten })
        for encoding in ["base64", "quoted-printable"] {
            let encoded = TransferEncoding.parse(encoding).encode(Array((text + "\r\n").utf8)) ?? []
            let result = Forwarded(
                "Content-Transfer-Encoding: \(encoding)\r\n" + Self.html
                    + String(decoding: encoded, as: UTF8.self))
            let decoded = TransferEncoding.parse(encoding).decode(Array(result.body.utf8)[...])
            #expect(
                decoded.map { String(decoding: $0.bytes, as: UTF8.self) } == fill(expected, result)
                    + "\r\n", "\(encoding)")
            #expect(result.body.split(separator: "\r\n").allSatisfy { $0.utf8.count <= 76 })
        }
    }

    @Test(arguments: [
        (
            "Unsubscribe: <mailto:leave@app.example?subject=x>, or mailto:eva@app.example.",
            "Unsubscribe: <{leave@app.example}?subject=x>, or {eva@app.example}."
        ),
        ("MAILTO:eva@app.example", "{eva@app.example}"),
        (
            "[x](mailto:eva@app.example) 'mailto:eva@app.example'",
            "[x]({eva@app.example}) '{eva@app.example}'"
        ),
    ])
    func link_mailAddressInText_isRewritten(_ text: String, _ expected: String) {
        let result = Forwarded(Self.plain + text + "\r\n")
        #expect(result.body == fill(expected, result) + "\r\n")
    }

    private func fill(_ text: String, _ result: Forwarded) -> String {
        var output = text
        for address in ["eva@app.example", "max@app.example", "leave@app.example"] {
            let link = result.link(address)
            output = output.replacing("{{\(address)}}", with: link.dropFirst(7)).replacing(
                "{\(address)}", with: link)
        }
        return output
    }

    @Test(arguments: [
        "<p>eva@app.example</p><a href=\"https://app.example/x?mailto=eva@app.example\">x</a>",
        "<a href=\"mailto:?subject=Share\">x</a>",
        "<a href=\"mailto:annarelay2@relay.example\">me</a>",
        "<a href=\"mailto:{{ address }}\">x</a>", "mailto:",
        "The mailto: scheme",
        "<p>m&amp;ailto &#1;&#99999999999; &", "&#109;",
    ])
    func link_notOfMail_isUnchanged(_ text: String) {
        for type in [Self.html, Self.plain] {
            let result = Forwarded(type + text)
            #expect(result.newBody == nil && result.code == "relay")
        }
    }

    @Test(arguments: [
        "Content-Type: multipart/signed; protocol=\"application/pgp-signature\"; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<a href=\"mailto:eva@app.example\">\r\n--b\r\nContent-Type: application/pgp-signature\r\n\r\nx\r\n--b--\r\n",
        "Content-Type: multipart/signed; protocol=\"application/pkcs7-signature\"; boundary=b\r\n\r\n--b\r\nContent-Type: text/calendar\r\n\r\nORGANIZER:mailto:eva@app.example\r\n--b--\r\n",
        "Content-Type: application/pkcs7-mime; smime-type=signed-data\r\n\r\nmailto:eva@app.example\r\n",
        "Content-Type: text/plain\r\n\r\n-----BEGIN PGP SIGNED MESSAGE-----\r\nHash: SHA256\r\n\r\nmailto:eva@app.example\r\n-----BEGIN PGP SIGNATURE-----\r\n\r\nx\r\n-----END PGP SIGNATURE-----\r\n",
        "Content-Type: text/html\r\nContent-Disposition: attachment; filename=page.html\r\n\r\n<a href=\"mailto:eva@app.example\">\r\n",
    ])
    func bodyLink_signedOrAttached_isUnchanged(_ message: String) {
        let result = Forwarded(message)
        #expect(result.newBody == nil && result.code == "relay")
    }

    @Test func bodyLink_besideSignedBlock_isRewritten() {
        let block =
            "-----BEGIN PGP SIGNED MESSAGE-----\r\n\r\nmailto:eva@app.example\r\n-----BEGIN PGP SIGNATURE-----\r\n\r\nx\r\n-----END PGP SIGNATURE-----\r\n"
        let result = Forwarded(
            Self.plain + "mailto:max@app.example\r\n" + block + "mailto:max@app.example\r\n")
        let link = result.link("max@app.example")
        #expect(result.body == "\(link)\r\n\(block)\(link)\r\n")
    }

    @Test func bodyLink_attachedMessageOrWideCharset_isRewritten() {
        let inner =
            "Content-Type: message/rfc822\r\n\r\nSubject: x\r\nContent-Type: text/html\r\n\r\n<a href=\"mailto:eva@app.example\">x</a>\r\n"
        let nested = Forwarded(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\(inner)\r\n--b--\r\n")
        #expect(nested.body.contains("\"\(nested.link("eva@app.example"))\""))
        let wide = Array("<a href=\"mailto:eva@app.example\">gr\u{FC}\u{DF}e</a>".utf16).flatMap {
            [UInt8($0 & 255), UInt8($0 >> 8)]
        }
        let text = String(decoding: Base64.encode(wide), as: UTF8.self)
        let result = Forwarded(
            "Content-Type: text/html; charset=utf-16le\r\nContent-Transfer-Encoding: base64\r\n\r\n"
                + text)
        let decoded = Charset.decode(Base64.decode(Array(result.body.utf8)).bytes, "utf-16le")
        #expect(decoded == "<a href=\"\(result.link("eva@app.example"))\">gr\u{FC}\u{DF}e</a>")
    }

    @Test func bodyLink_inALongLine_breaksBeforeTheAttribute() {
        let filler = String(repeating: "y", count: 950)
        let result = Forwarded(Self.html + "\(filler)<a href=\"mailto:eva@app.example\">x</a>\r\n")
        #expect(
            result.body == "\(filler)<a\r\nhref=\"\(result.link("eva@app.example"))\">x</a>\r\n")
        let text = Forwarded(Self.plain + "\(filler) mailto:eva@app.example\r\n")
        #expect(text.newBody == nil && text.decision.reasons.contains { $0.code == .linksLeft })
    }

    @Test func bodyLink_acrossChunks_isRewritten() {
        let text = String(repeating: "line of text\r\n", count: 2_000)
        let message = Self.html + text + "<a href=\"mailto:eva@app.example\">x</a>\r\n" + text
        let whole = Forwarded(message)
        #expect(whole.newBody?.contains(whole.link("eva@app.example")) == true)
        for chunk in [1, 7, 1_000, 16_384] {
            #expect(Forwarded(message, chunk: chunk).newBody == whole.newBody)
        }
    }

    // MARK: Signature

    /// Signs with the hash of the body that it received.
    private struct HashSigner: MessageSigner {
        func begin() -> any SigningSession { Session() }
        final class Session: SigningSession {
            var bytes: [UInt8] = []
            func update(body: UnsafeRawBufferPointer) { bytes += body }
            func finish(header: HeaderSection, domain: String, now: Int64) throws -> [HeaderField] {
                [
                    HeaderField(
                        "DKIM-Signature",
                        "bh="
                            + String(
                                decoding: Base64.encodeUnbroken(SHA256.hash(bytes)), as: UTF8.self))
                ]
            }
        }
    }

    @Test(arguments: ["<a href=\"mailto:eva@app.example\">x</a>\r\n", "<p>nothing</p>\r\n"])
    func signature_ofForward_coversTheSentBody(_ text: String) {
        let result = Forwarded(Self.html + text, signer: HashSigner())
        let hash = String(
            decoding: Base64.encodeUnbroken(SHA256.hash(Array(result.body.utf8))), as: UTF8.self)
        let signatures = result.decision.modifications.compactMap { change -> String? in
            if case .insertHeader(_, let field) = change, field.isNamed("DKIM-Signature") {
                return field.unfoldedValue
            }
            return nil
        }
        #expect(signatures == ["bh=\(hash)"])
    }

    // MARK: Unreadable bodies

    @Test func body_notReadableToItsEnd_isRefused() {
        var deep = ""
        for level in 0..<40 {
            deep += "Content-Type: multipart/mixed; boundary=b\(level)\r\n\r\n--b\(level)\r\n"
        }
        #expect(Forwarded(deep).code == "550 5.6.0")
        let many =
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
            + String(repeating: "--b\r\n\r\nx\r\n", count: MIMEPart.maximumPartCount + 1)
        #expect(Forwarded(many).code == "550 5.6.0")
        let damaged =
            "Content-Type: text/calendar\r\nContent-Transfer-Encoding: base64\r\n\r\nT1JHQU5JWkVS**OmV2YUBhcHAuZXhhbXBsZQ==\r\n"
        #expect(Forwarded(damaged).code == "550 5.6.0")
    }

    /// A reader that backtracks for each of these takes too long.
    @Test(arguments: [
        "mailto:", "mailto:a@b ", "=\"mailto:a@b", "='mailto:", "&#109;", "m&#9;", "&", "&#",
        "mail\tto:", "m&#97;ilto:",
        "mailto:a@b,", "<a href=\"mailto:a@b\">", ":",
        "mailto:a@b?to=", "-----BEGIN PGP SIGNATURE-----\r\nmailto:a@b\r\n",
    ])
    func bodyLink_floodOfFragments_isRelayed(_ piece: String) {
        let text = String(repeating: piece, count: 400_000 / piece.utf8.count)
        for type in ["html", "plain", "calendar"] {
            let result = Forwarded("Content-Type: text/\(type)\r\n\r\n" + text)
            #expect(result.code == "relay")
        }
    }

    @Test func bodyLink_addressesToStore_areBounded() {
        let links = (0..<300).map { "<a href=\"mailto:Eva\($0)@app.example\">x</a>\r\n" }.joined()
        let html = Forwarded(Self.html + links)
        #expect(html.code == "relay" && html.fixture.directory.storedCount == 200)
        #expect(
            html.decision.reasons.contains { $0.code == .linksLeft && $0.detail.hasPrefix("100 ") })
        let attendees = (0..<300).map { "ATTENDEE:mailto:Eva\($0)@app.example\r\n" }.joined()
        let calendar = Forwarded("Content-Type: text/calendar\r\n\r\n" + attendees)
        #expect(calendar.code == "550 5.6.0" && calendar.fixture.directory.storedCount == 0)
    }

    // MARK: Memory

    private static let calendar =
        "Content-Type: text/calendar\r\n\r\nBEGIN:VCALENDAR\r\nORGANIZER:mailto:eva@app.example\r\nEND:VCALENDAR\r\n"

    private static func late(_ octets: Int, _ part: String) -> String {
        let line = String(repeating: "QUJD", count: 19) + "\r\n"
        return
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n"
            + String(repeating: line, count: octets / line.utf8.count)
            + "--b\r\n\(part)\r\n--b--\r\n"
    }

    @Test(arguments: [
        calendar, "Content-Type: text/html\r\n\r\n<a href=\"mailto:eva@app.example\">x</a>",
    ])
    func forward_lateChange_isDeferredOnce(_ part: String) {
        let message = Self.late(6_000_000, part)
        let fixture = Forwarded.fixture()
        let first = Forwarded(message, fixture: fixture)
        #expect(first.code == "452 4.3.1" && first.decision.reasons.first?.code == .forwardMemory)
        #expect(fixture.directory.storedCount == 0)
        let again = Forwarded(message, fixture: fixture)
        #expect(again.code == "relay" && again.newBody?.contains("eva@app.example") == false)
        #expect(fixture.engine.replyMemory.forwards.inUse == 0)
    }

    @Test func forward_neverFits_isRefusedOrUnchanged() {
        let calendar = Forwarded(Self.late(3_000_000, Self.calendar), memory: 10_000_000)
        #expect(calendar.code == "552 5.3.4")
        let link = Forwarded(
            Self.late(
                3_000_000, "Content-Type: text/html\r\n\r\n<a href=\"mailto:eva@app.example\">x</a>"
            ), memory: 10_000_000)
        #expect(
            link.code == "relay" && link.newBody == nil
                && link.decision.reasons.contains { $0.code == .linksLeft })
    }

    @Test func forward_manyAtOnce_keepsMemoryBounded() throws {
        let fixture = Forwarded.fixture()
        let line = Array(repeating: UInt8(ascii: "x"), count: 76) + [0x0D, 0x0A]
        let body = Array(repeatElement(line, count: 1_000_000 / line.count).joined())
        let transactions = try (0..<200).map { _ in
            let transaction = RelayTransaction(
                engine: fixture.engine,
                client: SMTPClientIdentity(
                    address: "192.0.2.1", helo: "c.example", mailFrom: "b@app.example"),
                now: Fixture.now)
            try transaction.addRecipient("<annarelay2@relay.example>")
            for field in Message.parse(Array((Forwarded.head + "\r\n").utf8)).header.fields {
                transaction.addHeader(field)
            }
            try transaction.endHeader()
            return transaction
        }
        var most = 0
        for start in stride(from: 0, to: body.count, by: 65_535) {
            for transaction in transactions {
                try transaction.addBody(body[start..<min(body.count, start + 65_535)])
                most = max(most, fixture.engine.replyMemory.forwards.inUse)
            }
        }
        #expect(most <= 4_000_000)
        // One after the other, as it is the same message.
        for transaction in transactions.prefix(50) {
            #expect(transaction.finish().outcome == .relay)
            transaction.end()
        }
    }

    @Test func forward_toTwoUsers_copiesTheOriginal() throws {
        let fixture = Forwarded.fixture()
        let message = Message.parse(
            Array(
                (Forwarded.head + Self.html + "<a href=\"mailto:eva@app.example\">x</a>\r\n").utf8))
        let transaction = RelayTransaction(
            engine: fixture.engine,
            client: SMTPClientIdentity(
                address: "192.0.2.1", helo: "c.example", mailFrom: "b@app.example"),
            now: Fixture.now
        ) { true }
        for local in ["annarelay2", "bobrelay22"] {
            try transaction.addRecipient("<\(local)@relay.example>")
        }
        for field in message.header.fields { transaction.addHeader(field) }
        try transaction.endHeader()
        try transaction.addBody(message.body)
        let decision = transaction.finish()
        #expect(
            decision.copies.count == 1
                && transaction.original.map { $0.body.elementsEqual(message.body) } == true)
        let bodies = decision.modifications.compactMap {
            if case .replaceBody(let pieces) = $0 { Array(pieces.joined()) } else { nil }
        }
        transaction.end()
        let anna = Forwarded(
            Self.html + "<a href=\"mailto:eva@app.example\">x</a>\r\n", fixture: fixture)
        #expect(bodies == [Array(anna.body.utf8)])
    }
}
