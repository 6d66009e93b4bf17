// Messages made from a number: each kind of mail that must keep a valid signature.

import InternetMessage
import TestSupport

package enum GeneratedMail {
    /// The difficulty of a message.
    package enum Kind: Int, CaseIterable {
        case ascii, eightBit, longLines, dots, emptyBody, trailingBlankLines, manyFoldedHeaders,
            whiteSpace
    }

    package static func kind(_ number: Int) -> Kind { Kind.allCases[number % Kind.allCases.count] }

    /// The same message for the same number; line ends as CRLF.
    package static func message(_ number: Int) -> (header: HeaderSection, body: [UInt8]) {
        var generator = SeededGenerator(seed: UInt64(number))
        let kind = kind(number)
        var fields = [
            HeaderField(
                "Received",
                "from mail.example ([192.0.2.\(number % 256)])\r\n\tby relay.example; 2 Nov 2026 10:00:00 +0000"
            ),
            HeaderField("From", "Billing  <billing\(number)@app.example>"),
            HeaderField("To", "x7k2m9q4wd@relay.example,\r\n  \"A. N. Other\" <other@example.org>"),
            HeaderField(
                "Subject",
                kind == .eightBit
                    ? "Grüße und Küsse №\(number)" : "Message \(number) \(words(5, &generator))"),
            HeaderField("Date", "Mon, 2 Nov 2026 10:00:00 +0000"),
            HeaderField("Message-ID", "<\(number).\(generator.next())@app.example>"),
            HeaderField("MIME-Version", "1.0"),
        ]
        if number % 3 == 0 {
            fields.append(
                HeaderField(
                    "List-Unsubscribe",
                    "<https://app.example/u/\(number)>,\r\n\t<mailto:leave@relay.example>"))
            fields.append(HeaderField("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"))
        }
        if number % 5 == 0 {
            fields.append(HeaderField(bytes: Array("Comments:odd,\t but  allowed ".utf8)))
        }
        if number % 7 == 0 {
            fields.append(HeaderField("Content-Type", "text/plain;\r\n  charset=utf-8"))
        }
        if kind == .manyFoldedHeaders {
            for index in 0..<40 {
                let name = ["X-Trace-\(index)", "References", "In-Reply-To", "Cc", "Received"][
                    index % 5]
                let value = (0..<(3 + index % 4)).map { _ in
                    "<\(words(2, &generator).replacing(" ", with: "."))@example.org>"
                }
                fields.append(
                    HeaderField(
                        name, value.joined(separator: index % 2 == 0 ? "\r\n " : ",\r\n\t  ")))
            }
        }
        return (HeaderSection(fields), body(kind, &generator))
    }

    private static func body(_ kind: Kind, _ generator: inout SeededGenerator) -> [UInt8] {
        let lines = Int.random(in: 1...60, using: &generator)
        var body = [UInt8]()
        func add(_ line: [UInt8]) { body += line + [13, 10] }
        switch kind {
        case .ascii, .manyFoldedHeaders:
            for _ in 0..<lines { add(Array(words(9, &generator).utf8)) }
        case .eightBit:
            for index in 0..<lines {
                // UTF-8, and octets that are not UTF-8.
                add(
                    index % 2 == 0
                        ? Array("Füße — 日本語 \(words(4, &generator))".utf8)
                        : (0..<70).map { _ in UInt8.random(in: 0x80...0xFF, using: &generator) })
            }
        case .longLines:
            for index in 0..<5 {
                add(
                    (0..<998).map { _ in
                        index % 2 == 0
                            ? UInt8.random(in: 0x21...0x7E, using: &generator) : UInt8(ascii: "x")
                    })
                add((0..<998).map { $0 % 3 == 0 ? 0x20 : 0x61 })
            }
        case .dots:
            for index in 0..<lines {
                add(
                    [UInt8](repeating: UInt8(ascii: "."), count: 1 + index % 4)
                        + (index % 3 == 0 ? [] : Array(words(2, &generator).utf8)))
            }
        case .emptyBody: break
        case .trailingBlankLines:
            add(Array(words(5, &generator).utf8))
            for index in 0..<lines {
                add([UInt8](repeating: index % 2 == 0 ? 0x20 : 0x09, count: index % 3))
            }
            for _ in 0..<lines { add([]) }
        case .whiteSpace:
            for _ in 0..<lines {
                add(
                    (0..<Int.random(in: 0...80, using: &generator)).map { _ in
                        [0x20, 0x09, 0x20, 0x61, 0x62][Int.random(in: 0..<5, using: &generator)]
                    })
            }
        }
        return body
    }

    private static func words(_ count: Int, _ generator: inout SeededGenerator) -> String {
        (0..<count).map { _ in
            String(
                decoding: (0..<Int.random(in: 1...9, using: &generator)).map { _ in
                    UInt8.random(in: 0x61...0x7A, using: &generator)
                }, as: UTF8.self)
        }.joined(separator: " ")
    }
}
