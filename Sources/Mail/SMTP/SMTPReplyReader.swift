// Replies of an SMTP server (RFC 5321 section 4.2), read strictly and within limits.

/// One reply: its code, and its texts line by line.
struct ServerReply: Sendable, Hashable {
    /// 200 … 599.
    let code: Int
    let lines: [String]

    /// The enhanced status code (RFC 2034) at the start of the text; nil if there is none.
    var enhanced: String? {
        guard let word = lines.first?.split(separator: " ", maxSplits: 1).first else { return nil }
        let parts = word.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3,
            parts.allSatisfy({
                (1...3).contains($0.utf8.count) && $0.utf8.allSatisfy { (0x30...0x39).contains($0) }
            })
        else { return nil }
        return String(word)
    }

    /// The part that may be reported.
    var summary: String { "\(code)" + (enhanced.map { " \($0)" } ?? "") }
}

/// Assembles replies from octets. A pure parser: the caller feeds it, and it returns each reply
/// when that is complete.
struct SMTPReplyReader {
    enum Defect: Error, Sendable, Hashable { case malformed, tooLong }

    /// Longest line in octets; RFC 5321 section 4.5.3.1.5 allows 512.
    private static let maximumLine = 2048
    /// Maximum lines of one reply; an EHLO answer has about twenty.
    private static let maximumLines = 100

    private var buffer: [UInt8] = []
    private var lines: [String] = []
    private var code: Int?

    /// Whether there are no octets after the last complete reply.
    var isEmpty: Bool { buffer.isEmpty && lines.isEmpty }

    /// Adds octets; returns the reply if it is complete. Octets after it are kept for the next
    /// reply.
    mutating func next(feeding octets: [UInt8] = []) throws(Defect) -> ServerReply? {
        buffer += octets
        while let end = buffer.firstIndex(of: 0x0A) {
            var line = buffer[..<end]
            if line.last == 0x0D { line = line.dropLast() }
            let taken = Array(line)
            buffer.removeSubrange(...end)
            guard taken.count <= Self.maximumLine, lines.count < Self.maximumLines else {
                throw .tooLong
            }
            guard taken.count >= 3, taken.prefix(3).allSatisfy({ (0x30...0x39).contains($0) })
            else { throw .malformed }
            let number = taken.prefix(3).reduce(0) { $0 * 10 + Int($1 - 0x30) }
            let separator = taken.count > 3 ? taken[3] : 0x20
            guard (200...599).contains(number), code == nil || code == number,
                separator == 0x20 || separator == 0x2D
            else {
                throw .malformed
            }
            code = number
            lines.append(String(decoding: taken.dropFirst(4), as: UTF8.self))
            if separator == 0x20 {
                defer { (lines, code) = ([], nil) }
                return ServerReply(code: number, lines: lines)
            }
        }
        guard buffer.count <= Self.maximumLine else { throw .tooLong }
        return nil
    }
}
