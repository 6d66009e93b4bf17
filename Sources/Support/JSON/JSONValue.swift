// A JSON value (RFC 8259) as received: member names are compared octet by octet,
// numbers keep their spelling.

/// A JSON value. Prints its kind only: it may contain an address or a subject.
package enum JSONValue: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)

    /// A whole number.
    package static func integer(_ value: Int64) -> JSONValue { .number(JSONNumber(value)) }

    /// The text; nil for every other kind.
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The truth value; nil for every other kind.
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The number; nil for every other kind.
    package var number: JSONNumber? { if case .number(let value) = self { value } else { nil } }
    /// The elements; nil for every other kind.
    package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    /// The members; nil for every other kind.
    package var object: JSONObject? { if case .object(let value) = self { value } else { nil } }

    /// The kind of the value, for messages to people.
    package var kind: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    package var description: String { "<JSON: \(kind)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension JSONValue {
    /// Texts are compared octet by octet.
    package static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.hasSameOctets(as: right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value)
        case .string(let text): hasher.combine(WireText(text))
        case .array(let items): hasher.combine(items)
        case .object(let object): hasher.combine(object)
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral {
    package init(stringLiteral value: String) { self = .string(value) }
}

extension JSONValue: Encodable {
    /// For an encoder that prints it among other values.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(let number):
            if let integer = number.integer {
                try container.encode(integer)
            } else {
                try container.encode(number.double)
            }
        case .string(let text): try container.encode(text)
        case .array(let items): try container.encode(items)
        case .object(let object):
            try container.encode(
                Dictionary(
                    object.members.map { ($0.name, $0.value) },
                    uniquingKeysWith: { first, _ in first }))
        }
    }
}

/// The members of an object in their order; no name occurs twice.
package struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral,
    CustomStringConvertible, CustomReflectable
{
    package struct Member: Sendable, Hashable {
        package let name: String
        package let value: JSONValue

        package static func == (left: Member, right: Member) -> Bool {
            left.name.hasSameOctets(as: right.name) && left.value == right.value
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(WireText(name))
            hasher.combine(value)
        }
    }

    package private(set) var members: [Member]

    /// The names must differ; the reader ensures that.
    init(members: [Member]) { self.members = members }

    /// If two members have the same name, the last one counts.
    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        members = []
        for (name, value) in elements { self[name] = value }
    }

    /// The value of the member whose name has exactly these octets: names that Unicode calls
    /// equivalent are different names.
    package subscript(name: String) -> JSONValue? {
        get { members.first { $0.name.hasSameOctets(as: name) }?.value }
        set {
            let place = members.firstIndex { $0.name.hasSameOctets(as: name) }
            switch (place, newValue) {
            case (let place?, let value?): members[place] = Member(name: name, value: value)
            case (let place?, nil): members.remove(at: place)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    package var description: String { "<JSON: an object>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A number of JSON, exact. At most 64 characters.
package struct JSONNumber: Sendable, Hashable {
    /// The number as received, in the grammar of RFC 8259 section 6.
    package let text: String

    package init(_ value: Int64) { text = String(value) }

    /// The text must already be checked against the grammar.
    init(checked text: String) { self.text = text }

    /// The value, if it is whole and within ±(2^63 - 1), in any spelling: `10`, `1e1` and
    /// `10.0` are the same number.
    package var integer: Int64? {
        guard let parts = scaled, parts.fraction == false else { return nil }
        return parts.whole
    }

    /// The nearest double; infinite beyond its range.
    package var double: Double { Double(text) ?? .nan }

    /// The least whole number that is not below the value; nil beyond ±(2^63 - 1).
    package var ceiling: Int64? {
        guard let parts = scaled else { return nil }
        guard parts.fraction, !text.hasPrefix("-") else { return parts.whole }
        return parts.whole == Int64.max ? nil : parts.whole + 1
    }

    /// The greatest whole number that is not above the value; nil beyond ±(2^63 - 1).
    package var floor: Int64? {
        guard let parts = scaled else { return nil }
        guard parts.fraction, text.hasPrefix("-") else { return parts.whole }
        return parts.whole == Int64.min ? nil : parts.whole - 1
    }

    /// The value without its decimal places, and whether these were anything but zero.
    private var scaled: (whole: Int64, fraction: Bool)? {
        var digits = [UInt8]()
        var point: Int?
        var exponent = 0
        var isExponentNegative = false
        var inExponent = false
        for octet in text.utf8 {
            switch octet {
            case 0x30...0x39 where inExponent:
                // With 64 characters, a greater exponent makes no difference: the number is
                // out of range or next to zero already.
                exponent = min(exponent * 10 + Int(octet - 0x30), 100_000)
            case 0x30...0x39: digits.append(octet - 0x30)
            case UInt8(ascii: "."): point = digits.count
            case UInt8(ascii: "e"), UInt8(ascii: "E"): inExponent = true
            case UInt8(ascii: "-") where inExponent: isExponentNegative = true
            default: break
            }
        }
        let end = (point ?? digits.count) + (isExponentNegative ? -exponent : exponent)
        var whole: Int64 = 0
        var fraction = false
        for (index, digit) in digits.enumerated() {
            if index >= end {
                fraction = fraction || digit != 0
                continue
            }
            let (tens, overflow) = whole.multipliedReportingOverflow(by: 10)
            let (sum, more) = tens.addingReportingOverflow(Int64(digit))
            guard !overflow, !more else { return nil }
            whole = sum
        }
        if end > digits.count, whole != 0 {
            for _ in digits.count..<end {
                let (tens, overflow) = whole.multipliedReportingOverflow(by: 10)
                guard !overflow else { return nil }
                whole = tens
            }
        }
        return (text.hasPrefix("-") ? -whole : whole, fraction)
    }
}
