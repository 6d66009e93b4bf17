// The .testcase format: a dialogue with a real Postfix, and the messages that must arrive at the
// other end. Tests/PostfixTests/README.md describes it.

import Foundation

/// One case, read from a file.
package struct TestCase: Sendable {
    /// A step of the dialogue.
    enum Step: Sendable {
        /// Open a new connection.
        case connect
        /// Send these octets.
        case send([UInt8])
        /// Send this line this number of times with `{n}` = 0, 1, …, and expect each reply to
        /// match.
        case sendMany(Int, String, pattern: String)
        /// Read a reply that matches.
        case expect(String)
    }

    /// A message that must arrive.
    struct Delivery: Sendable {
        var from = "*"
        var recipients: [String] = []
        var lines: [String] = []
    }

    /// The file's name without folder and extension.
    package let name: String
    /// The purpose of the case: the comment at the top.
    package let description: String
    /// `[postfix]`: parameters of main.cf.
    package let settings: [String: String]
    /// `[sink]`: the offers and refusals of the other end.
    package let behaviour: SinkBehaviour
    let steps: [Step]
    let deliveries: [Delivery]
    /// Lines of each other section, for the code that sets the case up (`filter`, `postern`, …).
    package let sections: [String: [String]]

    /// Reads a file. If it does not match the format, throws with file and line.
    package init(file: String) throws {
        let url = URL(fileURLWithPath: file)
        try self.init(
            name: url.deletingPathExtension().lastPathComponent,
            text: String(contentsOf: url, encoding: .utf8),
            folder: url.deletingLastPathComponent().path)
    }

    /// Reads a text. `folder`: the folder of the files named in the dialogue.
    package init(name: String, text: String, folder: String = ".") throws {
        var parser = TestCaseParser(name: name, folder: folder)
        for (index, line) in text.components(separatedBy: "\n").enumerated() {
            do {
                try parser.take(line.hasSuffix("\r") ? String(line.dropLast()) : line)
            } catch let error as HarnessError {
                throw HarnessError("\(name).testcase:\(index + 1): \(error)")
            }
        }
        self.name = name
        description = parser.description.joined(separator: " ")
        settings = parser.settings
        behaviour = parser.behaviour
        steps = try parser.finishedSteps()
        deliveries = parser.finishedDeliveries()
        sections = parser.sections
    }

    /// All cases of a folder, by name; throws if there are none.
    package static func all(in folder: String) throws -> [TestCase] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
            $0.hasSuffix(".testcase")
        }.sorted()
        if names.isEmpty { throw HarnessError("no .testcase in \(folder)") }
        return try names.map { try TestCase(file: "\(folder)/\($0)") }
    }
}

private struct TestCaseParser {
    let name: String
    let folder: String
    var description = [String]()
    var settings = [String: String]()
    var behaviour = SinkBehaviour()
    var sections = [String: [String]]()
    private var steps = [TestCase.Step]()
    private var deliveries = [TestCase.Delivery]()
    private var section = ""
    private var inMessage = false
    /// A `C*N:` without its `S:` so far.
    private var many: (Int, String)?

    init(name: String, folder: String) {
        self.name = name
        self.folder = folder
    }

    func finishedSteps() throws -> [TestCase.Step] {
        if many != nil { throw HarnessError("\(name).testcase: C*N: without S: after it") }
        if steps.isEmpty { throw HarnessError("\(name).testcase: no [smtp] dialogue") }
        return steps
    }

    func finishedDeliveries() -> [TestCase.Delivery] {
        deliveries.map { delivery in
            var delivery = delivery
            while delivery.lines.last?.isEmpty == true { delivery.lines.removeLast() }
            return delivery
        }
    }

    mutating func take(_ line: String) throws {
        if line.hasPrefix("["), line.hasSuffix("]"), !line.contains(" ") {
            section = String(line.dropFirst().dropLast())
            inMessage = false
            if section == "delivered" { deliveries.append(TestCase.Delivery()) }
            return
        }
        if !inMessage {
            if line.hasPrefix("#") {
                if section.isEmpty {
                    description.append(line.dropFirst().trimmingCharacters(in: .whitespaces))
                }
                return
            }
            if line.trimmingCharacters(in: .whitespaces).isEmpty && section != "delivered" {
                return
            }
        }
        switch section {
        case "": throw HarnessError("text before the first section")
        case "postfix":
            guard let equals = line.firstIndex(of: "=") else {
                throw HarnessError("not `name = value`")
            }
            settings[line[..<equals].trimmingCharacters(in: .whitespaces)] =
                line[line.index(after: equals)...].trimmingCharacters(in: .whitespaces)
        case "sink": try sink(line)
        case "smtp": try smtp(line)
        case "delivered": try delivered(line)
        default: sections[section, default: []].append(line)
        }
    }

    private mutating func sink(_ line: String) throws {
        let words = line.split(separator: " ", maxSplits: 3).map(String.init)
        if words.count == 2, words[0] == "keyword" {
            behaviour.keywords.append(words[1])
        } else if words.count == 4, words[0] == "refuse", words[1] == "rcpt" {
            behaviour.refusedRecipients[words[2]] = words[3]
        } else if words.count == 4, words[0] == "refuse", words[1] == "data" {
            behaviour.refusedMessages[words[2]] = words[3]
        } else {
            throw HarnessError("not `keyword WORD` or `refuse rcpt|data PATH REPLY`")
        }
    }

    private mutating func smtp(_ line: String) throws {
        if many != nil && !line.hasPrefix("S:") {
            throw HarnessError("C*N: must be followed by S:")
        }
        if line == "connect" {
            steps.append(.connect)
        } else if line.hasPrefix("C: ") || line == "C:" {
            steps.append(.send(try Self.octets(line.dropFirst(3)) + [0x0D, 0x0A]))
        } else if line.hasPrefix("C+: ") {
            steps.append(.send(try Self.octets(line.dropFirst(4))))
        } else if line.hasPrefix("C<: ") {
            let file = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(line.dropFirst(4))"))
            steps.append(.send(SMTPClient.stuffed(Self.withCRLF(Array(file)))))
        } else if line.hasPrefix("C*"), let colon = line.firstIndex(of: ":"),
            let count = Int(line[line.index(line.startIndex, offsetBy: 2)..<colon]), count > 0
        {
            many = (count, line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
        } else if line.hasPrefix("S:") {
            let pattern = line.dropFirst(2).trimmingCharacters(in: .whitespaces)
            if let (count, text) = many {
                steps.append(.sendMany(count, text, pattern: pattern))
                many = nil
            } else {
                steps.append(.expect(pattern))
            }
        } else {
            throw HarnessError("not a line of a dialogue (connect, C:, C+:, C<:, C*N:, S:)")
        }
    }

    private mutating func delivered(_ line: String) throws {
        let last = deliveries.count - 1
        if inMessage {
            deliveries[last].lines.append(line)
        } else if line.isEmpty {
            inMessage = true
        } else if line.hasPrefix("from:") {
            deliveries[last].from = line.dropFirst(5).trimmingCharacters(in: .whitespaces)
        } else if line.hasPrefix("to:") {
            deliveries[last].recipients.append(
                line.dropFirst(3).trimmingCharacters(in: .whitespaces))
        } else {
            throw HarnessError("not `from:` or `to:`, and no empty line before the message")
        }
    }

    /// Decodes `\r \n \t \0 \\ \xNN`.
    private static func octets(_ text: Substring) throws -> [UInt8] {
        var out = [UInt8]()
        var rest = Array(text.utf8)[...]
        while let octet = rest.popFirst() {
            guard octet == UInt8(ascii: "\\") else {
                out.append(octet)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "r"): out.append(0x0D)
            case UInt8(ascii: "n"): out.append(0x0A)
            case UInt8(ascii: "t"): out.append(0x09)
            case UInt8(ascii: "0"): out.append(0x00)
            case UInt8(ascii: "\\"): out.append(UInt8(ascii: "\\"))
            case UInt8(ascii: "x"):
                guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
                else {
                    throw HarnessError("\\x needs two hexadecimal digits")
                }
                out.append(value)
                rest = rest.dropFirst(2)
            default: throw HarnessError("unknown escape")
            }
        }
        return out
    }

    private static func withCRLF(_ bytes: [UInt8]) -> [UInt8] {
        var out = [UInt8]()
        for octet in bytes where octet != 0x0D {
            if octet == 0x0A { out.append(0x0D) }
            out.append(octet)
        }
        return out
    }
}
