// One line of Postfix's log, as far as it says who sent a message and what became of it. Pure.

import InternetMessage
import Support

/// A line of the queue manager or of a delivery agent (qmgr(8), smtp(8), lmtp(8), error(8)).
package enum DeliveryLogLine: Sendable, Hashable {
    /// The message became active. Postfix writes this before each attempt, so that the attempts of
    /// a message can be read without the lines of its arrival.
    case active(queueID: [UInt8], sender: String)
    /// A delivery agent finished with one recipient.
    case attempt(Attempt)
    /// The message left the queue.
    case removed(queueID: [UInt8])

    /// The result for one recipient.
    package struct Attempt: Sendable, Hashable {
        package let queueID: [UInt8]
        /// In lower case. It may be an inbox.
        package let recipientDomain: String
        /// The host that Postfix was connected to, or that its own text names; nil if there was
        /// none.
        package let host: String?
        package let answer: DeliveryAnswer
    }

    /// Reads a line in any form of syslog, of `maillog_file` and of the journal.
    /// - Returns: nil for every other line, and for one that cannot be read safely.
    package init?(_ line: ArraySlice<UInt8>) {
        guard let (program, body) = Self.program(line), let (id, rest) = Self.queueID(body) else {
            return nil
        }
        if program.elementsEqual("qmgr".utf8) {
            if rest.elementsEqual("removed".utf8) {
                self = .removed(queueID: id)
            } else if let (sender, after) = Self.path(rest, after: "from=<"),
                after.starts(with: ", size=".utf8)
            {
                self = .active(queueID: id, sender: String(decoding: sender, as: UTF8.self))
            } else {
                return nil
            }
            return
        }
        guard
            ["smtp", "lmtp", "error", "retry"].contains(where: { program.elementsEqual($0.utf8) }),
            let attempt = Self.attempt(id, rest)
        else { return nil }
        self = .attempt(attempt)
    }

    /// The last part of the program's name, and the text after `[PID]: `. A name may have several
    /// parts: `postfix/relay/smtp`, `postfix-out/smtp`.
    private static func program(
        _ line: ArraySlice<UInt8>
    ) -> (ArraySlice<UInt8>, ArraySlice<UInt8>)? {
        // Before the first ": " after a process id there is nothing that a client wrote.
        guard let end = line.firstRange(of: Array("]: ".utf8)) else { return nil }
        let head = line[..<end.lowerBound]
        guard let open = head.lastIndex(of: UInt8(ascii: "[")), open > head.startIndex,
            head[(open + 1)...].allSatisfy(\.isASCIIDigit)
        else { return nil }
        // The name follows the host, and is one word. A line that another program writes without a
        // process id has a colon before.
        let name = head[..<open].lastIndex(of: 0x20).map { $0 + 1 } ?? head.startIndex
        let tag = head[name..<open]
        guard let slash = tag.lastIndex(of: UInt8(ascii: "/")),
            tag.allSatisfy({ $0.isASCIIAlphanumeric || "/-_.".utf8.contains($0) }),
            head[..<tag.startIndex].firstRange(of: Array(": ".utf8)) == nil
        else { return nil }
        return (tag[(slash + 1)...], line[end.upperBound...])
    }

    private static func queueID(
        _ body: ArraySlice<UInt8>
    ) -> ([UInt8], ArraySlice<UInt8>)? {
        let id = body.prefix { $0.isASCIILetter || $0.isASCIIDigit }
        guard (6...20).contains(id.count), body[id.endIndex...].starts(with: ": ".utf8) else {
            return nil
        }
        return (Array(id), body[(id.endIndex + 2)...])
    }

    /// The path between angle brackets. A local part may be a quoted string that contains them.
    private static func path(
        _ text: ArraySlice<UInt8>, after mark: String
    ) -> (ArraySlice<UInt8>, ArraySlice<UInt8>)? {
        guard text.starts(with: mark.utf8) else { return nil }
        let start = text.startIndex + mark.utf8.count
        var (at, isQuoted) = (start, false)
        while at < text.endIndex {
            switch text[at] {
            case UInt8(ascii: "\\"): at += 1
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: ">") where !isQuoted: return (text[start..<at], text[(at + 1)...])
            default: break
            }
            at += 1
        }
        return nil
    }

    private static func attempt(_ id: [UInt8], _ rest: ArraySlice<UInt8>) -> Attempt? {
        guard var (to, after) = path(rest, after: "to=<") else { return nil }
        if let (_, next) = path(after, after: ", orig_to=<") { after = next }
        guard after.starts(with: ", relay=".utf8),
            let open = after.firstIndex(of: UInt8(ascii: "("))
        else { return nil }
        // Up to the first parenthesis all is Postfix's own; the text in it is the server's.
        let fields = after[..<open]
        guard let status = value(of: ", status=", in: fields),
            let relay = value(of: ", relay=", in: fields)
        else { return nil }
        let action: DeliveryAction
        if status.elementsEqual("sent".utf8) {
            action = .delivered
        } else if status.elementsEqual("deferred".utf8) {
            action = .delayed
        } else if status.elementsEqual("bounced".utf8) {
            action = .failed
        } else {
            return nil
        }
        if let at = to.lastIndex(of: UInt8(ascii: "@")) { to = to[(at + 1)...] }
        let text = after[(open + 1)...].dropLast()
        let code = value(of: ", dsn=", in: fields)
        let host =
            relay.elementsEqual("none".utf8)
            ? Self.hostBefore(text) : relay.prefix { $0 != UInt8(ascii: "[") }
        return Attempt(
            queueID: id,
            recipientDomain: String(decoding: to.map(\.asciiLowercased), as: UTF8.self),
            host: host.isEmpty ? nil : String(decoding: host, as: UTF8.self),
            answer: DeliveryAnswer(
                status: code.flatMap {
                    StatusCodes.enhanced(in: String(decoding: $0, as: UTF8.self))
                }, action: action, text: String(decoding: text, as: UTF8.self)))
    }

    /// The host of an earlier attempt. Postfix does not connect for a while after a host deferred
    /// everything, and gives that answer again: `delivery temporarily suspended: host NAME[…]`.
    private static func hostBefore(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let suspended = Array("delivery temporarily suspended: ".utf8)
        let rest = text.starts(with: suspended) ? text.dropFirst(suspended.count) : text
        for mark in ["host ", "connect to ", "lost connection with ", "conversation with "] {
            let mark = Array(mark.utf8)
            guard rest.starts(with: mark) else { continue }
            let name = rest.dropFirst(mark.count).prefix {
                $0.isASCIIAlphanumeric || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-")
            }
            return rest[name.endIndex...].first == UInt8(ascii: "[") ? name : []
        }
        return []
    }

    private static func value(
        of mark: String, in fields: ArraySlice<UInt8>
    ) -> ArraySlice<UInt8>? {
        guard let found = fields.firstRange(of: Array(mark.utf8)) else { return nil }
        return fields[found.upperBound...].prefix {
            $0 != UInt8(ascii: ",") && $0 != 0x20
        }
    }
}
