// Writing JSON: members in their order, no white space, no escapes that are not needed.

/// Writes one value in one pass, without building a tree of values.
package struct JSONWriter {
    package private(set) var octets: [UInt8] = []
    /// Whether the next value is the first in its array or object, or belongs to a name.
    private var isFirst = true

    package init(capacity: Int = 512) { octets.reserveCapacity(capacity) }

    /// The text written so far.
    package var text: String { String(decoding: octets, as: UTF8.self) }

    /// An object, whose members `body` writes.
    package mutating func object(_ body: (inout JSONWriter) throws -> Void) rethrows {
        try enclosed("{", "}", body)
    }

    /// An array, whose elements `body` writes.
    package mutating func array(_ body: (inout JSONWriter) throws -> Void) rethrows {
        try enclosed("[", "]", body)
    }

    /// Begins a member; its value must follow.
    package mutating func name(_ name: String) {
        value(name)
        octets.append(UInt8(ascii: ":"))
        isFirst = true
    }

    /// A member that is a string.
    package mutating func member(_ name: String, _ text: String) {
        self.name(name)
        value(text)
    }

    /// A member that is an array of strings.
    package mutating func member(_ name: String, _ texts: [String]) {
        self.name(name)
        value(texts)
    }

    package mutating func value(_ text: String) {
        separate()
        JSONText.append(text, to: &octets)
    }

    package mutating func value(_ texts: [String]) {
        array { for text in texts { $0.value(text) } }
    }

    package mutating func value(_ bool: Bool) { literal(bool ? "true" : "false") }

    package mutating func value(_ number: some BinaryInteger) { literal("\(number)") }

    /// A value that is JSON already, such as a number.
    package mutating func literal(_ text: String) {
        separate()
        octets.append(contentsOf: text.utf8)
    }

    package mutating func value(_ value: JSONValue) {
        switch value {
        case .null: literal("null")
        case .bool(let bool): self.value(bool)
        case .number(let number): literal(number.text)
        case .string(let text): self.value(text)
        case .array(let elements): array { for element in elements { $0.value(element) } }
        case .object(let object):
            self.object {
                for member in object.members {
                    $0.name(member.name)
                    $0.value(member.value)
                }
            }
        }
    }

    private mutating func separate() {
        if isFirst { isFirst = false } else { octets.append(UInt8(ascii: ",")) }
    }

    private mutating func enclosed(
        _ start: Unicode.Scalar, _ end: Unicode.Scalar, _ body: (inout JSONWriter) throws -> Void
    ) rethrows {
        separate()
        octets.append(UInt8(ascii: start))
        isFirst = true
        try body(&self)
        octets.append(UInt8(ascii: end))
        isFirst = false
    }
}

extension JSONValue {
    /// The value as one line of JSON.
    package var text: String { String(decoding: octets, as: UTF8.self) }

    /// The value as UTF-8.
    package var octets: [UInt8] {
        var writer = JSONWriter(capacity: 0)
        writer.value(self)
        return writer.octets
    }
}

package enum JSONText {
    /// Appends a text as a JSON string, control characters and DEL escaped.
    package static func append(_ text: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        defer { output.append(UInt8(ascii: "\"")) }
        // For nearly every text, nothing needs to be escaped.
        guard text.utf8.contains(where: { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C || $0 == 0x7F })
        else {
            output.append(contentsOf: text.utf8)
            return
        }
        for octet in text.utf8 {
            switch octet {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                output.append(UInt8(ascii: "\\"))
                output.append(octet)
            case 0x0A: output.append(contentsOf: "\\n".utf8)
            case 0x0D: output.append(contentsOf: "\\r".utf8)
            case 0x09: output.append(contentsOf: "\\t".utf8)
            // JSON does not require DEL to be escaped, but it may disturb a terminal.
            case 0..<0x20, 0x7F:
                output.append(contentsOf: "\\u00".utf8)
                Hex.append(octet, to: &output)
            default: output.append(octet)
            }
        }
    }
}
