// Text as HTML, with any characters beside the five.

import Support
import TestSupport
import Testing

@Suite(.blocking) struct HTMLTextTests {
    private static let five: [Unicode.Scalar] = ["<", ">", "\"", "'", "&"]

    /// Scalars before, after and on both sides of each of the five: every one that Swift may join
    /// to another as one Character.
    @Test func escaped_fiveCharactersBesideEveryScalar_noneStays() {
        var text = String.UnicodeScalarView()
        let neighbours = (0x20...UInt32(0x10FFFF)).lazy.compactMap(Unicode.Scalar.init)
            .filter {
                let properties = $0.properties
                return properties.generalCategory != .unassigned
                    && properties.generalCategory != .privateUse
                    && (properties.isGraphemeExtend || !properties.isGraphemeBase
                        || properties.isDiacritic)
            }
        for neighbour in neighbours {
            for mark in Self.five {
                text.append(neighbour)
                text.append(mark)
                text.append(neighbour)
            }
        }
        #expect(text.count > 10_000)
        let escaped = HTMLText.escaped(String(text))
        let octets = Array(escaped.utf8)
        for mark in Self.five.dropLast() {
            #expect(!octets.contains(UInt8(ascii: mark)), "\(mark)")
        }
        #expect(octets.count { $0 == UInt8(ascii: "&") } == text.count { Self.five.contains($0) })
    }

    @Test(arguments: [
        ("\u{600}\"\u{600}>\u{600}<h1>X", "\u{600}&quot;\u{600}&gt;\u{600}&lt;h1&gt;X"),
        ("<\u{301}b>", "&lt;\u{301}b&gt;"),
        ("\r\n<\r\n", "\r\n&lt;\r\n"), ("", ""), ("a b", "a b"), ("a&b'c", "a&amp;b&#39;c"),
        ("&amp;", "&amp;amp;"),
    ])
    func escaped_text_isAsWritten(text: String, expected: String) {
        #expect(HTMLText.escaped(text).hasSameOctets(as: expected))
        #expect(HTMLText.escaped(Array(text.utf8)) == Array(expected.utf8))
    }
}
