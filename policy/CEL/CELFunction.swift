// The standard functions: their names, how they are called, and the types of their
// arguments and results.

/// A standard function. `matches` is omitted on purpose: no regular expressions on user input.
package enum CELFunction: String, Sendable, CaseIterable {
    case size, contains, startsWith, endsWith
    case type, dyn
    case bool, int, uint, double, string, bytes, timestamp, duration
    case getFullYear, getMonth, getDate, getDayOfMonth, getDayOfWeek, getDayOfYear
    case getHours, getMinutes, getSeconds, getMilliseconds
    case ip, cidr, isIP, isCIDR
    /// A function, although it looks like a method.
    case isCanonical = "ip.isCanonical"
    case family, isUnspecified, isLoopback, isLinkLocalMulticast, isLinkLocalUnicast,
        isGlobalUnicast
    case containsIP, containsCIDR, masked, prefixLength

    /// The type of the result for arguments of these types (a method's target first), or nil if no
    /// overload accepts them.
    func result(isMethod: Bool, _ arguments: [CELType]) -> CELType? {
        guard let first = arguments.first else { return nil }
        func takes(_ types: CELType...) -> Bool {
            first == .dyn || types.contains(first)
        }
        let isOne = arguments.count == 1
        switch self {
        case .size:
            guard isOne else { return nil }
            switch first {
            case .string, .bytes, .list, .map, .dyn: return .int
            default: return nil
            }
        case .contains, .startsWith, .endsWith:
            guard isMethod, arguments.count == 2, takes(.string), arguments[1].goesWith(.string)
            else { return nil }
            return .bool
        case .type: return !isMethod && isOne ? .type : nil
        case .dyn: return !isMethod && isOne ? .dyn : nil
        case .bool: return !isMethod && isOne && takes(.bool, .string) ? .bool : nil
        case .int:
            return !isMethod && isOne && takes(.int, .uint, .double, .string, .timestamp)
                ? .int : nil
        case .uint: return !isMethod && isOne && takes(.int, .uint, .double, .string) ? .uint : nil
        case .double:
            return !isMethod && isOne && takes(.int, .uint, .double, .string) ? .double : nil
        case .string:
            let fits = takes(
                .bool, .int, .uint, .double, .string, .bytes, .timestamp, .duration, .ip, .cidr)
            return !isMethod && isOne && fits ? .string : nil
        case .bytes: return !isMethod && isOne && takes(.bytes, .string) ? .bytes : nil
        case .timestamp:
            return !isMethod && isOne && takes(.timestamp, .string, .int) ? .timestamp : nil
        case .duration: return !isMethod && isOne && takes(.duration, .string) ? .duration : nil
        case .getHours, .getMinutes, .getSeconds, .getMilliseconds:
            guard isMethod else { return nil }
            if isOne, takes(.timestamp, .duration) { return .int }
            return arguments.count == 2 && takes(.timestamp) && arguments[1].goesWith(.string)
                ? .int : nil
        case .getFullYear, .getMonth, .getDate, .getDayOfMonth, .getDayOfWeek, .getDayOfYear:
            guard isMethod, takes(.timestamp) else { return nil }
            return isOne || (arguments.count == 2 && arguments[1].goesWith(.string)) ? .int : nil
        case .ip: return isOne && takes(isMethod ? .cidr : .string) ? .ip : nil
        case .cidr: return isOne && takes(.string) ? .cidr : nil
        case .isIP, .isCIDR, .isCanonical: return isOne && takes(.string) ? .bool : nil
        case .family: return isOne && takes(.ip) ? .int : nil
        case .isUnspecified, .isLoopback, .isLinkLocalMulticast, .isLinkLocalUnicast,
            .isGlobalUnicast:
            return isOne && takes(.ip) ? .bool : nil
        case .masked: return isOne && takes(.cidr) ? .cidr : nil
        case .prefixLength: return isOne && takes(.cidr) ? .int : nil
        case .containsIP, .containsCIDR:
            guard arguments.count == 2, takes(.cidr) else { return nil }
            return arguments[1].goesWith(.string)
                || arguments[1] == (self == .containsIP ? .ip : .cidr) ? .bool : nil
        }
    }

    /// Whether the function is called as `x.f()`; `size` and `ip` may be called both ways.
    var isCalled: (asMethod: Bool, asFunction: Bool) {
        switch self {
        case .size, .ip: (true, true)
        case .type, .dyn, .bool, .int, .uint, .double, .string, .bytes, .timestamp, .duration:
            (false, true)
        case .cidr, .isIP, .isCIDR, .isCanonical: (false, true)
        default: (true, false)
        }
    }
}

extension BinaryOperator {
    /// The type of the result, or nil if the operator is not defined for these types.
    func result(_ left: CELType, _ right: CELType) -> CELType? {
        switch self {
        case .or, .and:
            return left.goesWith(.bool) && right.goesWith(.bool) ? .bool : nil
        case .equal, .notEqual:
            return left.goesWith(right) ? .bool : nil
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            if left.isNumber, right.isNumber { return .bool }
            let type = left == .dyn ? right : left
            switch type {
            case .list, .map, .null, .type, .ip, .cidr: return nil
            default: return left.goesWith(right) ? .bool : nil
            }
        case .in:
            switch right {
            case .dyn: return .bool
            case .list(let element), .map(let element, _):
                return left.goesWith(element) ? .bool : nil
            default: return nil
            }
        case .add:
            switch (left, right) {
            case (.timestamp, .duration), (.duration, .timestamp): return .timestamp
            case (.timestamp, .dyn), (.dyn, .timestamp): return .timestamp
            case (.duration, .dyn), (.dyn, .duration): return .dyn
            case (.list(let one), .list(let other)):
                return left.goesWith(right) ? .list(one.joined(with: other)) : nil
            default:
                return arithmetic(left, right, [.int, .uint, .double, .string, .bytes, .duration])
            }
        case .subtract:
            switch (left, right) {
            case (.timestamp, .timestamp): return .duration
            case (.timestamp, .duration): return .timestamp
            case (.timestamp, .dyn), (.dyn, .duration): return .dyn
            case (.dyn, .timestamp): return .duration
            default: return arithmetic(left, right, [.int, .uint, .double, .duration])
            }
        case .multiply, .divide:
            return arithmetic(left, right, [.int, .uint, .double])
        case .remainder:
            return arithmetic(left, right, [.int, .uint])
        }
    }

    private func arithmetic(_ left: CELType, _ right: CELType, _ types: [CELType]) -> CELType? {
        let type = left == .dyn ? right : left
        if type == .dyn { return .dyn }
        if case .list = type, self == .add { return left.goesWith(right) ? type : nil }
        return types.contains(type) && left.goesWith(right) ? type : nil
    }
}
