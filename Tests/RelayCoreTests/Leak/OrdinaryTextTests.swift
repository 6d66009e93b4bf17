// Text without an address of the user leaves unchanged.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct OrdinaryTextTests {
    private static let engine = Fixture(evidence: .init()).engine

    private static func account(_ inbox: AddrSpec) -> RelayAccount {
        let own = UserInbox(address: InboxAddress(inbox), isVerified: true)
        return RelayAccount(
            number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
            isForwardingOn: true, hasLiveGrant: true,
            inbox: own,
            inboxes: [own], sharedName: nil, sources: Fixture.anna.sources)
    }

    /// An outgoing reply of a user; nil if it is refused.
    private static func relayed(
        _ header: HeaderSection, _ body: [UInt8], inbox: AddrSpec
    ) -> [UInt8]? {
        let fields = header.fields.filter {
            !["from", "sender", "reply-to"].contains($0.name.lowercased())
                && !$0.name.lowercased().hasPrefix("resent-")
        }
        let rewriting = ReplyRewriting(
            engine: engine, account: account(inbox),
            header: HeaderSection([HeaderField("From", "<\(inbox.wireForm)>")] + fields),
            envelopeSender: inbox.wireForm, isAutomatic: false, now: Fixture.now, hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        guard let outgoing = try? rewriting.rewrite(body: body) else { return nil }
        return outgoing.header.serialized + [0x0D, 0x0A]
            + (outgoing.body ?? [body[...]]).reduce(into: []) { $0 += $1 }
    }

    private static func said(
        _ text: String, inbox: String, type: String = "text/plain", more: [HeaderField] = []
    ) throws -> String {
        let inbox = try #require(AddrSpec(envelope: inbox))
        let header = HeaderSection(
            more + [
                HeaderField("Content-Type", "\(type); charset=utf-8"),
                HeaderField("Content-Transfer-Encoding", "8bit"),
            ])
        let bytes = try #require(
            relayed(header, Array(text.utf8), inbox: inbox), "refused: \(text)")
        return String(decoding: Message.parse(bytes).body, as: UTF8.self)
    }

    // MARK: Text that stays

    @Test(arguments: [
        ("market@gmx.de", "The market is open, says Market & Co."),
        ("berlin@web.de", "See http://berlin.de/ and berlin.example."),
        ("support@inbox.example", "Is this the support? Support, please."),
        ("deutschland@gmx.de", "Deutschland, deutschland"),
        ("schwartz@gmx.de", "Mr. schwartz"),
        ("michael@gmx.de", "write to michael.smith@other.example or michael@other.example"),
        (
            "info@mueller.example",
            "<a href=\"https://www.mueller.example/products\">mueller.example</a> at mail.mueller.example"
        ),
        ("info@mueller.example", "my wife is petra@mueller.example"),
        // Distinctive, but a part of another text.
        (
            "jane.k77x@gmx.de",
            "write to jane.k77x@other.example, jane.k77x%40other.example, jane.k77x(at)other.example, a.jane.k77x@other.example"
        ),
        (
            "jane.k77x@gmx.de",
            "list-jane.k77x=other.example@lists.example and jane.k77x=40other.example and x@jane.k77x.example"
        ),
        (
            "jane.k77x@gmx.de",
            "https://social.example/in/jane.k77x?u=jane.k77x, www.social.example/jane.k77x, social.example/~jane.k77x"
        ),
        (
            "jane.k77x@gmx.de",
            "{\"url\":\"https:\\/\\/social.example\\/jane.k77x\"} and https://x.example/?u=https%3A%2F%2Fsocial.example%2Fjane.k77x"
        ),
        ("anna-berg@gmx.de", "See anna-berg.de, www.anna-berg.com and https://anna-berg.example/."),
    ])
    func text_withoutInbox_isUnchanged(inbox: String, text: String) throws {
        #expect(try Self.said(text, inbox: inbox) == text)
        #expect(try Self.said(text, inbox: inbox, type: "text/html") == text)
    }

    @Test func typedText_namingTheMachine_isUnchanged() throws {
        let text =
            "Our server www.mueller.example has the address 203.0.113.9, and annas-mbp.mueller.example is mine."
        let received = HeaderField(
            "Received",
            "from annas-mbp.mueller.example (www.mueller.example [203.0.113.9]) by mx.mueller.example; Fri, 21 Nov 2025 05:00:00 +0000"
        )
        #expect(
            try Self.said(
                text, inbox: "info@mueller.example",
                more: [received, HeaderField("X-Originating-IP", "[203.0.113.9]")]) == text)
    }

    // MARK: Text that is still removed

    @Test(arguments: [
        ("market@gmx.de", "market@gmx.de, the market", "annarelay2@relay.example, the market"),
        (
            "info@mueller.example",
            "info@mueller.example, https://mueller.example/?m=info%40mueller.example",
            "annarelay2@relay.example, https://mueller.example/?m=annarelay2%40relay.example"
        ),
        (
            "jane.k77x@gmx.de", "I am jane.k77x; Jane.K77x! (jane.k77x) jane.k77x@ user:jane.k77x",
            "I am annarelay2; annarelay2! (annarelay2) annarelay2@ user:annarelay2"
        ),
        (
            "jane.k77x@home.example",
            "https://home.example/~jane.k77x and https://www.home.example/jane.k77x",
            "https://home.example/~annarelay2 and https://www.home.example/annarelay2"
        ),
        (
            "jane.k77x@home.example", "https://x.example/?u=https://home.example/~jane.k77x",
            "https://x.example/?u=https://home.example/~annarelay2"
        ),
        (
            "jane.k77x@gmx.de", "/home/jane.k77x/mail, file jane.k77x.pdf",
            "/home/annarelay2/mail, file annarelay2.pdf"
        ),
        ("xkqvbn@gmx.de", "user xkqvbn, not xkqvbnz", "user annarelay2, not xkqvbnz"),
    ])
    func typedText_withTheInbox_isRewritten(inbox: String, text: String, expected: String) throws {
        #expect(try Self.said(text, inbox: inbox) == expected)
    }

    /// A comparison of each word of a URL with all text before it would take too long.
    @Test func typedText_manyLocalPartsInAURL_isUnchanged() throws {
        let inbox = "jane.k77x@gmx.de"
        for text in [
            "https://x.example/" + String(repeating: "jane.k77x/", count: 12_000),
            String(repeating: "a.", count: 12_000) + "com/"
                + String(repeating: "jane.k77x/", count: 12_000),
        ] {
            #expect(try Self.said(text, inbox: inbox) == text)
        }
    }

    // MARK: Ids that programs write

    /// A team's guess of the user's domain in a Content-ID is hidden like any other domain.
    @Test func contentID_inboxOrOtherDomain_isHidden() throws {
        func related(_ id: String) -> String {
            "--r\r\nContent-Type: text/html\r\n\r\n<img src=\"cid:\(id)\">\r\n--r\r\nContent-Type: image/png\r\nContent-ID: <\(id)>\r\n\r\n\u{1}\u{2}\r\n--r--\r\n"
        }
        for id in [
            "logo@inbox.example", "logo@guess.example", "logo@annas-mbp", "jane.k77x.1@gmail.com",
            "o'hara.1@gmx.de",
        ] {
            let said = try Self.said(
                related(id), inbox: "anna@inbox.example", type: "multipart/related; boundary=r")
            let hidden = String(
                decoding: Self.engine.ids.hide(
                    Array(id.utf8), account: Fixture.anna.number, relayDomain: "relay.example"),
                as: UTF8.self)
            #expect(said == related(hidden))
        }
        for id in ["image001.png@01D9ABCD.12345678", "ii_l0abc", "logo@app.example"] {
            #expect(
                try Self.said(
                    related(id), inbox: "anna@inbox.example", type: "multipart/related; boundary=r")
                    == related(id))
        }
    }

    @Test func boundary_withAMachineName_isReplaced() throws {
        let body =
            "--=_12_annas-mbp.home.example_7\r\n\r\nhello\r\n--=_12_annas-mbp.home.example_7--\r\n"
        let said = try Self.said(
            body, inbox: "anna@inbox.example",
            type: "multipart/mixed; boundary=\"=_12_annas-mbp.home.example_7\"")
        #expect(said.contains("hello") && !said.contains("annas-mbp"))
    }

    // MARK: Local parts of every kind

    /// `POSTERN_LOCAL_PARTS=all` compares every local part with every message; otherwise each is
    /// compared with some.
    private static let messagesForEach =
        ProcessInfo.processInfo.environment["POSTERN_LOCAL_PARTS"] == "all" ? messageCount : 12
    private static let messageCount = 200
    private static let domains = [
        "gmail.com", "example.com", "gmx.de", "example.org", "haus-am-see.example",
    ]

    private static func localParts() throws -> [AddrSpec] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent(
                "Vectors/local-parts.txt")
        let words = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter {
            !$0.hasPrefix("#")
        }.flatMap {
            $0.split(separator: " ")
        }
        return words.enumerated().map {
            AddrSpec(localPart: String($1), domain: domains[$0 % domains.count])
        }
    }

    /// Public messages that any user could send unchanged, and their outgoing form if the user's
    /// address is in none of them.
    private static func messages() -> [(
        name: String, header: HeaderSection, body: [UInt8], relayed: [UInt8]
    )] {
        let entries = (Corpus.entries("mail") + Corpus.entries("replies")).filter {
            $0.bytes.count < 40_000
        }
        let stranger = AddrSpec(localPart: "zq7x.k3v9w5", domain: "nobody-has-this.example")
        var messages: [(name: String, header: HeaderSection, body: [UInt8], relayed: [UInt8])] = []
        for entry in entries.enumerated().filter({
            $0.offset % max(1, entries.count / (messageCount * 3 / 2)) == 0
        }).map(
            \.element)
        {
            let message = Message.parse(Corpus.crlf(entry.bytes))
            guard messages.count < messageCount,
                let relayed = relayed(message.header, Array(message.body), inbox: stranger)
            else { continue }
            messages.append((entry.name, message.header, Array(message.body), relayed))
        }
        return messages
    }

    private static func holds(
        _ address: AddrSpec,
        _ message: (name: String, header: HeaderSection, body: [UInt8], relayed: [UInt8])
    ) -> Bool {
        let root = MIMEPart.parse(header: message.header, body: message.body)
        let texts =
            [message.header.serialized, message.body]
            + root.flattened.map {
                $0.transferEncoding.decode(message.body[$0.bodyRange])?.bytes ?? []
            }
        let needles = ["@", "%40", "=", " at ", "#"].map {
            (address.localPart + $0 + address.domain).lowercased()
        }
        return texts.contains { text in
            needles.contains { OctetSearch.find($0, in: text.map(\.asciiLowercased)) != nil }
        }
    }

    @Test(
        .enabled(
            if: Corpus.isThere, "../shared/conformance is not there; POSTERN_CONFORMANCE names it"))
    func reply_localPartIsAWord_isUnchanged() throws {
        let (addresses, messages) = (try Self.localParts(), Self.messages())
        #expect(addresses.count >= 300 && messages.count == Self.messageCount)
        var compared = 0
        var changed: [String] = []
        var items: [LeakOracle.Item] = []
        for (number, address) in addresses.enumerated() {
            for step in 0..<Self.messagesForEach {
                let message = messages[
                    (number * 7 + step * (Self.messageCount / Self.messagesForEach))
                        % messages.count]
                let relayed = Self.relayed(message.header, message.body, inbox: address)
                if relayed == message.relayed {
                    compared += 1
                } else if Self.holds(address, message) {
                    if let relayed {
                        items.append(
                            LeakOracle.Item(
                                id: "\(address.localPart) \(message.name)",
                                address: address.wireForm, message: relayed))
                    }
                } else {
                    compared += 1
                    changed.append(
                        "\(address.localPart) \(message.name)\(relayed == nil ? " refused" : "")")
                }
            }
        }
        print(
            "local parts: \(compared) messages without the address, \(changed.count) changed; \(items.count) with it"
        )
        for line in changed { print("  changed \(line)") }
        #expect(changed.count * 1_000 <= compared, "\(changed)")
        if Corpus.hasLeakcheck { #expect(try LeakOracle.run(items).isEmpty) }
    }

    /// The rewriting hides everything that leakcheck.py counts for an address.
    @Test(
        .enabled(if: Corpus.hasLeakcheck, "leakcheck.py is not there; POSTERN_LEAKCHECK names it"))
    func leakcheckTool_rewrittenReply_findsNoLeak() throws {
        var items: [LeakOracle.Item] = []
        for address in try Self.localParts() {
            let (local, domain) = (address.localPart, address.domain)
            let text = """
                I am \(local), (\(local.uppercased())) and <\(local)@\(domain)>, \(local)%40\(domain) or \(local) at \(domain).\r
                https://x.example/?u=\(local)%40\(domain)&v=\(local.uppercased())@\(domain)\r
                \(Data("user=\(local)@\(domain)&ok=1".utf8).base64EncodedString())\r
                """
            let header = HeaderSection([
                HeaderField("Content-Type", "text/plain; charset=utf-8"),
                HeaderField("Subject", "Re: \(local)@\(domain)"),
            ])
            let relayed = try #require(
                Self.relayed(header, Array(text.utf8), inbox: address),
                "\(address.localPart) is refused")
            items.append(
                LeakOracle.Item(id: address.localPart, address: address.wireForm, message: relayed))
        }
        #expect(items.count >= 300)
        // A local part that reads like a domain can form more addresses than one reply may confirm.
        let leaks = try LeakOracle.run(items)
        #expect(leaks.count * 100 <= items.count, "\(leaks)")
    }
}
