// The test filter's script: one instruction a line.
//
//   needs [no-actions] [unanswered EVENT…] [without EVENT…] what is negotiated (read once, at
//   the start) on EVENT [PATH] REPLY EVENT: connect helo mail rcpt data header eoh body eom;
//   PATH for rcpt alone
//          REPLY: continue, accept, discard, skip, 550 5.1.1 text; \n ends a line
//   change NAME INDEX VALUE modifications at the end of the message, in order; VALUE is everything
//   after the space, delete NAME INDEX with \r \n \t \s (space) \xNN insert INDEX NAME VALUE add
//   NAME VALUE from PATH [ARGUMENTS] addrcpt PATH [ARGUMENTS] delrcpt PATH body FILE | body-echo |
//   body-empty progress throw internal MODIFICATION | smtp MODIFICATION only for Postfix's own
//   mail, or only for other mail

import Foundation
import Milter

struct Script: Sendable {
    var lines: [[String]] = []

    init(file: String?) {
        guard let file, let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            return
        }
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            lines.append(
                line.split(separator: " ", omittingEmptySubsequences: false).map(String.init))
        }
    }

    private static let events: [String: MilterEvents] = [
        "connect": .connect, "helo": .helo, "mail": .mail, "rcpt": .recipient, "data": .data,
        "unknown": .unknown,
        "header": .header, "eoh": .endOfHeaders, "body": .body,
    ]

    var needs: MilterNeeds {
        var needs = MilterNeeds.everything
        needs.macros = [
            .connect: ["j", "{daemon_name}", "{client_addr}"], .mail: ["i", "{auth_authen}"],
            .recipient: ["i"],
            .endOfMessage: ["i"],
        ]
        for line in lines where line[0] == "needs" {
            var set = ""
            for word in line.dropFirst() {
                if let event = Self.events[word] {
                    if set == "without" { needs.events.remove(event) }
                    needs.answers.remove(event)
                } else if word == "no-actions" {
                    needs.actions = []
                } else {
                    set = word
                }
            }
        }
        return needs
    }

    func reply(_ event: String, path: String? = nil) -> MilterReply {
        for line in lines where line.count > 2 && line[0] == "on" && line[1] == event {
            var rest = line.dropFirst(2)
            if let path {
                guard let first = rest.first, first == path || first == "*" else { continue }
                rest = rest.dropFirst()
            }
            return Self.reply(Array(rest))
        }
        return .continue
    }

    private static func reply(_ words: [String]) -> MilterReply {
        switch words.first {
        case "accept": return .accept
        case "discard": return .discard
        case "skip": return .skip
        case "continue", nil: return .continue
        default: break
        }
        let code = Int(words[0]) ?? 0
        let text = words.dropFirst(2).joined(separator: " ").replacingOccurrences(
            of: "\\n", with: "\n")
        let status = words.count > 1 ? words[1] : ""
        return code / 100 == 4
            ? .temporaryFailure(TemporaryFailure(repairing: code, status, text))
            : .reject(PermanentFailure(repairing: code, status, text))
    }

    /// A value with its escapes resolved.
    static func value(_ words: some Sequence<String>) -> [UInt8] {
        var out = [UInt8]()
        var rest = Array(words.joined(separator: " ").utf8)[...]
        while let octet = rest.popFirst() {
            guard octet == UInt8(ascii: "\\"), let next = rest.popFirst() else {
                out.append(octet)
                continue
            }
            switch next {
            case UInt8(ascii: "r"): out.append(0x0D)
            case UInt8(ascii: "n"): out.append(0x0A)
            case UInt8(ascii: "t"): out.append(0x09)
            case UInt8(ascii: "s"): out.append(0x20)
            case UInt8(ascii: "x"):
                out.append(
                    UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0x3F)
                rest = rest.dropFirst(2)
            default: out.append(next)
            }
        }
        return out
    }
}
