// A list of addresses in the text of forwards: counted, and bounded, alike whether one of them is the user's inbox or none is.

import InternetMessage
import MailAuth
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct TextAddressTests {
    private static func fixture(_ limit: Int) -> Fixture {
        var settings = RelaySettings(relayDomains: ["relay.example"], authservID: "mx.relay.example")
        settings.limits.textAddressesPerDay = limit
        return Fixture(evidence: AuthenticationEvidence.signed("app.example"), settings: settings)
    }

    /// The code of the answer to a forward, `relay` where there is none.
    private static func code(_ fixture: Fixture, _ content: String, now: Int64 = Fixture.now) -> String {
        let message = "From: billing@app.example\r\nTo: annarelay2@relay.example\r\nMIME-Version: 1.0\r\n\(content)"
        let outcome = fixture.play(from: "bounces@app.example", to: ["annarelay2@relay.example"], message: message, now: now)
            .decision.outcome
        return switch outcome {
        case .refuse(let refusal): "\(refusal.reply.code) \(refusal.reply.enhanced) \(refusal.reason.code)"
        case .relay: "relay"
        default: "\(outcome)"
        }
    }

    private static func text(_ addresses: [String]) -> String {
        "Subject: List\r\n\r\n" + addresses.joined(separator: "\r\n") + "\r\n"
    }

    private static func guesses(_ count: Int, _ name: String = "jane") -> [String] {
        (0..<count).map { "\(name).\($0)@home.example" }
    }

    @Test func aLongListIsRefusedWhetherOneOfItIsRightOrNot() {
        for guesses in [Self.guesses(31), Self.guesses(30) + ["anna@inbox.example"]] {
            let fixture = Self.fixture(30)
            #expect(Self.code(fixture, Self.text(guesses)) == "550 5.7.1 too-many-text-addresses")
            // It has not taken a place of the daily limit, and nothing is known of it.
            #expect(fixture.directory.reserved(.forward, Fixture.anna.number) == 0)
            #expect(fixture.directory.rememberedCount == 0 && fixture.directory.counted(.inboxWritten) == 0)
        }
    }

    @Test func listsOfADayAreAddedUpWhetherOneIsRightOrNot() {
        for right in ["anna@inbox.example", "nina@inbox.example"] {
            let fixture = Self.fixture(30)
            #expect(Self.code(fixture, Self.text(Self.guesses(19) + [right])) == "relay")
            #expect(Self.code(fixture, Self.text(Self.guesses(10, "max") + [right])) == "452 4.7.1 text-address-limit")
            #expect(fixture.directory.reserved(.forward, Fixture.anna.number) == 1)
            // A few are not counted: the limit of messages bounds them. Neither is yesterday.
            #expect(Self.code(fixture, Self.text(Self.guesses(9, "max") + [right])) == "relay")
            #expect(Self.code(fixture, Self.text(Self.guesses(10, "max") + [right]), now: Fixture.now + 86_400) == "relay")
        }
    }

    /// Each counts once, however and wherever it is written in what is shown.
    @Test(arguments: ["Content-Type: text/html\r\nContent-Transfer-Encoding: base64", "Content-Type: text/plain"])
    func addressesCountOnceWhereverTheyAreShown(type: String) {
        let body = (Self.guesses(20) + Self.guesses(20).map { "<\($0.uppercased())>" } + ["cid:a.png@01D9ABCD.12345678", "a@b"])
            .joined(separator: " ")
        let encoded = type.contains("base64") ? String(decoding: Base64.encode(Array(body.utf8)), as: UTF8.self) : body
        for (limit, code) in [(21, "relay"), (20, "550 5.7.1 too-many-text-addresses")] {
            let message = "Subject: \(Self.guesses(1, "subject")[0]) \(Self.guesses(1)[0])\r\n\(type)\r\n\r\n\(encoded)\r\n"
            #expect(Self.code(Self.fixture(limit), message) == code)
        }
    }

    /// What is long comes in several stretches, which overlap.
    @Test func aCutAddressIsNotCountedTwice() {
        let lines = (0..<4_000).map { number in
            "some filling \(number % 7 == 0 ? "words" : "") between jane.\(number % 20)@home.example"
        }
        #expect(Self.code(Self.fixture(20), Self.text(lines)) == "relay")
        #expect(Self.code(Self.fixture(19), Self.text(lines)) == "550 5.7.1 too-many-text-addresses")
    }

    /// The team's own, the relay's, recipients, and what is attached.
    @Test func addressesThatAreNoGuessesDoNotCount() {
        let own = (0..<40).flatMap { ["a\($0)@app.example", "a\($0)@mail.app.example", "annarelay\($0)@relay.example"] }
        let list = Self.guesses(40).joined(separator: "\r\n")
        let attached =
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n\(own.joined(separator: ", "))\r\n--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment\r\n\r\n\(list)\r\n--b\r\nContent-Type: text/vcard\r\n\r\n\(list)\r\n--b--\r\n"
        #expect(Self.code(Self.fixture(11), "Cc: \(Self.guesses(20).joined(separator: ",\r\n "))\r\n" + attached) == "relay")
    }

    /// Encoded in a way that a reader does not see, none of them counted: only octets were looked at.
    @Test(arguments: [
        ("text/html", "<p>%L&#64;%D"), ("text/html", "<p>%L&commat;%D"), ("text/html", "<p>%L&amp;#x40;%D"),
        ("text/html", "<p>%L&#64;home&#46;example"),
        ("text/html", "<a href=\"mailto:%L%40%D\">x</a>"), ("text/html", "<a href=\"mailto:%L&#64;%D\">write</a>"),
        ("text/html", "<li><b>%L</b>@<i>%D</i></li>"), ("text/html", "<td>%L<wbr>@<!-- x -->%D</td>"),
        ("text/html", "<p>&quot;%L&quot;@%D"),
        ("text/plain", "https://x.example/?to=%L%40%D"), ("text/plain", "https://x.example/?to=%L%2540%D"),
        ("text/plain", "\"%L\"@%D"),
        ("text/plain", "%L\u{FF20}%D"), ("text/plain", "%L\u{200B}@\u{AD}%D"), ("text/plain", "%L\\u0040%D"),
    ]) func anAddressCountsAsItsReaderSeesIt(type: String, form: String) {
        let lines = (0..<20).map { form.replacing("%L", with: "jane.\($0)").replacing("%D", with: "home.example") }
        let body =
            "Subject: x\r\nContent-Type: \(type); charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\(lines.joined(separator: "\r\n"))\r\n"
        #expect(Self.code(Self.fixture(20), body) == "relay", "each counts once")
        #expect(Self.code(Self.fixture(19), body) == "550 5.7.1 too-many-text-addresses")
    }

    /// In what comes first, and in what comes in a later stretch, where no mark of the byte order stands.
    @Test(arguments: ["utf-16", "utf-16 little-endian", "utf-16le", "utf-7", "iso-2022-jp"]) func anAddressCountsInEveryCharset(
        charset: String
    ) throws {
        let text = (Self.guesses(10) + Array(repeating: "some filling", count: 2_000) + Self.guesses(10, "max")).joined(
            separator: "\r\n")
        let octets: [UInt8]
        switch charset {
        case "utf-7": octets = Array(text.replacing("@", with: "+AEA-").utf8)
        case "iso-2022-jp": octets = Array(text.utf8)
        case "utf-16": octets = [0xFE, 0xFF] + text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
        default: octets = (charset == "utf-16le" ? [] : [0xFF, 0xFE]) + text.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
        }
        let label = charset.prefix { $0 != " " }
        let body =
            "Subject: x\r\nContent-Type: text/plain; charset=\(label)\r\nContent-Transfer-Encoding: base64\r\n\r\n"
            + String(decoding: Base64.encode(octets), as: UTF8.self)
        #expect(Self.code(Self.fixture(20), body) == "relay")
        #expect(Self.code(Self.fixture(19), body) == "550 5.7.1 too-many-text-addresses")
    }

    /// What is in cells and lines of its own is not part of the address beside it.
    @Test func addressesOfSeveralCellsAreNotRunTogether() {
        let cells = Self.guesses(20).map { "<td>\($0)</td><td>and</td>" }.joined()
        let body = "Subject: x\r\nContent-Type: text/html\r\n\r\n<table><tr>\(cells)</tr></table>\r\n"
        #expect(Self.code(Self.fixture(20), body) == "relay")
        #expect(Self.code(Self.fixture(19), body) == "550 5.7.1 too-many-text-addresses")
    }

    /// The list is read in windows; an address at the edge of one counts, and counts once.
    @Test func addressesInALongMarkupCountOnce() {
        let lines = (0..<4_000).map {
            "<p>filling <b>jane.\($0 % 20)</b>&#64;home.example\($0 % 7 == 0 ? " &amp; more" : "")</p>"
        }
        let body = "Subject: x\r\nContent-Type: text/html\r\n\r\n\(lines.joined(separator: "\r\n"))\r\n"
        #expect(Self.code(Self.fixture(20), body) == "relay")
        #expect(Self.code(Self.fixture(19), body) == "550 5.7.1 too-many-text-addresses")
    }

    /// A message that Postfix or a copy did not take comes again: its list counted as often as it came.
    @Test func aRepeatedMessageCountsItsAddressesOnce() throws {
        let fixture = Self.fixture(30)
        let message = Message.parse(
            Array(("From: billing@app.example\r\nTo: annarelay2@relay.example\r\n" + Self.text(Self.guesses(20))).utf8))
        for _ in 0..<3 {
            let transaction = RelayTransaction(
                engine: fixture.engine,
                client: SMTPClientIdentity(address: "192.0.2.1", helo: "x", mailFrom: "bounces@app.example"), now: Fixture.now)
            try transaction.addRecipient("<annarelay2@relay.example>")
            for field in message.header.fields { transaction.addHeader(field) }
            try transaction.endHeader()
            try transaction.addBody(message.body)
            #expect(transaction.finish().outcome == .relay)
            transaction.giveUp()
            transaction.giveUp()
        }
        #expect(fixture.directory.reserved(.forward, Fixture.anna.number) == 0)
        #expect(Self.code(fixture, Self.text(Self.guesses(20, "max"))) == "relay")
        #expect(Self.code(fixture, Self.text(Self.guesses(11, "eve"))) == "452 4.7.1 text-address-limit")
    }

    /// Newsletters, threads, lists and reports of the public collections stay far below the limit.
    @Test(.enabled(if: Corpus.isThere)) func publicMailStaysFarBelowTheLimit() {
        var counts: [(name: String, count: Int)] = []
        for entry in Corpus.entries("") {
            let message = Message.parse(Corpus.crlf(entry.bytes))
            let author =
                message.header.first("From").map { AddressList.parse($0.rawValue).mailboxes.first?.addrSpec.asciiDomain ?? "" }
                ?? ""
            let fixture = Fixture(
                accounts: [
                    Fixture.account(
                        1, "annarelay2", team: author.isEmpty ? "app.example" : author, inboxes: ["anna@inbox.example"])
                ],
                evidence: AuthenticationEvidence.signed(author))
            let mentions = ForwardMentions(
                engine: fixture.engine, account: fixture.directory.firstAccount, header: message.header)
            let body = ForwardBody(
                header: message.header, account: Fixture.anna.number, mentions: mentions,
                memory: ForwardMemory(limit: 1 << 20),
                now: Fixture.now)
            message.body.withUnsafeBytes { body.update($0) }
            try? body.finish()
            counts.append((entry.name, mentions.found.textAddresses))
        }
        counts.sort { $0.count > $1.count }
        print("addresses in text: \(counts.count) files, most \(counts.prefix(8).map { "\($0.count) \($0.name)" })")
        let most = counts.first?.count ?? 0
        #expect(counts.count >= 200 && most >= 10 && most * 10 < RelayLimits().textAddressesPerDay)
    }
}
