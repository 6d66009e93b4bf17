// Messages made to be slow: each tests one loop of the relay that could be quadratic. RelayBench
// times them; RelayCoreTests counts their work.

import InternetMessage
import Support

/// A message made to be slow, for the account of anna.bergstroem@home.example.
package struct Hostile {
    package let name: String
    /// Content-* fields, and fields that contain the names to hide.
    package let header: [HeaderField]
    private let make: () -> [UInt8]

    /// Made on request.
    package var body: [UInt8] { make() }

    init(
        _ name: String, _ type: String, _ body: @autoclosure @escaping () -> [UInt8],
        encoding: String? = nil,
        fields: [HeaderField] = []
    ) {
        self.name = name
        header =
            fields + [HeaderField("MIME-Version", "1.0"), HeaderField("Content-Type", type)]
            + (encoding.map { [HeaderField("Content-Transfer-Encoding", $0)] } ?? [])
        make = body
    }

    /// A text repeated up to this number of octets.
    static func times(_ text: String, _ size: Int) -> [UInt8] { times(Array(text.utf8), size) }

    static func times(_ text: [UInt8], _ size: Int) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(size + text.count)
        while output.count < size { output += text }
        return output
    }

    private static func counted(_ size: Int, _ line: (Int) -> String) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(size + 200)
        var number = 0
        while output.count < size {
            output += Array(line(number).utf8)
            number += 1
        }
        return output
    }

    /// Octets that look random, but are always the same.
    static func noise(_ size: Int) -> [UInt8] {
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        return (0..<size).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 24)
        }
    }

    /// A zip of one entry with stored deflate blocks.
    private static func zipped(_ content: [UInt8]) -> [UInt8] {
        var zip: [UInt8] =
            [0x50, 0x4B, 3, 4, 20, 0, 0, 0, 8, 0] + Array(repeating: 0, count: 16) + [
                1, 0, 0, 0, UInt8(ascii: "a"),
            ]
        var at = 0
        while at < content.count {
            let end = min(at + 65_535, content.count)
            let length = UInt16(end - at)
            zip += [
                end == content.count ? 1 : 0, UInt8(length & 255), UInt8(length >> 8),
                UInt8(~length & 255), UInt8(~length >> 8),
            ]
            zip += content[at..<end]
            at = end
        }
        return zip
    }

    private static let plain = "text/plain; charset=utf-8"
    private static let html = "text/html; charset=utf-8"
    private static let local = "anna.bergstroem"
    private static let inbox = "anna.bergstroem@home.example"

    /// Messages of about this number of octets each.
    /// - Parameter reverse: a reverse address of the account.
    package static func all(size: Int, reverse: String) -> [Hostile] {
        let token = String(reverse.prefix { $0 != "@" })
        return texts(size, reverse: reverse, token: token) + markup(size) + structures(size)
            + opaque(size)
            + headers(size, reverse)
    }

    private static func texts(_ size: Int, reverse: String, token: String) -> [Hostile] {
        let words =
            "The quick brown fox jumps over the lazy dog, and nobody knows why it does so.\r\n"
        return [
            Hostile("prose", plain, times(words, size)),
            Hostile("inbox in every line", plain, times("Dear \(inbox), thank you\r\n", size)),
            Hostile("inbox without breaks", plain, times(inbox + " ", size)),
            Hostile(
                "inboxes and reverse addresses", plain, times("Dear \(inbox), \(reverse)\r\n", size)
            ),
            Hostile("inboxes glued", plain, times(inbox, size)),
            Hostile("local part", plain, times(local + "\r\n", size)),
            Hostile("domain", plain, times("home.example ", size)),
            Hostile("domain and at", plain, times("@home.example", size)),
            Hostile("at signs", plain, times("@", size)),
            Hostile("plus signs", plain, times("+", size)),
            Hostile(
                "tags without end", plain,
                times("anna+", size - 20) + Array("@home.example\r\n".utf8)),
            Hostile(
                "tags before domains", plain, times("anna+a+b+c+d+e+f+g+h+i@home.example ", size)),
            Hostile(
                "long locals before domains", plain,
                times(String(repeating: "a", count: 120) + "@home.example ", size)),
            Hostile("reverse addresses", plain, times(reverse + "\r\n", size)),
            Hostile("tokens", plain, times(token + " ", size)),
            Hostile("tokens glued", plain, times(token, size)),
            Hostile("token anchors", plain, times(String(token.suffix(22).prefix(9)), size)),
            Hostile("broken tokens", plain, counted(size) { "b\($0)" + token.dropFirst(3) + " " }),
            Hostile(
                "relay domain with different locals", plain,
                counted(size) { "a\($0)b.c=d-e=f@relay.example " }),
            Hostile("relay domain and dots", plain, times("a.b=c.d-e.f=g.h@relay.example ", size)),
            Hostile("one line", plain, times("lorem ipsum ", size)),
            Hostile("one word", plain, times("a", size)),
            Hostile("empty lines", plain, times("\r\n", size)),
            Hostile("quote marks", plain, times("> > > > ", size)),
            Hostile("percent signs", plain, times("%", size)),
            Hostile("percent 25", plain, times("%25", size)),
            Hostile("percent at", plain, times("%40", size)),
            Hostile("equals signs", plain, times("=", size)),
            Hostile("backslashes", plain, times("\\", size)),
            Hostile("backslash u", plain, times("\\u0040", size)),
            Hostile("escaped marks", plain, times("\\40 \\000040\\100\\u{40}\\'40\\u64?", size)),
            Hostile("escapes nearly", plain, times("\\0000\\u{00\\u000\\'4\\x4", size)),
            Hostile("soft breaks", plain, times("=\r\n", size)),
            Hostile(
                "equals and spaces", plain, times("=" + String(repeating: " ", count: 60), size)),
            Hostile("xtext", plain, times("+61+6E+6E+61+40", size)),
            Hostile(
                "every encoding at once", html,
                times("%61&#110;=6E+61\\u0040\\x68ome%2Eexample &amp;#64; =?utf-8?q?=61?= ", size)
            ),
            Hostile("at the word", plain, times("anna at home.example (at) home.example ", size)),
            Hostile(
                "comments in addresses", plain,
                times("anna(" + String(repeating: "a", count: 58) + ")@home.example ", size)),
            Hostile("domains and equals", plain, times("home.example=anna.bergstroe=", size)),
            Hostile(
                "dots before gmail", plain,
                times(String(repeating: "a.", count: 60) + "@gmail.com ", size)),
            Hostile("encoded words", plain, times("=?utf-8?q?anna?= ", size)),
            Hostile("encoded word begun", plain, times("=?utf-8?q?", size)),
            Hostile("encoded word marks", plain, times("=?", size)),
            Hostile("full width", plain, times("\u{FF20}\u{FF41}", size)),
            Hostile("zero width", plain, times("a\u{200B}", size)),
            Hostile("zero width alone", plain, times("\u{200B}", size)),
            Hostile("chinese", plain, times("每天都有新的消息", size)),
            Hostile(
                "iso-2022-jp", "text/plain; charset=iso-2022-jp",
                times("\u{1B}$B$3$s$K$A$O\u{1B}(B anna@home\r\n", size)),
            Hostile(
                "utf-16", "text/plain; charset=utf-16le",
                times(inbox.utf8.flatMap { [$0, 0] } + [32, 0], size),
                encoding: "binary"),
            Hostile(
                "utf-7", "text/plain; charset=utf-7", times("anna+AEA-home.example \r\n", size)),
            Hostile(
                "gb18030", "text/plain; charset=gb18030",
                times([0xC4, 0xE3, 0xBA, 0xC3, 0x20], size), encoding: "8bit"),
            Hostile("unknown charset", "text/plain; charset=x-none", times(words, size)),
            Hostile(
                "quoted-printable", plain, times("=41=6E=6E=61=40=\r\n", size),
                encoding: "quoted-printable"),
            Hostile(
                "quoted-printable inbox", plain,
                times(
                    "anna=2Ebergstroem=40=\r\nhome.example is long long long long long=\r\n", size),
                encoding: "quoted-printable"),
            Hostile(
                "quoted-printable one line", plain, times("anna.bergstroem=40home.example ", size),
                encoding: "quoted-printable"),
            Hostile(
                "base64 of text", plain, Base64.encode(times(words, size * 3 / 4)),
                encoding: "base64"),
            Hostile(
                "base64 of inboxes", plain, Base64.encode(times(inbox + "\r\n", size * 3 / 4)),
                encoding: "base64"),
            Hostile("base64 in text", plain, Base64.encode(times(words, size * 3 / 4))),
            Hostile(
                "base64 in base64", plain, Base64.encode(Base64.encode(times(words, size / 2)))),
            Hostile(
                "short base64 in text", plain, times("QWxsZXMgR3V0ZSB6 dW0gR2VidXJ0c3RhZyE= ", size)
            ),
            Hostile(
                "base64 words of 399", plain,
                times(String(repeating: "QUJD", count: 99) + " ", size)),
            Hostile(
                "base64 words of the inbox", plain,
                times(
                    String(decoding: Base64.encodeUnbroken(Array("=\(inbox)&".utf8)), as: UTF8.self)
                        + " ", size)),
            Hostile(
                "base64 lines of 40", plain,
                times(String(repeating: "QUJD", count: 10) + "\r\n", size)),
            Hostile(
                "base64 lines of growing length", plain,
                counted(size) { String(repeating: "A", count: 40 + $0 % 90) + "\r\n" }),
            Hostile(
                "base64 of short base64", plain,
                Base64.encode(times("QWxsZXMgR3V0ZSB6 QUJDREVGR0hJSktM ", size * 3 / 4))),
            Hostile(
                "base64 in base64 in base64", plain,
                Base64.encode(Base64.encode(Base64.encode(times(inbox + " ", size / 3))))),
            Hostile("base64 words of percent", plain, times("JTYxJTZFJTZFJTYxJTQw ", size)),
            Hostile("base64 words of 13", plain, times("QWxsZXMgR3V0Z ", size)),
            Hostile(
                "uuencode", plain,
                Array("begin 644 a\r\n".utf8)
                    + times("M" + String(repeating: "3V%T", count: 15) + "\r\n", size)),
            Hostile("uuencode begins", plain, times("begin 644 a\r\n#0V%T\r\n", size)),
            Hostile(
                "headers as text", "text/rfc822-headers",
                times("Received: from a by b for <\(inbox)>\r\n\tx\r\n", size)),
            Hostile(
                "delivery status", "message/delivery-status",
                times("Final-Recipient: rfc822; \(inbox)\r\nAction: failed\r\n\r\n", size)),
            Hostile(
                "calendar", "text/calendar",
                Array("BEGIN:VCALENDAR\r\n".utf8)
                    + times(
                        "ATTENDEE;CN=Anna;SENT-BY=\"mailto:\(inbox)\":mailto:anna.berg\r\n stroem@home.example\r\n",
                        size)),
            Hostile(
                "calendar in one line", "text/calendar", times("ATTENDEE:mailto:\(inbox);", size)),
            Hostile(
                "calendar of folds", "text/calendar",
                times("a\r\n ", size - 100) + Array(inbox.utf8)),
            Hostile(
                "calendar of folds and inboxes", "text/calendar", times("a\r\n \(inbox)", size)),
            Hostile("vcard", "text/vcard", times("EMAIL;TYPE=home:\(inbox)\r\n", size)),
        ]
    }

    private static func markup(_ size: Int) -> [Hostile] {
        [
            Hostile(
                "html", html,
                times(
                    "<p>Dear <a href=\"mailto:\(inbox)\">\(inbox)</a>, thank you &amp; goodbye</p>\r\n",
                    size)),
            Hostile("references", html, times("&#64;", size)),
            Hostile("references in hexadecimal", html, times("&#x61;&#x6e;", size)),
            Hostile("references by name", html, times("&commat;&period;", size)),
            Hostile("unknown references", html, times("&aelig;&ouml;", size)),
            Hostile("ampersands", html, times("&", size)),
            Hostile("amp amp amp", html, times("&amp;", size)),
            Hostile("amp without end", html, times("&amp;amp;amp;#", size)),
            Hostile(
                "zeros in references", html,
                times("&#00000000000000000000000000000000000064;", size)),
            Hostile("tags", html, times("<b></b>", size)),
            Hostile(
                "tags between letters", html,
                times(local.map { "<i>\($0)</i>" }.joined() + "@home.example ", size)),
            Hostile("opening brackets", html, times("<a", size)),
            Hostile(
                "tags without end", html, times("<a " + String(repeating: "x", count: 150), size)),
            Hostile("comments", html, times("<!-- \(inbox) -->", size)),
            Hostile(
                "data urls", html,
                times("<img src=\"data:text/html;base64,QW5uYUBob21lLmV4YW1wbGU=\">", size)),
        ]
    }

    private static func structures(_ size: Int) -> [Hostile] {
        func mixed(_ boundary: String) -> String { "multipart/mixed; boundary=\"\(boundary)\"" }
        var nested: [UInt8] = []
        for depth in 0..<10_000 {
            nested += Array(
                "--b\(depth)\r\nContent-Type: multipart/mixed; boundary=b\(depth + 1)\r\n\r\n".utf8)
        }
        nested = times(nested, size)
        var messages: [UInt8] = []
        while messages.count < size {
            messages += Array("Content-Type: message/rfc822\r\nSubject: a\r\n\r\n".utf8)
        }
        var encoded = Array("Subject: x\r\n\r\n\(inbox)\r\n".utf8)
        for _ in 0..<6 {
            encoded =
                Array(
                    "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n".utf8
                )
                + Base64.encode(times(encoded, size / 4))
        }
        let alternating = (0..<3).reduce(times("Dear \(inbox)\r\n", size / 8)) { body, depth in
            let inner =
                Array("Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n".utf8)
                + Base64.encode(body)
            return depth == 2 ? body : inner
        }
        return [
            Hostile(
                "messages as text in base64", plain, Base64.encode(alternating), encoding: "base64"),
            Hostile(
                "many small messages", mixed("b"),
                times(
                    "--b\r\nContent-Type: message/rfc822\r\n\r\nFrom: \(inbox)\r\n\r\nx\r\n", size)),
            Hostile(
                "many small encoded texts", mixed("b"),
                times(
                    "--b\r\nContent-Type: text/html; charset=utf-16\r\nContent-Transfer-Encoding: base64\r\n\r\nAGEAbg==\r\n",
                    size)),
            Hostile(
                "many small opaque parts", mixed("b"),
                times(
                    "--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n",
                    size)),
            Hostile(
                "many small calendars", mixed("b"),
                times("--b\r\nContent-Type: text/calendar\r\n\r\nATTENDEE:\(inbox)\r\n", size)
            ),
            Hostile(
                "many small unknown charsets", mixed("b"),
                times(
                    "--b\r\nContent-Type: text/plain; charset=x-none\r\n\r\n\(inbox.dropLast(3))\r\n",
                    size)),
            Hostile("many parts", mixed("b"), times("--b\r\n\r\nx\r\n", size)),
            Hostile(
                "many parts with inbox", mixed("b"),
                times(
                    "--b\r\nContent-Type: text/plain; name=\"\(inbox)\"\r\n\r\n\(inbox)\r\n", size)),
            Hostile("many empty parts", mixed("b"), times("--b\r\n", size)),
            Hostile("boundary with inbox", mixed(inbox), times("--\(inbox)\r\n\r\nx\r\n", size)),
            Hostile(
                "boundary with inbox, no part", mixed(inbox),
                times("--\(inbox.dropLast())\r\n", size)),
            Hostile(
                "long boundary nearly", mixed(String(repeating: "-", count: 70)), times("-", size)),
            Hostile("nested multiparts", mixed("b0"), nested),
            Hostile("nested messages", "message/rfc822", messages),
            Hostile(
                "encoded messages", "message/rfc822", Array(encoded.prefix(size)),
                encoding: "base64"),
            Hostile(
                "signed parts", "multipart/signed; boundary=b",
                times("--b\r\nContent-Type: text/plain\r\n\r\nx\r\n", size)),
            Hostile(
                "part with many fields", mixed("b"),
                Array("--b\r\n".utf8) + counted(size) { "X-\($0): \(inbox)\r\n" }
                    + Array("\r\nx\r\n--b--\r\n".utf8)),
            Hostile(
                "message with many fields", "message/rfc822",
                counted(size) { "X-\($0): a\r\n" } + Array("\r\nx\r\n".utf8)),
            Hostile(
                "part with one field", mixed("b"),
                Array("--b\r\nContent-Disposition: attachment".utf8)
                    + counted(size) { ";\r\n filename*\($0)*=a%40b" }
                    + Array("\r\n\r\nx\r\n--b--\r\n".utf8)),
            Hostile(
                "part with a long file name", mixed("b"),
                Array("--b\r\nContent-Disposition: attachment; filename=\"".utf8)
                    + times("a@b.", size) + Array("\"\r\n\r\nx\r\n--b--\r\n".utf8)),
            Hostile("preamble", mixed("b"), times("anna@home.exampl ", size)),
        ]
    }

    private static func opaque(_ size: Int) -> [Hostile] {
        let noise = noise(size)
        var zip: [UInt8] = []
        while zip.count < size {
            zip +=
                [0x50, 0x4B, 3, 4, 20, 0, 0, 0, 8, 0] + Array(repeating: 0, count: 20) + [
                    0x4B, 0x4C, 0x04, 0x00,
                ]
        }
        // Stored deflate blocks that repeat themselves: 1 MB of zeros from each kilobyte.
        let bomb: [UInt8] =
            [0xED, 0xC1, 0x01, 0x0D, 0x00, 0x00, 0x00, 0xC2, 0xA0, 0xF7, 0x4F, 0x6D, 0x0E, 0x37]
            + Array(repeating: 0, count: 1_000)
        var bombs: [UInt8] = []
        while bombs.count < size {
            bombs += [0x50, 0x4B, 3, 4, 20, 0, 0, 0, 8, 0] + Array(repeating: 0, count: 20) + bomb
        }
        let pdf =
            Array("%PDF-1.4\n".utf8) + times(Array("stream\r\n".utf8) + [0x78, 0x9C] + bomb, size)
        let pdfShort =
            Array("%PDF-1.4\n".utf8) + times(Array("stream\n".utf8) + [0x78, 0x9C, 0x4B], size)
        let png: [UInt8] =
            [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            + times([0, 0, 0, 4] + Array("zTXt".utf8) + [0x78, 0x9C, 0x4B, 0, 0, 0, 0, 0], size)
        return [
            Hostile(
                "noise", "application/octet-stream",
                Base64.encode(Array(noise.prefix(size * 3 / 4))), encoding: "base64"),
            Hostile(
                "noise as an image", "image/jpeg", Base64.encode(Array(noise.prefix(size * 3 / 4))),
                encoding: "base64"),
            Hostile("binary noise", "application/octet-stream", noise, encoding: "binary"),
            Hostile("noise as text", plain, noise, encoding: "binary"),
            Hostile(
                "zeros", "application/octet-stream",
                Base64.encode(Array(repeating: 0, count: size * 3 / 4)), encoding: "base64"),
            Hostile(
                "zip entries", "application/zip", Base64.encode(Array(zip.prefix(size * 3 / 4))),
                encoding: "base64"),
            Hostile(
                "zip bombs", "application/zip", Base64.encode(Array(bombs.prefix(size * 3 / 4))),
                encoding: "base64"),
            Hostile(
                "pdf bombs", "application/pdf", Base64.encode(Array(pdf.prefix(size * 3 / 4))),
                encoding: "base64"),
            Hostile(
                "pdf streams", "application/pdf",
                Base64.encode(Array(pdfShort.prefix(size * 3 / 4))), encoding: "base64"),
            Hostile(
                "png texts", "image/png", Base64.encode(Array(png.prefix(size * 3 / 4))),
                encoding: "base64"),
            Hostile(
                "zip in zip", "application/zip",
                Base64.encode(zipped(zipped(times(inbox.dropLast() + " ", size * 3 / 4)))),
                encoding: "base64"),
            Hostile(
                "uuencoded zip", plain,
                Array("begin 644 a.zip\r\n".utf8)
                    + times("M4$L#!" + String(repeating: "0", count: 55) + "\r\n", size)),
            Hostile(
                "unknown encoding", plain, times("lorem ipsum dolor \r\n", size), encoding: "x-none"
            ),
            Hostile(
                "text as octet-stream", "application/octet-stream", times("Dear \(inbox)\r\n", size)
            ),
        ]
    }

    /// An attached message with one References field: equal numbers of ids and of words in the form
    /// of witnesses.
    package static func references(_ size: Int) -> [UInt8] {
        let witness = String(repeating: "a", count: 26) + "@relay.example"
        return Array("References:".utf8)
            + counted(size) { "\r\n <\($0)@x.example> <ak\($0)\(witness)>" }
            + Array("\r\n\r\nHello\r\n".utf8)
    }

    private static func headers(_ size: Int, _ reverse: String) -> [Hostile] {
        // 200 kB: the largest header section that is accepted.
        let many = (0..<900).map {
            HeaderField(
                "To",
                (0..<6).map { "a\($0)@b.example" }.joined(separator: ", ") + " <x\($0)@c.example>")
        }
        let received = (0..<49).map { number in
            HeaderField(
                "Received",
                counted(4_000) { "from h\(number)-\($0).x\($0).example " }.reduce(into: "") {
                    $0.append(Character(Unicode.Scalar($1)))
                } + "by b")
        }
        let addresses = (0..<400).map { HeaderField("Delivered-To", "user\($0)@host\($0).example") }
        let references = [
            HeaderField(
                "References",
                counted(55_000) { "<\($0)@x> " }.reduce(into: "") {
                    $0.append(Character(Unicode.Scalar($1)))
                })
        ]
        let own = [
            HeaderField(
                "References",
                counted(55_000) { "<\($0).\(local)@home.example> " }.reduce(into: "") {
                    $0.append(Character(Unicode.Scalar($1)))
                }
            )
        ]
        let tokens = [
            HeaderField(
                "References",
                counted(55_000) { "<\($0)\(reverse)> " }.reduce(into: "") {
                    $0.append(Character(Unicode.Scalar($1)))
                })
        ]
        let correspondents = (0..<400).map {
            HeaderField(
                "Cc",
                (0..<5).map { _ in "\"\(inbox)\" <\(reverse)>" }.joined(separator: ", ")
                    + " <x\($0)@c.example>")
        }
        let subject = [
            HeaderField(
                "Subject", String(repeating: "=?utf-8?q?anna=40home.example?= ", count: 1_700))
        ]
        let text = times("Nothing special stands here, and nothing of anybody's address.\r\n", size)
        return [
            Hostile("many recipients", plain, text, fields: many),
            Hostile("many hops", plain, text, fields: received),
            Hostile("many addresses", plain, text, fields: addresses),
            Hostile("many references", plain, text, fields: references),
            Hostile("many references of the user", plain, text, fields: own),
            Hostile("many references of tokens", plain, text, fields: tokens),
            Hostile("many correspondents", plain, text, fields: correspondents),
            Hostile("many references and witnesses", "message/rfc822", Self.references(size)),
            Hostile(
                "many addresses to look for", plain,
                times("user7@host7.example user399@host398.example xuser1@host1.example ", size),
                fields: addresses),
            Hostile("long subject", plain, text, fields: subject),
            Hostile(
                "long To", plain, text,
                fields: [HeaderField("To", String(repeating: "(", count: 50_000))]),
            Hostile(
                "long To of quotes", plain, text,
                fields: [HeaderField("To", String(repeating: "\"a\" <", count: 9_000))]),
        ]
    }
}
