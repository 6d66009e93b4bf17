// The context of a backend's request, as the deciding policy reads it: declared values, undeclared
// names, and unusable values.

import CEL
import RiskPolicy
import Support

/// The context of one request.
package struct QuestionContext: Sendable {
    /// Declared, with a value of the declared type.
    package var values: [(slot: Int, name: String, value: CELValue)] = []
    /// Declared, but the value cannot be used: every rule that reads it is an error.
    package var unusable: [(slot: Int, name: String, fault: SignalFault)] = []
    /// Not declared, and so left out. In the order sent, at most `maximumNamed`.
    package var ignored: [String] = []

    package init() {}

    /// Most names that the log and the answer contain. A backend that sends more has one mistake,
    /// not many.
    package static let maximumNamed = 32
    /// Longest stored name, in octets; a policy can declare a name of 64 letters for each part.
    package static let maximumNameLength = 128
    /// Replaces names that must not be logged: not printable ASCII, too long, or with an `@`.
    package static let otherName = "(other)"

    /// Adds a name that the policy does not declare.
    mutating func ignore(_ name: String) {
        let octets = name.utf8
        let isShown =
            !octets.isEmpty && octets.count <= Self.maximumNameLength
            && octets.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "@") }
        let shown = isShown ? name : Self.otherName
        guard ignored.count < Self.maximumNamed,
            !ignored.contains(where: { $0.hasSameOctets(as: shown) })
        else { return }
        ignored.append(shown)
    }
}

/// The form of context in the log: a keyed hash of the value, or a mark in its place. No hash
/// begins with these characters.
enum ContextMark {
    /// Before the hash.
    static let hash = UInt8(ascii: "#")
    /// The policy did not declare the name.
    static let ignored = "?"
    /// Before the fault of a value that could not be used.
    static let fault = UInt8(ascii: "!")

    static func text(_ fault: SignalFault) -> String { "!" + fault.rawValue }

    /// The fault that a logged mark means.
    static func fault(_ text: String) -> SignalFault? {
        guard text.utf8.first == fault else { return nil }
        return SignalFault(rawValue: String(decoding: text.utf8.dropFirst(), as: UTF8.self))
    }
}

extension SignalSource {
    /// Reads the context that the backend added.
    /// - Parameter areTyped: whether the values are texts that a person typed.
    package func context(
        _ values: [(name: String, value: CELValue)], areTyped: Bool = false
    ) -> QuestionContext {
        var context = QuestionContext()
        guard !values.isEmpty, let now = CELTimestamp(seconds: 0) else { return context }
        var input = policy.makeInput(event: .signIn, now: now)
        for (name, value) in values {
            guard let slot = policy.slot(named: "context." + name) else {
                context.ignore(name)
                continue
            }
            let signal = policy.signals[slot]
            if case .null = value {
                // If the type has a `?`, it means no value.
                if !signal.mayBeMissing { context.unusable.append((slot, name, .wrongType)) }
                continue
            }
            let taken = Self.asDeclared(
                areTyped ? Self.read(value, signal.type) : value, signal.type)
            do throws(PolicyInputError) {
                try policy.set(slot: slot, to: taken, in: &input)
                context.values.append((slot, name, taken))
            } catch {
                context.unusable.append((slot, name, error.fault ?? .wrongType))
            }
        }
        return context
    }

    /// Refuses a request with context that is left out or unusable: for developers of backends.
    package func checkStrictly(_ context: QuestionContext) throws(DecisionError) {
        if let name = context.ignored.first {
            throw .invalid(
                "/context/\(StrictDecoder.escaped(name))", "the policy declares no such context")
        }
        if let (slot, name, fault) = context.unusable.first {
            let type = policy.signals[slot].type.text
            throw .invalid(
                "/context/\(StrictDecoder.escaped(name))",
                "'context.\(name)' (\(type)) \(fault.text)")
        }
    }

    /// A text as the declared type; the text itself if it is not of that type. A list is JSON, or
    /// has commas.
    private static func read(_ value: CELValue, _ type: CELType) -> CELValue {
        guard case .string(let text) = value else { return value }
        switch type {
        case .bool: return text == "true" ? .bool(true) : text == "false" ? .bool(false) : value
        case .int:
            return (Int64(text) ?? Double(text).flatMap(Int64.init(exactly:))).map(CELValue.int)
                ?? value
        case .uint:
            return (UInt64(text) ?? Double(text).flatMap(UInt64.init(exactly:))).map(CELValue.uint)
                ?? value
        case .double: return Double(text).map(CELValue.double) ?? value
        case .list(let element):
            if case .array(let items)? = try? StrictJSON.parse(Array(text.utf8), limit: 1 << 16) {
                return .list(
                    items.map {
                        $0.string.map(CELValue.string) ?? LoggedSignals.value($0, element) ?? .null
                    })
            }
            let items = text.utf8.split(separator: UInt8(ascii: ",")).map {
                String(decoding: $0, as: UTF8.self)
            }
            return .list(items.map { read(.string($0), element) })
        default: return value
        }
    }

    /// JSON has one number type and no time type.
    private static func asDeclared(_ value: CELValue, _ type: CELType) -> CELValue {
        switch (value, type) {
        case (.int(let int), .uint): UInt64(exactly: int).map(CELValue.uint) ?? value
        case (.uint(let uint), .double): .double(Double(uint))
        case (.string(let text), .timestamp):
            CELTimestamp(text: text).map(CELValue.timestamp) ?? value
        case (.string(let text), .duration): CELDuration(text: text).map(CELValue.duration) ?? value
        default: value
        }
    }
}

extension DecisionRecord {
    /// Context that was left out, and context that could not be used, by the
    /// names behind `context.`.
    package var contextTroubles: (ignored: [String], unusable: [(name: String, fault: SignalFault)])
    {
        guard Self.hasMarks(signals),
            let object = try? StrictJSON.parseObject(Array(signals.utf8), limit: 1 << 20)
        else {
            return ([], [])
        }
        var troubles: (ignored: [String], unusable: [(name: String, fault: SignalFault)]) = ([], [])
        for member in object.members {
            guard let name = Self.contextName(member.name), let text = member.value.string else {
                continue
            }
            if text.utf8.elementsEqual(ContextMark.ignored.utf8) { troubles.ignored.append(name) }
            if let fault = ContextMark.fault(text) { troubles.unusable.append((name, fault)) }
        }
        return troubles
    }

    /// The words for a logged mark of context; nil for a value's hash and for other signals.
    package static func contextWords(_ signal: String, _ text: String) -> String? {
        guard contextName(signal) != nil else { return nil }
        if text.utf8.elementsEqual(ContextMark.ignored.utf8) {
            return "left out: the policy did not declare it"
        }
        return ContextMark.fault(text).map { "not used: it \($0.text)" }
    }

    /// All context that the request had, by the names behind `context.`.
    package var contextNames: [String] {
        guard let object = try? StrictJSON.parseObject(Array(signals.utf8), limit: 1 << 20) else {
            return []
        }
        return object.members.compactMap { Self.contextName($0.name) }
    }

    private static func contextName(_ signal: String) -> String? {
        let prefix = "context."
        return signal.utf8.starts(with: prefix.utf8)
            ? String(decoding: signal.utf8.dropFirst(prefix.utf8.count), as: UTF8.self) : nil
    }

    /// Whether a value may be a mark. Every answer needs this, and it avoids parsing most logged
    /// signals.
    private static func hasMarks(_ signals: String) -> Bool {
        var last: UInt8 = 0
        var lastButOne: UInt8 = 0
        for octet in signals.utf8 {
            if lastButOne == UInt8(ascii: ":"), last == UInt8(ascii: "\""),
                octet == ContextMark.fault || octet == UInt8(ascii: "?")
            {
                return true
            }
            (lastButOne, last) = (last, octet)
        }
        return false
    }
}
