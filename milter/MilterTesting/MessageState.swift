// Envelope and message in an MTA, and the effect of modifications. The index rules were measured on
// Postfix 3.7.11 (PostfixTests/HeaderModificationTests checks this code against it).

import Milter

/// Envelope and message.
package struct MessageState: Sendable, Hashable {
    /// A header field: its name, and everything after the colon, folds as CRLF and white space.
    package struct Field: Sendable, Hashable, CustomStringConvertible {
        package var name: String
        package var value: [UInt8]

        package init(_ name: String, _ value: [UInt8]) {
            self.name = name
            self.value = value
        }

        package var description: String { "\(name):\(String(decoding: value, as: UTF8.self))" }
    }

    /// The reverse-path with brackets.
    package var mailFrom: String
    /// Recipients with brackets, in order.
    package var recipients: [String]
    /// The fields that a filter sees: all except the MTA's own Received.
    package var fields: [Field]
    package var body: [UInt8]
    /// The number of `fields` above the MTA's own Received, because they were inserted there.
    package private(set) var aboveReceived = 0

    package init(mailFrom: String, recipients: [String], fields: [Field], body: [UInt8]) {
        self.mailFrom = mailFrom
        self.recipients = recipients
        self.fields = fields
        self.body = body
    }

    /// The message without the MTA's own Received: fields, empty line, body; lines ended by CRLF.
    package var message: [UInt8] {
        var out = [UInt8]()
        for field in fields { out += Array(field.name.utf8) + [0x3A] + field.value + [0x0D, 0x0A] }
        return out + [0x0D, 0x0A] + body
    }

    /// The values of all fields of this name, top to bottom, as text without the
    /// white space around them.
    package func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map { field in
            let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
            let start = field.value.firstIndex { !isSpace($0) } ?? field.value.endIndex
            let end = field.value.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? start
            return String(decoding: field.value[start..<max(start, end)], as: UTF8.self)
        }
    }

    /// The state after these modifications, one after another.
    package func applying(_ modifications: [RecordedModification]) -> MessageState {
        var state = self
        for modification in modifications { state.apply(modification) }
        return state
    }

    private mutating func apply(_ modification: RecordedModification) {
        switch modification {
        case .changeHeader(let name, let index, let value):
            change(name, index, value)
        case .insertHeader(let index, let name, let value):
            insert(Field(name, value), at: index)
        case .addHeader(let name, let value):
            fields.append(Field(name, value))
        case .changeFrom(let path, _):
            mailFrom = Self.bracketed(path)
        case .addRecipient(let path, _):
            // Postfix merges duplicates, comparing exactly.
            if !recipients.contains(Self.bracketed(path)) {
                recipients.append(Self.bracketed(path))
            }
        case .deleteRecipient(let path):
            recipients.removeAll { $0 == Self.bracketed(path) }
        case .replaceBody(let body):
            self.body = body
        }
    }

    /// The index counts the present fields of that name, so earlier changes count. After deletion
    /// of the first of three, the second is the first; an inserted field is counted at its
    /// position.
    private mutating func change(_ name: String, _ index: Int, _ value: [UInt8]?) {
        let positions = fields.indices.filter { fields[$0].name.lowercased() == name.lowercased() }
        guard index >= 1, index <= positions.count else {
            if let value { fields.append(Field(name, value)) }
            return
        }
        let position = positions[index - 1]
        if let value {
            fields[position] = Field(name, value)
        } else {
            fields.remove(at: position)
            if position < aboveReceived { aboveReceived -= 1 }
        }
    }

    /// The index counts every present field, including the MTA's own Received; fields
    /// inserted at 0 are above it.
    private mutating func insert(_ field: Field, at index: Int) {
        if index <= aboveReceived {
            fields.insert(field, at: max(0, index))
            aboveReceived += 1
        } else {
            fields.insert(field, at: min(index - 1, fields.count))
        }
    }

    static func bracketed(_ path: String) -> String {
        path.hasPrefix("<") && path.hasSuffix(">") ? path : "<\(path)>"
    }
}
