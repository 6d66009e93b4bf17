// Writing one JSON object member by member.

/// Writes one JSON object without white space, member by member, in one pass. The response to a decision is written without a
/// tree of values.
package struct JSONObjectWriter {
    private var octets: [UInt8] = [UInt8(ascii: "{")]
    private var isFirst = true

    package init(capacity: Int = 512) { octets.reserveCapacity(capacity) }

    /// Begins a member; its value must follow.
    package mutating func name(_ name: String) {
        if isFirst { isFirst = false } else { octets.append(UInt8(ascii: ",")) }
        value(name)
        octets.append(UInt8(ascii: ":"))
    }

    /// A member that is a string.
    package mutating func member(_ name: String, _ text: String) {
        self.name(name)
        value(text)
    }

    /// Appends text that is already JSON.
    package mutating func raw(_ text: String) { octets.append(contentsOf: text.utf8) }

    /// An array of strings.
    package mutating func list(_ texts: [String]) {
        octets.append(UInt8(ascii: "["))
        for (index, text) in texts.enumerated() {
            if index > 0 { octets.append(UInt8(ascii: ",")) }
            value(text)
        }
        octets.append(UInt8(ascii: "]"))
    }

    /// A string.
    package mutating func value(_ text: String) { JSONText.append(text, to: &octets) }

    /// Closes the object. Nothing may follow.
    package mutating func end() -> String {
        octets.append(UInt8(ascii: "}"))
        return String(decoding: octets, as: UTF8.self)
    }
}
