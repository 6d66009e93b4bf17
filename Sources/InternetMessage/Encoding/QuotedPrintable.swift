// quoted-printable (RFC 2045 section 6.7): the canonical encoder. Decoding is
// `DecodedText(quotedPrintable:)`.

import Support

package enum QuotedPrintable {
    /// Octets in one encoded line, without CRLF and with the `=` of a soft line break.
    package static let lineLength = 76

    /// Decodes octets; never fails. Linear.
    package static func decode(
        _ text: ArraySlice<UInt8>
    ) -> (bytes: [UInt8], defects: Set<TransferDefect>) {
        let decoded = DecodedText(quotedPrintable: text)
        return (decoded.bytes, decoded.defects)
    }

    /// Encodes text: CRLF (and a bare LF, as CRLF) is a line break; every other octet outside
    /// printable ASCII is escaped.
    ///
    /// Also escaped: white space before a line break, and a `.` or `From ` at the beginning of a
    /// line, which gateways change.
    package static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var writer = Writer()
        let input = Array(bytes)
        var index = 0
        while index < input.count {
            let octet = input[index]
            let isPair = octet == 0x0D && index + 1 < input.count && input[index + 1] == 0x0A
            if isPair || octet == 0x0A {
                writer.hardBreak()
                index += isPair ? 2 : 1
                continue
            }
            let next = index + 1 < input.count ? input[index + 1] : 0x0A
            let endsLine =
                next == 0x0A
                || (next == 0x0D && index + 2 < input.count && input[index + 2] == 0x0A)
            let isFromLine =
                writer.column == 0 && octet == UInt8(ascii: "F")
                && input[index...].starts(with: "From ".utf8)
            let mustEscape =
                (octet.isWhiteSpace && endsLine) || isFromLine
                || (writer.column == 0 && octet == UInt8(ascii: "."))
            writer.write(octet, isEscaped: mustEscape || needsEscape(octet), endsLine: endsLine)
            index += 1
        }
        return writer.output
    }

    /// Whether the octet must always be escaped. White space must be only before a line break.
    static func needsEscape(_ octet: UInt8) -> Bool {
        octet == UInt8(ascii: "=") || octet >= 0x7F || (octet < 0x20 && octet != 0x09)
    }

    static func appendEscape(_ octet: UInt8, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "="))
        output.append(Hex.upperDigit(octet >> 4))
        output.append(Hex.upperDigit(octet & 15))
    }

    private struct Writer {
        var output = [UInt8]()
        var column = 0

        mutating func hardBreak() {
            output.append(contentsOf: [0x0D, 0x0A])
            column = 0
        }

        mutating func write(_ octet: UInt8, isEscaped: Bool, endsLine: Bool) {
            let width = isEscaped ? 3 : 1
            // A line that continues needs room for the "=".
            if column + width
                > (endsLine ? QuotedPrintable.lineLength : QuotedPrintable.lineLength - 1)
            {
                output.append(contentsOf: [UInt8(ascii: "="), 0x0D, 0x0A])
                column = 0
            }
            if isEscaped {
                QuotedPrintable.appendEscape(octet, to: &output)
            } else {
                output.append(octet)
            }
            column += width
        }
    }
}
