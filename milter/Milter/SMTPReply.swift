// Typed SMTP replies: temporary and permanent failures are different types, and neither can hold what would break the dialogue.

/// Why a text cannot be an SMTP reply.
package enum SMTPReplyError: Error, Hashable, CustomStringConvertible {
    /// The code is not of the failure's class: 400–499 for a temporary, 500–599 for a permanent failure.
    case code(Int)
    /// The enhanced status code is not `class.subject.detail` (RFC 3463 section 2), or its class is not the code's.
    case enhancedStatus(String)
    /// No line at all, or more than `SMTPReplyLimit.lines`.
    case lineCount(Int)
    /// A line is longer than `SMTPReplyLimit.lineLength` octets.
    case lineLength(Int)
    /// An octet that is not HT or printable ASCII (RFC 5321 section 4.2), or a `%`, which libmilter and MTAs take for a format.
    case octet(UInt8)

    package var description: String {
        switch self {
        case .code(let code): "SMTP reply code \(code) is not of the failure's class"
        case .enhancedStatus(let status): "enhanced status code \"\(status)\" is malformed or not of the reply code's class"
        case .lineCount(let count): "an SMTP reply must have 1 to \(SMTPReplyLimit.lines) lines, not \(count)"
        case .lineLength(let length):
            "a line of an SMTP reply must have at most \(SMTPReplyLimit.lineLength) octets, not \(length)"
        case .octet(let octet): "octet \(octet) is not allowed in the text of an SMTP reply"
        }
    }
}

/// What libmilter takes as a reply; beyond it the throwing initializers throw, and the repairing ones cut.
package enum SMTPReplyLimit {
    /// libmilter/smfi.c, MAXREPLIES.
    package static let lines = 32
    /// libmilter/smfi.c, MAXREPLYLEN.
    package static let lineLength = 980
}

/// What both kinds of failure have in common.
package protocol SMTPFailure: Sendable, Hashable, CustomStringConvertible {
    /// The reply code (RFC 5321 section 4.2.1).
    var code: Int { get }
    /// The enhanced status code (RFC 3463), of the same class as `code`.
    var enhancedStatus: String { get }
    /// The text, 1 to 32 lines without codes and line ends.
    var lines: [String] { get }
}

extension SMTPFailure {
    /// `code enhanced first-line / second line`, for logs and diffs.
    package var description: String { "\(code) \(enhancedStatus) \(lines.joined(separator: " / "))" }
}

/// A 4xx reply: the client keeps the mail and tries again.
package struct TemporaryFailure: SMTPFailure {
    package let code: Int
    package let enhancedStatus: String
    package let lines: [String]

    /// Takes a reply whose parts are known to fit; throws what does not fit otherwise.
    package init(code: Int, enhancedStatus: String, lines: [String]) throws(SMTPReplyError) {
        try ReplyRules.check(code: code, class: 4, enhancedStatus: enhancedStatus, lines: lines)
        self.code = code
        self.enhancedStatus = enhancedStatus
        self.lines = lines
    }

    /// Never fails, for text with foreign parts: a code that is not 4xx becomes 451, an enhanced code that is not 4.x.y becomes
    /// 4.0.0, line ends divide lines, any other octet that cannot stand becomes `?`, what is too long is cut.
    package init(repairing code: Int, _ enhancedStatus: String, _ text: String) {
        let fits = (400...499).contains(code)
        self.code = fits ? code : 451
        self.enhancedStatus = ReplyRules.isEnhancedStatus(enhancedStatus, class: 4) ? enhancedStatus : "4.0.0"
        self.lines = ReplyRules.repaired(text)
    }
}

/// A 5xx reply: the client gives the mail up and reports it to its sender.
package struct PermanentFailure: SMTPFailure {
    package let code: Int
    package let enhancedStatus: String
    package let lines: [String]

    /// Takes a reply whose parts are known to fit; throws what does not fit otherwise.
    package init(code: Int, enhancedStatus: String, lines: [String]) throws(SMTPReplyError) {
        try ReplyRules.check(code: code, class: 5, enhancedStatus: enhancedStatus, lines: lines)
        self.code = code
        self.enhancedStatus = enhancedStatus
        self.lines = lines
    }

    /// Never fails, for text with foreign parts: a code that is not 5xx becomes 554, an enhanced code that is not 5.x.y becomes
    /// 5.0.0, line ends divide lines, any other octet that cannot stand becomes `?`, what is too long is cut.
    package init(repairing code: Int, _ enhancedStatus: String, _ text: String) {
        let fits = (500...599).contains(code)
        self.code = fits ? code : 554
        self.enhancedStatus = ReplyRules.isEnhancedStatus(enhancedStatus, class: 5) ? enhancedStatus : "5.0.0"
        self.lines = ReplyRules.repaired(text)
    }
}

/// The rules that both kinds share.
enum ReplyRules {
    static func check(code: Int, class digit: Int, enhancedStatus: String, lines: [String]) throws(SMTPReplyError) {
        guard code / 100 == digit else { throw .code(code) }
        guard isEnhancedStatus(enhancedStatus, class: digit) else { throw .enhancedStatus(enhancedStatus) }
        guard (1...SMTPReplyLimit.lines).contains(lines.count) else { throw .lineCount(lines.count) }
        for line in lines {
            guard line.utf8.count <= SMTPReplyLimit.lineLength else { throw .lineLength(line.utf8.count) }
            for octet in line.utf8 where !isText(octet) { throw .octet(octet) }
        }
    }

    /// RFC 3463 section 2: class, subject of 1–3 digits, detail of 1–3 digits.
    static func isEnhancedStatus(_ status: String, class digit: Int) -> Bool {
        let parts = status.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].elementsEqual(String(digit).utf8) else { return false }
        return parts[1...].allSatisfy { (1...3).contains($0.count) && $0.allSatisfy { (0x30...0x39).contains($0) } }
    }

    static func isText(_ octet: UInt8) -> Bool {
        (octet == 0x09 || (0x20...0x7E).contains(octet)) && octet != UInt8(ascii: "%")
    }

    static func repaired(_ text: String) -> [String] {
        var lines: [[UInt8]] = [[]]
        var afterCR = false
        for octet in text.utf8 {
            if octet == 0x0A && afterCR {
                afterCR = false
                continue
            }
            afterCR = octet == 0x0D
            if octet == 0x0D || octet == 0x0A {
                guard lines.count < SMTPReplyLimit.lines else { break }
                lines.append([])
            } else if lines[lines.count - 1].count < SMTPReplyLimit.lineLength {
                lines[lines.count - 1].append(isText(octet) ? octet : UInt8(ascii: "?"))
            }
        }
        while lines.count > 1, lines.last?.isEmpty == true { lines.removeLast() }
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }
}
