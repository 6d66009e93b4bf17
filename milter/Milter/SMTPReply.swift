// Typed SMTP replies. Temporary and permanent failures are different types, and neither can contain
// text that breaks the dialogue.

/// The reason why a text cannot be an SMTP reply.
package enum SMTPReplyError: Error, Hashable, CustomStringConvertible {
    /// The code does not match the kind of failure: 400–499 for a temporary failure, 500–599 for a
    /// permanent one.
    case code(Int)
    /// The enhanced status code is not `class.subject.detail` (RFC 3463 section 2), or its class
    /// differs from the code's.
    case enhancedStatus(String)
    /// No line, or more than `SMTPReplyLimit.lines`.
    case lineCount(Int)
    /// A line is longer than `SMTPReplyLimit.lineLength` octets.
    case lineLength(Int)
    /// An octet that is not HT or printable ASCII (RFC 5321 section 4.2), or a `%`, which libmilter
    /// and MTAs interpret as a format.
    case octet(UInt8)

    package var description: String {
        switch self {
        case .code(let code): "SMTP reply code \(code) is not of the failure's class"
        case .enhancedStatus(let status):
            "enhanced status code \"\(status)\" is malformed or not of the reply code's class"
        case .lineCount(let count):
            "an SMTP reply must have 1 to \(SMTPReplyLimit.lines) lines, not \(count)"
        case .lineLength(let length):
            "a line of an SMTP reply must have at most \(SMTPReplyLimit.lineLength) octets, not \(length)"
        case .octet(let octet): "octet \(octet) is not allowed in the text of an SMTP reply"
        }
    }
}

/// The limits of libmilter for a reply. Beyond them, throwing initializers throw, and repairing
/// ones truncate.
package enum SMTPReplyLimit {
    /// libmilter/smfi.c, MAXREPLIES.
    package static let lines = 32
    /// libmilter/smfi.c, MAXREPLYLEN.
    package static let lineLength = 980
}

/// The differences between temporary and permanent failures.
package protocol SMTPFailureKind: Sendable {
    /// The first digit of both codes.
    static var digit: Int { get }
    /// The reply code that replaces one of another class in a repair.
    static var standardCode: Int { get }
}

/// 4xx: the client keeps the mail and tries again.
package enum TemporaryKind: SMTPFailureKind {
    package static let (digit, standardCode) = (4, 451)
}

/// 5xx: the client drops the mail and reports that to its sender.
package enum PermanentKind: SMTPFailureKind {
    package static let (digit, standardCode) = (5, 554)
}

/// A 4xx reply.
package typealias TemporaryFailure = SMTPFailure<TemporaryKind>
/// A 5xx reply.
package typealias PermanentFailure = SMTPFailure<PermanentKind>

/// A reply that refuses, for now or permanently.
package struct SMTPFailure<Kind: SMTPFailureKind>: Sendable, Hashable, CustomStringConvertible {
    /// The reply code (RFC 5321 section 4.2.1).
    package let code: Int
    /// The enhanced status code (RFC 3463), of the same class as `code`.
    package let enhancedStatus: String
    /// The text, 1 to 32 lines without codes and line ends.
    package let lines: [String]

    /// `code enhanced first-line / second line`, for logs and diffs.
    package var description: String {
        "\(code) \(enhancedStatus) \(lines.joined(separator: " / "))"
    }

    /// Makes a reply from parts that should be valid; throws if they are not.
    package init(code: Int, enhancedStatus: String, lines: [String]) throws(SMTPReplyError) {
        try ReplyRules.check(
            code: code, class: Kind.digit, enhancedStatus: enhancedStatus, lines: lines)
        (self.code, self.enhancedStatus, self.lines) = (code, enhancedStatus, lines)
    }

    /// Never fails; for text with parts from outside. A code of another class becomes 451 or 554.
    /// An enhanced code of another class becomes 4.0.0 or 5.0.0. Line ends split lines. Any other
    /// octet that is not allowed becomes `?`. Text that is too long is truncated.
    package init(repairing code: Int, _ enhancedStatus: String, _ text: String) {
        self.code = code / 100 == Kind.digit ? code : Kind.standardCode
        self.enhancedStatus =
            ReplyRules.isEnhancedStatus(enhancedStatus, class: Kind.digit)
            ? enhancedStatus : "\(Kind.digit).0.0"
        lines = ReplyRules.repaired(text)
    }
}

/// The rules for both kinds.
enum ReplyRules {
    static func check(
        code: Int, class digit: Int, enhancedStatus: String, lines: [String]
    ) throws(SMTPReplyError) {
        guard code / 100 == digit else { throw .code(code) }
        guard isEnhancedStatus(enhancedStatus, class: digit) else {
            throw .enhancedStatus(enhancedStatus)
        }
        guard (1...SMTPReplyLimit.lines).contains(lines.count) else {
            throw .lineCount(lines.count)
        }
        for line in lines {
            guard line.utf8.count <= SMTPReplyLimit.lineLength else {
                throw .lineLength(line.utf8.count)
            }
            for octet in line.utf8 where !isText(octet) { throw .octet(octet) }
        }
    }

    /// RFC 3463 section 2: class, subject of 1–3 digits, detail of 1–3 digits.
    static func isEnhancedStatus(_ status: String, class digit: Int) -> Bool {
        let parts = status.utf8.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].elementsEqual(String(digit).utf8) else { return false }
        return parts[1...].allSatisfy {
            (1...3).contains($0.count) && $0.allSatisfy { (0x30...0x39).contains($0) }
        }
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
