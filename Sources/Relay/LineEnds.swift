// Converts a message from a file to the form that a filter of Postfix sees.

package enum LineEnds {
    /// Postfix reads a bare LF as a line end and sends every line with CRLF. A bare CR stays.
    package static func crlf(_ message: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(message.count + message.count / 32)
        var previous: UInt8 = 0
        for octet in message {
            if octet == 0x0A, previous != 0x0D { out.append(0x0D) }
            out.append(octet)
            previous = octet
        }
        return out
    }

    /// A message in the form that Postfix receives by SMTP. In addition, a `From ` line of a
    /// mailbox file at its start becomes a separate field (smtpd). A line that is not a field ends
    /// the header section, and an empty line is inserted before it (cleanup). A filter does not see
    /// the original form of either.
    package static func received(_ message: [UInt8]) -> [UInt8] {
        var bytes = crlf(message)
        let mark = bytes.prefix { $0 == UInt8(ascii: ">") }.count
        if bytes[mark...].starts(with: "From ".utf8) {
            bytes.insert(contentsOf: "X-Mailbox-Line: ".utf8, at: 0)
        }
        var start = 0
        while start < bytes.count,
            bytes[start] != 0x0D || start + 1 >= bytes.count || bytes[start + 1] != 0x0A
        {
            let isContinuation = start > 0 && (bytes[start] == 0x20 || bytes[start] == 0x09)
            guard isContinuation || isField(bytes[start...]) else {
                bytes.insert(contentsOf: [0x0D, 0x0A], at: start)
                return bytes
            }
            while start < bytes.count, bytes[start] != 0x0A { start += 1 }
            start += 1
        }
        return bytes
    }

    /// Whether Postfix reads the line as the start of a field: printable ASCII, then a colon. White
    /// space before the colon is allowed (RFC 5322 section 4.5).
    private static func isField(_ line: ArraySlice<UInt8>) -> Bool {
        var hasName = false
        var hasSpace = false
        for octet in line {
            switch octet {
            case UInt8(ascii: ":"): return hasName
            case 0x20, 0x09:
                guard hasName else { return false }
                hasSpace = true
            case 0x21...0x7E:
                guard !hasSpace else { return false }
                hasName = true
            default: return false
            }
        }
        return false
    }
}
