// Small regression tests for the attacks of Tools/attack.py that succeeded.

import Foundation
import InternetMessage
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ReplyRewritingTests {
    private static let engine = Fixture(evidence: .init()).engine

    /// The decoded text of a reply of a user with this inbox, or the reason for its refusal.
    private static func said(
        _ text: [UInt8], type: String, encoding: String = "8bit",
        inbox: String = "anna.berg@inbox.example",
        relay: AddrSpec = Fixture.anna.relayAddress
    ) throws -> String {
        let inbox = try #require(AddrSpec(envelope: inbox))
        let own = UserInbox(address: InboxAddress(inbox), isVerified: true)
        let account = RelayAccount(
            number: Fixture.anna.number, relayAddress: relay, isForwardingOn: true,
            hasLiveGrant: true,
            inbox: own,
            inboxes: [own], sharedName: nil, sources: Fixture.anna.sources)
        let header = HeaderSection([
            HeaderField("From", "<\(inbox.wireForm)>"), HeaderField("Content-Type", type),
            HeaderField("Content-Transfer-Encoding", encoding),
        ])
        let rewriting = ReplyRewriting(
            engine: engine, account: account, header: header, envelopeSender: inbox.wireForm,
            isAutomatic: false,
            now: Fixture.now, hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        do throws(Refusal) {
            let outgoing = try rewriting.rewrite(body: text)
            let body = (outgoing.body ?? [text[...]]).reduce(into: [UInt8]()) { $0 += $1 }
            let part = MIMEPart.parse(header: outgoing.header, body: body)
            let bytes = part.transferEncoding.decode(body[...])?.bytes ?? body
            return part.contentType.charset.flatMap { Charset.decode(bytes, $0) }
                ?? String(decoding: bytes, as: UTF8.self)
        } catch {
            return "\(error.reply.code) \(error.reason.code)"
        }
    }

    private static func said(
        _ text: String, type: String = "text/plain; charset=utf-8"
    ) throws -> String {
        try said(Array(text.utf8), type: type)
    }

    /// The letters of a relay address must not be read as an encoding with the mark before them:
    /// `=ae` is an octet in quoted-printable.
    @Test(arguments: [
        "https://x.example/?u={}", "a={}", "mailto:?to={}", "https://x.example/#u={}", "x%{}",
        "email+{}", "prvs=1234abcd={}",
        #"{"mail":"\n{}"}"#, #"\t{}"#, "x&shy;{}", "data-x=\"u={}\"", "\u{1B}[1m{}",
        "name\u{200B}{}", "name\u{AD}{}",
        "my address is...{}", "is..{}",
    ])
    func typedInbox_behindMarksThatEncode_becomesTheRelayAddress(_ form: String) throws {
        let relay = AddrSpec(localPart: "aecafe2345", domain: "relay.example")
        let text = form.replacing("{}", with: "anna.berg@inbox.example")
        for type in ["text/plain", "text/html"] {
            let said = try Self.said(Array(text.utf8), type: "\(type); charset=utf-8", relay: relay)
            #expect(
                said.contains("aecafe2345@relay.example") && !said.contains("anna.berg"),
                "\(type) \(said)")
        }
    }

    /// Marks and letters that look like those of ASCII, and letters of two characters as macOS
    /// writes them.
    @Test(arguments: [
        ("anna.berg@inbox.example", "anna\u{2024}berg@inbox.example"),
        ("anna.berg@inbox.example", "an\u{FE0F}na.berg@inbox.example"),
        ("anna.berg@inbox.example", "\u{1D41A}nn\u{1D41A}.berg@inbox.example"),
        ("anna.berg@inbox.example", "\u{24D0}nna.berg@inbox.example"),
        ("j\u{F6}rg.b@b\u{FC}cher.example", "jo\u{308}rg.b@bu\u{308}cher.example"),
        ("jo\u{308}rg.b@home.example", "j\u{F6}rg.b@home.example"),
    ])
    func typedInbox_inLettersThatLookAlike_becomesTheRelayAddress(
        inbox: String, typed: String
    ) throws {
        let said = try Self.said(
            Array("Hello \(typed) there".utf8), type: "text/plain; charset=utf-8", inbox: inbox)
        #expect(said == "Hello annarelay2@relay.example there")
    }

    /// Markup between two letters that a browser does not show must not divide the word.
    @Test(arguments: [
        "<!-- -->", "<!--x-->", "<style></style>", "<style>p{}</style>", "<title>x</title>",
        "<?x?>", "<![CDATA[]]>", "<b></b>",
    ])
    func typedInbox_dividedByWhatIsNotShown_becomesTheRelayAddress(_ markup: String) throws {
        for place in [
            "an\(markup)na.berg@inbox.example", "anna.berg@in\(markup)box.example",
            "anna.berg\(markup)@inbox.example",
        ] {
            let said = try Self.said(
                "<p>My address: \(place)</p>", type: "text/html; charset=utf-8")
            let shown = said.replacing(markup, with: "")
            #expect(
                shown.contains("annarelay2@relay.example") && !shown.contains("berg"), "\(said)")
        }
    }

    /// A calendar file with another declared type: the fold of a line must not divide an address.
    @Test(
        arguments: ["BEGIN:VCALENDAR", "BEGIN:VCARD", "dn: uid=x"],
        ["application/octet-stream", "application/json", "application/x-foo"])
    func file_withAFoldedAddress_holdsItNoLonger(_ head: String, type: String) throws {
        for fold in ["\r\n ", "\r\n\t"] {
            let file = "\(head)\r\nATTENDEE:mailto:anna.berg@in\(fold)box.example\r\nEND:X\r\n"
            let said = try Self.said(
                Array(Data(file.utf8).base64EncodedString().utf8), type: type, encoding: "base64")
            #expect(
                said.hasPrefix("550") || !said.replacing(fold, with: "").contains("berg"), "\(said)"
            )
        }
    }

    /// Text in a quotation that only some readings take for an address must not be taken for the
    /// user's.
    @Test(arguments: [
        "mary.q88z@.other.example", "mary.q88z<b>@</b>other.example",
        "bQBhAHIAeQAuAHEAOAA4AHoAQABvAHQAaABlAHIALgBlAHgAYQBtAHAAbABlAA==",
    ])
    func quotation_withAnUnreadAddress_goesAsAWhole(_ address: String) throws {
        for guess in [address, address.replacing("mary.q88z", with: "anna.berg")] {
            let said = try Self.said(
                "Yes, please.\r\n\r\nOn Monday juice wrote:\r\n> hi \(guess)\r\n> ok\r\n")
            #expect(
                said.hasPrefix("Yes, please.") && !said.contains("berg") && !said.contains("q88z"),
                "\(said)")
        }
    }

    /// One reply confirms only a few guesses, in any form. Otherwise a refusal would reveal one of
    /// thousands.
    @Test(arguments: [
        "{}<b>@</b>inbox.example", "=?utf-8?Q?{}=40inbox.example?=", "{}\u{FE0F}@inbox.example",
        "{}&#64;inbox.example",
    ])
    func typedGuesses_many_areAnsweredAlike(_ form: String) throws {
        func said(_ last: String) throws -> Bool {
            let guesses = (0..<40).map { "guess\($0)" } + [last]
            let text = guesses.map { form.replacing("{}", with: $0) }.joined(separator: "\r\n")
            return try Self.said("\(text)\r\n").hasPrefix("550")
        }
        #expect(try said("anna.berg") == said("hans.berg"))
    }

    /// A mailing list appended its own text to a part that it did not decode.
    @Test(arguments: [
        "Hello, I am anna.berg@inbox.example", "Hello, I am anna.berg@inbox.example\r\n",
        "Hello, it is I.",
    ])
    func base64_textBehindItsPadding_isOneText(text: String) throws {
        func said(_ text: String, _ behind: String) throws -> String {
            try Self.said(
                Array("\(Data(text.utf8).base64EncodedString())\(behind)".utf8),
                type: "text/plain; charset=utf-8",
                encoding: "base64")
        }
        let padded = text + (text.utf8.count % 3 == 0 ? "!" : "")
        let first = try said(padded, "\r\n-- \r\nList of juice, anna.berg@inbox.example\r\n")
        #expect(
            first.hasPrefix("Hello, ")
                && first.hasSuffix("-- \r\nList of juice, annarelay2@relay.example\r\n"), "\(first)"
        )
        #expect(!first.contains("anna.berg"))
        // Not text: octets that continue the encoding.
        let second = try said(padded + " anna.berg@inbox.example", "=\u{1}\r\n")
        #expect(second == "550 unrewritable-part" || !second.contains("anna.berg"), "\(second)")
    }

    @Test(arguments: [
        // Backslashes of CSS, JavaScript and RTF.
        "anna.berg\\40 inbox.example", "anna.berg\\000040inbox.example",
        "anna.berg\\100inbox.example",
        "anna.berg\\u{40}inbox.example",
        "anna.berg\\'40inbox.example", "anna.berg\\u64?inbox.example",
        // Comments in an address (RFC 5322 section 3.4.1).
        "anna.berg(home)@inbox.example", "anna.berg@(home)inbox.example",
        // Characters that replace a dot in East Asian scripts.
        "anna.berg@inbox\u{3002}example", "anna.berg@inbox\u{FF0E}example",
        // Direction marks are invisible.
        "\u{202A}anna.berg\u{202C}@inbox.example",
    ])
    func reply_inboxInMachineReadableForm_isFound(form: String) throws {
        let text = try Self.said("Hello \(form) there").filter {
            $0 != "\u{202A}" && $0 != "\u{202C}"
        }
        #expect(text.hasPrefix("Hello annarelay2") && text.hasSuffix(" there"), "\(text)")
        #expect(!text.contains("berg") && !text.contains("inbox"))
    }

    @Test func typedInbox_inBase64OfALink_becomesTheRelayAddress() throws {
        for (before, after) in [
            ("user=anna.berg@inbox.example&ok=1", "user=annarelay2@relay.example&ok=1"),
            ("anna.berg@inbox.example", "annarelay2@relay.example"),
        ] {
            let link = { (content: String) in
                "see https://shop.example/?u=\(Data(content.utf8).base64EncodedString().replacing("=", with: ""))&v=1 soon"
            }
            #expect(try Self.said(link(before)) == link(after))
        }
        // Padding stays if there was any. Text that needed none does not show whether its writer
        // pads.
        let padded = { (content: String) in "token \(Data(content.utf8).base64EncodedString()) end"
        }
        #expect(
            try Self.said(padded("anna.berg@inbox.example")) == padded("annarelay2@relay.example"))
        #expect(
            try Self.said(padded("for anna.berg@inbox.example"))
                == padded("for annarelay2@relay.example").replacing("=", with: ""))
    }

    @Test func base64_inLines_keepsItsLines() throws {
        func block(_ address: String) -> String {
            let octets = Array(
                ("A letter of some length to " + address
                    + String(repeating: ", and so on", count: 12)).utf8)
            return
                "-----BEGIN-----\r\n\(String(decoding: Base64.encode(octets), as: UTF8.self))-----END-----\r\n"
        }
        #expect(
            try Self.said(block("anna.berg@inbox.example")) == block("annarelay2@relay.example"))
    }

    /// A property of 40 characters of base64 must not include the name of the next property.
    @Test func base64_beforeAnotherLine_endsThere() throws {
        func card(_ address: String) -> String {
            "NOTE;ENCODING=BASE64:\(Data(address.utf8).base64EncodedString())\r\nORG:Rhabarber\r\n"
        }
        let before = card("aolfqf-eytq@oecw-vtppw.example")
        #expect(before.split(separator: "\r\n")[0].count == 61)
        let after = try Self.said(
            Array(before.utf8), type: "text/plain", inbox: "aolfqf-eytq@oecw-vtppw.example")
        #expect(after == card("annarelay2@relay.example"))
    }

    /// In windows-1252 the letter is one octet, which is not valid UTF-8.
    @Test func typedInbox_nonASCIIDomain_becomesTheRelayAddress() throws {
        let inbox = "anna@xn--bcherfreund-thb.example"
        for (charset, octets) in [
            ("iso-8859-1", [0xFC] as [UInt8]), ("macintosh", [0x9F]), ("utf-8", [0xC3, 0xBC]),
        ] {
            let text =
                Array("to anna@b".utf8) + octets + Array("cherfreund.example, ".utf8) + octets
                + Array("\r\n".utf8)
            let said = try Self.said(text, type: "text/plain; charset=\(charset)", inbox: inbox)
            #expect(said == "to annarelay2@relay.example, ü\r\n", "\(charset): \(said)")
        }
    }

    @Test func typedInbox_fullWidthAtSign_becomesTheRelayAddress() throws {
        for (charset, octets) in [
            ("euc-jp", [0xA1, 0xF7] as [UInt8]), ("hz-gb-2312", Array("~{#@~}".utf8)),
        ] {
            let said = try Self.said(
                Array("to anna.berg".utf8) + octets + Array("inbox.example\r\n".utf8),
                type: "text/plain; charset=\(charset)")
            #expect(
                said.hasPrefix("to annarelay2") && said.hasSuffix("relay.example\r\n"),
                "\(charset): \(said)")
        }
    }

    @Test func typedInbox_utf16LabelledAsUTF8_becomesTheRelayAddress() throws {
        let text: [UInt8] = "Dear team, write to anna.berg@inbox.example\r\n".utf8.flatMap {
            [$0, 0] as [UInt8]
        }
        let said = try Self.said(
            Base64.encode(text), type: "text/plain; charset=utf-8", encoding: "base64")
        #expect(
            said.utf8.filter { $0 != 0 }.elementsEqual(
                "Dear team, write to annarelay2@relay.example\r\n".utf8))
    }

    /// An LF that is half of a character must not become a line break.
    @Test func typedInbox_utf32InQuotedPrintable_becomesTheRelayAddress() throws {
        let text: [UInt8] = "write to anna.berg@inbox.example\r\nRhabarber\r\n".utf8.flatMap {
            [$0, 0, 0, 0] as [UInt8]
        }
        let encoded: [UInt8] = text.flatMap { octet in
            Array("=".utf8) + Array((octet < 16 ? "0" : "").utf8)
                + Array(String(octet, radix: 16, uppercase: true).utf8)
        }
        #expect(
            try Self.said(
                encoded, type: "text/plain; charset=utf-32le", encoding: "quoted-printable")
                == "write to annarelay2@relay.example\r\nRhabarber\r\n")
    }

    @Test func typedInbox_foldedInACalendar_becomesTheRelayAddress() throws {
        let said = try Self.said(
            "ORGANIZER;X-A=\"anna.berg%4\r\n 0inbox.example\":mailto:boss@app.example\r\nX-B:anna.berg&#6\r\n\t4;inbox.example\r\n",
            type: "text/calendar")
        let unfolded = said.replacing("\r\n ", with: "").replacing("\r\n\t", with: "")
        #expect(
            unfolded
                == "ORGANIZER;X-A=\"annarelay2%40relay.example\":mailto:boss@app.example\r\nX-B:annarelay2&#64;relay.example\r\n"
        )
    }

    @Test func archive_labelledAsText_isRefused() throws {
        // A stored block of deflate in gzip.
        let content = Array("Dear anna.berg@inbox.example, hello".utf8)
        let gzip =
            [
                0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1, UInt8(content.count), 0,
                ~UInt8(content.count), 0xFF,
            ] + content
            + [UInt8](repeating: 0, count: 8)
        for type in ["text/plain", "application/json", "text/html"] {
            #expect(
                try Self.said(Base64.encode(gzip), type: type, encoding: "base64")
                    == "550 unrewritable-part", "\(type)")
        }
    }

    // MARK: PDF

    /// A PDF of one stream with a stored deflate block.
    private static func pdf(
        _ content: String, dictionary: String = "", isCompressed: Bool
    ) -> [UInt8] {
        let octets = Array(content.utf8)
        let block =
            [
                0x78, 0x9C, 1, UInt8(octets.count & 255), UInt8(octets.count >> 8),
                ~UInt8(octets.count & 255),
                ~UInt8(octets.count >> 8),
            ] + octets
        return Array("%PDF-1.7\n4 0 obj\n<<\(dictionary)/Filter/FlateDecode>>\nstream\r\n".utf8)
            + (isCompressed ? block : octets)
            + Array("\nendstream\nendobj\n".utf8)
    }

    private static func hexadecimal(_ octets: some Sequence<UInt8>) -> String {
        octets.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16, uppercase: true) }
            .joined()
    }

    @Test(arguments: [true, false])
    func pdf_hexadecimalInbox_isRefused(isCompressed: Bool) throws {
        let address = Array("anna.berg@inbox.example".utf8)
        let wide: [UInt8] = [0xFE, 0xFF] + address.flatMap { [0, $0] as [UInt8] }
        let forms = [
            "BT <\(Self.hexadecimal(address))> Tj ET", "<\(Self.hexadecimal(wide))>Tj",
            "< \(address.map { Self.hexadecimal([$0]) }.joined(separator: "\n")) > Tj",
            // An array with numbers that move the letters.
            "[\(address.map { "<\(Self.hexadecimal([$0]))>" }.joined(separator: " -12.5"))] TJ",
            // Next to text that is not a string.
            "<</A<6G>/B(<<)>> <\(Self.hexadecimal(address))> Tj",
        ]
        for form in forms {
            let said = try Self.said(
                Base64.encode(Self.pdf(form, isCompressed: isCompressed)), type: "application/pdf",
                encoding: "base64")
            #expect(said == "550 unrewritable-part", "\(form)")
        }
        let harmless = "BT <\(Self.hexadecimal("anna.other@inbox.test".utf8))> Tj ET"
        let said = try Self.said(
            Base64.encode(Self.pdf(harmless, isCompressed: isCompressed)), type: "application/pdf",
            encoding: "base64")
        #expect(said.hasPrefix("%PDF"))
    }

    // MARK: Unknown charsets

    private static func inEBCDIC(_ text: String) throws -> [UInt8] {
        try #require(Charset.encode(text, "ibm037"))
    }

    @Test func unknownCharset_notLikeASCII_isRefused() throws {
        for label in ["x-none", "x-unknown"] {
            let type = "text/plain; charset=\(label)"
            #expect(
                try Self.said(
                    Base64.encode(Self.inEBCDIC("I am anna.berg@inbox.example, hello")), type: type,
                    encoding: "base64")
                    == "550 unrewritable-part")
            #expect(
                try Self.said(
                    Base64.encode(Self.inEBCDIC("Nothing of that kind stands here")), type: type,
                    encoding: "base64")
                    == "550 unrewritable-part")
            // A few lines, and shifted ones.
            #expect(
                try Self.said(Self.inEBCDIC("anna.berg@inbox.example") + [0x0D, 0x0A], type: type)
                    == "550 unrewritable-part")
            #expect(
                try Self.said("\u{1B}(B\u{E}anna\u{F}", type: type) == "550 unrewritable-part"
                    || label == "x-unknown")
        }
        #expect(
            try Self.said(
                Array("write to anna+AEA-inbox.example".utf8), type: "text/plain; charset=x-none",
                inbox: "anna@inbox.example")
                == "550 unrewritable-part")
    }

    @Test func unknownCharset_likeASCII_isRelayed() throws {
        let prose = "Dear colleagues,\r\n\r\nthe meeting is on Monday (10+2 people, ~5 pages).\r\n"
        #expect(try Self.said(prose, type: "text/plain; charset=x-none") == prose)
        #expect(
            try Self.said("I am anna.berg@inbox.example, hello", type: "text/plain; charset=x-none")
                == "I am annarelay2@relay.example, hello")
        // Letters of Vietnamese, Cyrillic and Chinese in charsets of one and two octets.
        for (word, line) in [
            ([0x67, 0xD8, 0xEF] as [UInt8], 12), ([0xF0, 0xD2, 0xC9, 0xD7, 0xC5, 0xD4], 8),
            ([0xC4, 0xE3, 0xBA, 0xC3], 18),
        ] {
            let isSpaced = word.count != 4
            let text = (0..<20).flatMap { _ in
                (0..<line).flatMap { _ in word + (isSpaced ? [0x20] : []) } + [0x0D, 0x0A]
                    as [UInt8]
            }
            let said = try Self.said(text, type: "text/plain; charset=x-none")
            #expect(!said.hasPrefix("550"), "\(said)")
        }
        #expect(
            try !Self.said([0xC4, 0xE3, 0x21], type: "text/plain; charset=x-none").hasPrefix("550"))
    }

    @Test func unknownCharset_wideText_isRewritten() throws {
        let wide: [UInt8] = "I am anna.berg@inbox.example, hello".utf8.flatMap {
            [$0, 0] as [UInt8]
        }
        let said = try Self.said(
            Base64.encode(wide), type: "text/plain; charset=x-none", encoding: "base64")
        #expect(said.filter { $0 != "\0" } == "I am annarelay2@relay.example, hello")
    }

    @Test func svg_withTheInbox_isRewrittenAsText() throws {
        #expect(
            try Self.said(
                "<svg><text>anna.berg&#x40;inbox.example</text></svg>", type: "image/svg+xml")
                == "<svg><text>[address]</text></svg>")
    }

    /// Wrong readings of a short run of base64 look like binary data, in which no references are
    /// resolved.
    @Test func leakCheck_shortBase64_readsEachFormByItself() {
        let names = ReplyNames(
            engine: Self.engine, account: Fixture.anna, message: HeaderSection(),
            envelopeSender: "",
            stored: StoredAddresses(directory: Self.engine.directory, tokens: Self.engine.tokens))
        let body = Base64.encode(Array("<svg><text>anna&#x40;inbox.example</text></svg>".utf8))
        #expect(TypedLeak.isFound(body, of: names))
    }

    /// An address across the end of the first window of a long text must be rewritten, without an
    /// incident.
    @Test func typedInbox_acrossAWindowEnd_becomesTheRelayAddress() throws {
        let window = 262_144
        for shift in [0, 3, 9, 19, 30] {
            var text = [UInt8](repeating: UInt8(ascii: "."), count: 3 * window)
            let address = Array(" anna.berg@inbox.example ".utf8)
            for end in [window, 2 * window] {
                text.replaceSubrange((end - shift)..<(end - shift + address.count), with: address)
            }
            let said = try Self.said(text, type: "text/plain")
            #expect(
                said.components(separatedBy: " annarelay2@relay.example ").count == 3,
                "\(shift): \(said.prefix(40))")
        }
    }

    /// A window that begins within `xuser1@` must not read a separate word there.
    @Test func text_windowBeginsWithinAWord_isUnchanged() throws {
        for line in [
            "user7@gmail.example xxuser1@gmail.com and so on and on and on",
            "xxxxxxxxxuser1@gmail.com ", "axuser1%40gmail.com,",
        ] {
            let text = String(repeating: line, count: 700_000 / line.utf8.count)
            #expect(
                try Self.said(Array(text.utf8), type: "text/plain", inbox: "user1@gmail.com")
                    == text, "\(line)")
        }
    }

    /// A comparison of each address with each similar word of the text would take too long.
    @Test func header_tooManyAddresses_isRefused() throws {
        let header =
            (0..<2_100).map { HeaderField("Resent-To", "user\($0)@host.example") } + [
                HeaderField("From", "<anna@inbox.example>")
            ]
        let rewriting = ReplyRewriting(
            engine: Self.engine, account: Fixture.anna, header: HeaderSection(header),
            envelopeSender: "anna@inbox.example",
            isAutomatic: false,
            now: Fixture.now, hops: 1,
            stored: StoredAddresses(directory: Self.engine.directory, tokens: Self.engine.tokens))
        do throws(Refusal) {
            _ = try rewriting.rewrite(body: Array("Hello\r\n".utf8))
            Issue.record("relayed")
        } catch {
            #expect(error.reason.code == .unrewritablePart)
        }
    }

    /// A signature identifies its key, and so the inbox on a key server.
    @Test func inlineSignature_orKeyBlock_isRemoved() throws {
        let key =
            "-----BEGIN PGP PUBLIC KEY BLOCK-----\r\n\r\n\(Data("key of Anna <anna.berg@inbox.example>".utf8).base64EncodedString())\r\n=aBcD\r\n-----END PGP PUBLIC KEY BLOCK-----\r\n"
        func signed(_ text: String) -> String {
            "-----BEGIN PGP SIGNED MESSAGE-----\r\nHash: SHA512\r\n\r\n\(text)\r\n-----BEGIN PGP SIGNATURE-----\r\n\r\niQEz\r\n-----END PGP SIGNATURE-----\r\n"
        }
        #expect(try Self.said("Hello\r\n" + key + "Bye\r\n") == "Hello\r\nBye\r\n")
        #expect(
            try Self.said("Hello\r\n" + signed("- - I am anna.berg@inbox.example"))
                == "Hello\r\n- I am annarelay2@relay.example\r\n")
        #expect(
            try Self.said(
                "I am anna.berg@inbox.example\r\n" + signed("Yes") + "anna.berg@inbox.example")
                == "I am annarelay2@relay.example\r\nYes\r\nannarelay2@relay.example")
        // HTML writes its breaks as tags.
        let page = signed("Yes<br>").replacing("\r\n", with: "<br>")
        #expect(
            try Self.said("<p>\(page)</p>", type: "text/html")
                == "<p><br>Hash: SHA512<br><br>Yes<br><br><br></p>")
        // A certificate is not a key of a person's mail, but a change would break it.
        let certificate =
            "-----BEGIN CERTIFICATE-----\r\n\(Data("DNS:anna.berg@inbox.example".utf8).base64EncodedString())\r\n-----END CERTIFICATE-----\r\n"
        #expect(try Self.said("Hello\r\n" + certificate) == "550 unrewritable-part")
        // A quoted block was already broken.
        #expect(
            try Self.said(
                "> -----BEGIN PGP SIGNED MESSAGE-----\r\n> anna.berg@inbox.example\r\n> -----END PGP SIGNATURE-----\r\n"
            ).contains("> [address]"))
    }

    /// An unknown name for `8bit` must not make a plain answer unrewritable.
    @Test(arguments: ["8bits", "plain", "text/html", "6bit"])
    func unknownEncoding_plainText_isRewritten(encoding: String) throws {
        let said = { (text: String) in
            try Self.said(Array(text.utf8), type: "text/plain; charset=utf-8", encoding: encoding)
        }
        #expect(
            try said("Hello, I am anna.berg@inbox.example as ever.\r\n")
                == "Hello, I am annarelay2@relay.example as ever.\r\n")
        #expect(
            try said("begin 644 a\r\n#0V%T\r\n anna.berg@inbox.example\u{0}\r\n").hasPrefix("550")
                || encoding == "8bits")
    }

    @Test func charset_inApostrophes_isRead() throws {
        #expect(
            try Self.said("I am anna.berg@inbox.example", type: "text/plain; charset='utf-8'")
                == "I am annarelay2@relay.example")
    }

    @Test func form_urlEncoded_isRewrittenAsText() throws {
        #expect(
            try Self.said(
                "m=anna.berg%40inbox.example&x=1", type: "application/x-www-form-urlencoded")
                == "m=annarelay2%40relay.example&x=1")
    }

    /// An invisible character must not divide a token for the search.
    @Test(arguments: ["\u{AD}", "\u{200B}", "&shy;", "&#8203;"])
    func reply_invisibleCharactersInInbox_isFound(mark: String) throws {
        let token = Self.engine.tokens.reverse(
            account: Fixture.anna.number,
            correspondent: AddrSpec(localPart: "billing", domain: "app.example")
        ).localPart
        for cut in [3, token.count - 9] {
            let text =
                "to \(token.prefix(cut))\(mark)\(token.dropFirst(cut))@relay.example and \(token.prefix(cut))\(mark)\(token.dropFirst(cut))"
            #expect(
                try Self.said(text, type: "text/html; charset=utf-8")
                    == "to billing@app.example and billing@app.example",
                "\(cut)")
        }
    }

    @Test func base64_withPercentEncoding_isRewritten() throws {
        let link = { (content: String) in
            "see https://shop.example/?u=\(Data(content.utf8).base64EncodedString()) soon"
        }
        let said = try Self.said(link("u=%61nna.berg%40%69nbox.example&a=%20"))
        #expect(said == link("u=annarelay2%40relay.example&a=%20"))
    }

    @Test func boundary_withTheInbox_isReplaced() throws {
        let body =
            "--=_anna.berg@inbox.example_x\r\n\r\nhello\r\n--=_anna.berg@inbox.example_x--\r\n"
        let said = try Self.said(
            body, type: "multipart/mixed; boundary=\"=_anna.berg@inbox.example_x\"")
        #expect(said.contains("hello") && !said.contains("berg") && !said.contains("inbox"))
    }
}
