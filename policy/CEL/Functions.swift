// The standard functions and conversions on values (CEL language definition, "List of
// Standard Definitions").

extension Interpreter {
    /// Calls a function; no argument is missing.
    mutating func call(
        _ function: CELFunction, _ arguments: [CELValue]
    ) throws(EvaluationError) -> CELValue {
        guard let first = arguments.first else { throw noOverload(function.rawValue) }
        switch function {
        case .size: return try size(first)
        case .contains, .startsWith, .endsWith:
            guard arguments.count == 2, case .string(let text) = first,
                case .string(let part) = arguments[1]
            else { break }
            return .bool(try search(function, Array(text.utf8), Array(part.utf8)))
        case .type: return .type(first.typeName)
        case .dyn: return first
        case .bool, .int, .uint, .double, .string, .bytes, .timestamp, .duration:
            guard arguments.count == 1 else { break }
            return try convert(first, to: function)
        case .ip, .cidr, .isIP, .isCIDR, .isCanonical, .family, .isUnspecified, .isLoopback,
            .isLinkLocalMulticast,
            .isLinkLocalUnicast, .isGlobalUnicast, .containsIP, .containsCIDR, .masked,
            .prefixLength:
            if let value = try callAddress(function, arguments) { return value }
        default:
            guard arguments.count <= 2 else { break }
            if case .duration(let duration) = first, arguments.count == 1,
                let part = durationPart(function, duration)
            {
                return .int(part)
            }
            guard case .timestamp(let time) = first else { break }
            var offset: Int64 = 0
            if arguments.count == 2 {
                guard case .string(let zone) = arguments[1] else { break }
                try charge(ExpressionLimits.zoneSteps)
                guard let found = zones.seconds(of: zone, at: time.seconds) else {
                    throw .unknownZone
                }
                offset = found
            }
            return .int(timestampPart(function, time, offset))
        }
        throw EvaluationError(
            .noSuchOverload,
            "no such overload: \(function.rawValue) of \(arguments.map(\.typeName).joined(separator: ", "))"
        )
    }

    private mutating func size(_ value: CELValue) throws(EvaluationError) -> CELValue {
        switch value {
        case .string(let text):
            try charge(text.utf8.count / 16)
            return .int(Int64(text.unicodeScalars.count))
        case .bytes(let bytes): return .int(Int64(bytes.count))
        case .list(let list): return .int(Int64(list.count))
        case .map(let map): return .int(Int64(map.entries.count))
        default: throw noOverload("size", value)
        }
    }

    private mutating func search(
        _ function: CELFunction, _ text: [UInt8], _ part: [UInt8]
    ) throws(EvaluationError) -> Bool {
        try charge((text.count + part.count) / 16)
        guard part.count <= text.count else { return false }
        switch function {
        case .startsWith: return text.starts(with: part)
        case .endsWith: return text.suffix(part.count).elementsEqual(part)
        default:
            if part.isEmpty { return true }
            // The plain search can take as many steps as the product of the lengths, so these are
            // charged in advance.
            try charge((text.count - part.count + 1) * part.count / 64)
            return (0...(text.count - part.count)).contains {
                text[$0..<$0 + part.count].elementsEqual(part)
            }
        }
    }

    // MARK: Time

    private func durationPart(_ function: CELFunction, _ duration: CELDuration) -> Int64? {
        let total = duration.total
        return switch function {
        case .getHours: Int64(total / 3_600_000_000_000)
        case .getMinutes: Int64(total / 60_000_000_000)
        case .getSeconds: Int64(total / 1_000_000_000)
        // The component, not the whole duration in milliseconds, as defined by CEL.
        case .getMilliseconds: Int64(total / 1_000_000 % 1_000)
        default: nil
        }
    }

    private func timestampPart(
        _ function: CELFunction, _ time: CELTimestamp, _ offset: Int64
    ) -> Int64 {
        let parts = CalendarParts(seconds: time.seconds + offset)
        return switch function {
        case .getFullYear: parts.year
        case .getMonth: parts.month - 1
        case .getDate: parts.day
        case .getDayOfMonth: parts.day - 1
        case .getDayOfWeek: parts.weekday
        case .getDayOfYear: parts.dayOfYear
        case .getHours: parts.hour
        case .getMinutes: parts.minute
        case .getSeconds: parts.second
        default: Int64(time.nanoseconds / 1_000_000)
        }
    }

    // MARK: Conversions

    private mutating func convert(
        _ value: CELValue, to target: CELFunction
    ) throws(EvaluationError) -> CELValue {
        let range = EvaluationError(.overflow, "out of the range of \(target.rawValue)")
        let malformed = EvaluationError(
            .invalidArgument, "not \(target == .int ? "an" : "a") \(target.rawValue)")
        if case .string(let text) = value { try charge(text.utf8.count / 16) }
        switch (target, value) {
        case (.bool, .bool), (.int, .int), (.uint, .uint), (.double, .double), (.string, .string),
            (.bytes, .bytes),
            (.timestamp, .timestamp), (.duration, .duration):
            return value
        case (.bool, .string(let text)):
            if ["1", "t", "T", "true", "TRUE", "True"].contains(text) { return .bool(true) }
            if ["0", "f", "F", "false", "FALSE", "False"].contains(text) { return .bool(false) }
            throw malformed
        case (.int, .uint(let uint)):
            guard let int = Int64(exactly: uint) else { throw range }
            return .int(int)
        case (.int, .double(let double)):
            // Both ends are refused: a double cannot distinguish the last int from the next number
            // beyond it.
            guard double > -0x1p63, double < 0x1p63 else { throw range }
            return .int(Int64(double))
        case (.int, .string(let text)):
            guard let int = Int64(text) else { throw malformed }
            return .int(int)
        case (.int, .timestamp(let time)): return .int(time.seconds)
        case (.uint, .int(let int)):
            guard let uint = UInt64(exactly: int) else { throw range }
            return .uint(uint)
        case (.uint, .double(let double)):
            guard double >= 0, double < 0x1p64 else { throw range }
            return .uint(UInt64(double))
        case (.uint, .string(let text)):
            guard let uint = UInt64(text) else { throw malformed }
            return .uint(uint)
        case (.double, .int(let int)): return .double(Double(int))
        case (.double, .uint(let uint)): return .double(Double(uint))
        case (.double, .string(let text)):
            // Swift passes the text to C, where a NUL ends the text.
            guard !text.utf8.contains(0), let double = Double(text) else { throw malformed }
            return .double(double)
        case (.string, .bool(let bool)): return .string(bool ? "true" : "false")
        case (.string, .int(let int)): return .string(String(int))
        case (.string, .uint(let uint)): return .string(String(uint))
        case (.string, .double(let double)): return .string(doubleText(double))
        case (.string, .bytes(let bytes)):
            try charge(bytes.count / 16)
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw EvaluationError(.invalidArgument, "invalid UTF-8")
            }
            return .string(text)
        case (.string, .timestamp(let time)): return .string(time.text)
        case (.string, .duration(let duration)): return .string(duration.text)
        case (.string, .ip(let address)): return .string(address.description)
        case (.string, .cidr(let network)): return .string(network.description)
        case (.bytes, .string(let text)): return .bytes(Array(text.utf8))
        case (.timestamp, .string(let text)):
            guard let time = CELTimestamp(text: text) else { throw malformed }
            return .timestamp(time)
        case (.timestamp, .int(let int)):
            guard let time = CELTimestamp(seconds: int) else { throw range }
            return .timestamp(time)
        case (.duration, .string(let text)):
            guard let duration = CELDuration(text: text) else { throw malformed }
            return .duration(duration)
        default:
            throw noOverload(target.rawValue, value)
        }
    }
}

/// A double in the fewest digits that give the same value when read, with an exponent below
/// 1e-4 and from 1e21 on.
func doubleText(_ double: Double) -> String {
    if double.isNaN { return "NaN" }
    if double.isInfinite { return double < 0 ? "-Inf" : "+Inf" }
    var text = double.description
    if text.hasSuffix(".0") { text.removeLast(2) }
    guard let split = text.firstIndex(of: "e"), double.magnitude >= 1, double.magnitude < 1e21,
        let exponent = Int(text[text.index(after: split)...])
    else { return text }
    // Between 2^53 and 1e21 Swift writes an exponent; here whole numbers
    // are written in full instead.
    let sign = text.hasPrefix("-") ? "-" : ""
    let digits = text[..<split].filter(\.isNumber)
    return sign + digits + String(repeating: "0", count: max(0, exponent + 1 - digits.count))
}
