// Line ends as Postfix hands them to a filter.

package enum LineEnds {
    /// Postfix takes a bare LF for a line end and hands every line on with CRLF; CR alone stays.
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
}
