// The operators on values: arithmetic that never wraps, equality and order across number types.

extension Interpreter {
    mutating func negate(_ value: CELValue) throws(EvaluationError) -> CELValue {
        switch value {
        case .int(let int):
            return try wrap(Int64.zero.subtractingReportingOverflow(int), CELValue.int)
        case .double(let double): return .double(-double)
        case .missing: return .missing
        default: throw noOverload("-", value)
        }
    }

    private func wrap<Number: FixedWidthInteger>(
        _ result: (partialValue: Number, overflow: Bool), _ value: (Number) -> CELValue
    ) throws(EvaluationError) -> CELValue {
        if result.overflow {
            throw EvaluationError(.overflow, "\(Number.isSigned ? "int" : "uint") overflow")
        }
        return value(result.partialValue)
    }

    /// A comparison of free parts, which are numbers of one type or texts. It costs no step. Nil
    /// for other operators.
    func freely(_ operation: BinaryOperator, _ left: CELValue, _ right: CELValue) -> CELValue? {
        if left.isMissing || right.isMissing { return .missing }
        switch (operation, right) {
        case (.equal, _): return .bool(isSame(left, right))
        case (.notEqual, _): return .bool(!isSame(left, right))
        case (.in, .list(let list)): return .bool(list.contains { isSame(left, $0) })
        default: return nil
        }
    }

    private func isSame(_ left: CELValue, _ right: CELValue) -> Bool {
        if case .string(let left) = left, case .string(let right) = right {
            return sameCodePoints(left, right)
        }
        return compareNumbers(left, right) == .equal
    }

    /// Every operator except `&&` and `||`.
    mutating func binary(
        _ operation: BinaryOperator, _ left: CELValue, _ right: CELValue
    ) throws(EvaluationError) -> CELValue {
        if left.isMissing || right.isMissing { return .missing }
        switch operation {
        case .equal: return .bool(try equal(left, right))
        case .notEqual: return .bool(!(try equal(left, right)))
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            return try order(operation, left, right)
        case .in:
            switch right {
            case .list(let list):
                for element in list where try equal(left, element) { return .bool(true) }
                return .bool(false)
            case .map(let map): return .bool(try value(map, for: left) != nil)
            default: throw noOverload("in", left, right)
            }
        case .or, .and: throw noOverload(operation.rawValue, left, right)
        case .add, .subtract, .multiply, .divide, .remainder:
            return try arithmetic(operation, left, right)
        }
    }

    // MARK: Arithmetic

    private mutating func arithmetic(
        _ operation: BinaryOperator, _ left: CELValue, _ right: CELValue
    ) throws(EvaluationError) -> CELValue {
        switch (left, right) {
        case (.int(let left), .int(let right)):
            return try whole(operation, left, right, CELValue.int)
        case (.uint(let left), .uint(let right)):
            return try whole(operation, left, right, CELValue.uint)
        case (.double(let one), .double(let other)):
            switch operation {
            case .add: return .double(one + other)
            case .subtract: return .double(one - other)
            case .multiply: return .double(one * other)
            case .divide: return .double(one / other)
            default: throw noOverload(operation.rawValue, left, right)
            }
        default: break
        }
        if operation == .add {
            switch (left, right) {
            case (.string(let left), .string(let right)):
                try charge((left.utf8.count + right.utf8.count) / 16)
                return .string(left + right)
            case (.bytes(let left), .bytes(let right)):
                try charge((left.count + right.count) / 16)
                return .bytes(left + right)
            case (.list(let left), .list(let right)):
                try charge(left.count + right.count)
                return .list(left + right)
            case (.timestamp(let time), .duration(let span)),
                (.duration(let span), .timestamp(let time)):
                return try timestamp(time.total + span.total)
            case (.duration(let left), .duration(let right)):
                return try duration(left.total + right.total)
            default: break
            }
        } else if operation == .subtract {
            switch (left, right) {
            case (.timestamp(let left), .timestamp(let right)):
                return try duration(left.total - right.total)
            case (.timestamp(let time), .duration(let span)):
                return try timestamp(time.total - span.total)
            case (.duration(let left), .duration(let right)):
                return try duration(left.total - right.total)
            default: break
            }
        }
        throw noOverload(operation.rawValue, left, right)
    }

    private func whole<Number: FixedWidthInteger>(
        _ operation: BinaryOperator, _ left: Number, _ right: Number, _ value: (Number) -> CELValue
    ) throws(EvaluationError) -> CELValue {
        switch operation {
        case .add: return try wrap(left.addingReportingOverflow(right), value)
        case .subtract: return try wrap(left.subtractingReportingOverflow(right), value)
        case .multiply: return try wrap(left.multipliedReportingOverflow(by: right), value)
        case .divide:
            if right == 0 { throw .zeroDivisor }
            return try wrap(left.dividedReportingOverflow(by: right), value)
        default:
            if right == 0 { throw .zeroRemainder }
            return try wrap(left.remainderReportingOverflow(dividingBy: right), value)
        }
    }

    private func timestamp(_ total: Int128) throws(EvaluationError) -> CELValue {
        guard let time = CELTimestamp(total: total) else {
            throw EvaluationError(.overflow, "timestamp out of range")
        }
        return .timestamp(time)
    }

    private func duration(_ total: Int128) throws(EvaluationError) -> CELValue {
        guard let span = CELDuration(total: total) else {
            throw EvaluationError(.overflow, "duration out of range")
        }
        return .duration(span)
    }

    // MARK: Equality and order

    /// Values of different types are unequal, except numbers, which are compared as numbers.
    mutating func equal(_ left: CELValue, _ right: CELValue) throws(EvaluationError) -> Bool {
        try charge(1)
        switch (left, right) {
        case (.null, .null): return true
        case (.bool(let left), .bool(let right)): return left == right
        case (.string(let left), .string(let right)):
            try charge(min(left.utf8.count, right.utf8.count) / 16)
            return sameCodePoints(left, right)
        case (.bytes(let left), .bytes(let right)):
            try charge(min(left.count, right.count) / 16)
            return left == right
        case (.timestamp(let left), .timestamp(let right)): return left == right
        case (.duration(let left), .duration(let right)): return left == right
        case (.type(let left), .type(let right)): return left == right
        case (.ip(let left), .ip(let right)): return left == right
        case (.cidr(let left), .cidr(let right)): return left == right
        case (.list(let left), .list(let right)):
            guard left.count == right.count else { return false }
            for (one, other) in zip(left, right) where !(try equal(one, other)) { return false }
            return true
        case (.map(let left), .map(let right)):
            guard left.entries.count == right.entries.count else { return false }
            for entry in left.entries {
                guard let other = try value(right, for: entry.key), try equal(entry.value, other)
                else { return false }
            }
            return true
        default:
            return compareNumbers(left, right) == .equal
        }
    }

    private mutating func order(
        _ operation: BinaryOperator, _ left: CELValue, _ right: CELValue
    ) throws(EvaluationError) -> CELValue {
        let order: NumberOrder
        switch (left, right) {
        case (.bool(let left), .bool(let right)): order = NumberOrder(left ? 1 : 0, right ? 1 : 0)
        case (.string(let left), .string(let right)):
            try charge(min(left.utf8.count, right.utf8.count) / 16)
            order =
                sameCodePoints(left, right)
                ? .equal : precedesByCodePoint(left, right) ? .less : .greater
        case (.bytes(let left), .bytes(let right)):
            try charge(min(left.count, right.count) / 16)
            order =
                left == right ? .equal : left.lexicographicallyPrecedes(right) ? .less : .greater
        case (.timestamp(let left), .timestamp(let right)):
            order = NumberOrder(left.total, right.total)
        case (.duration(let left), .duration(let right)):
            order = NumberOrder(left.total, right.total)
        default:
            guard let numbers = compareNumbers(left, right) else {
                throw noOverload(operation.rawValue, left, right)
            }
            order = numbers
        }
        switch operation {
        case .less: return .bool(order == .less)
        case .lessOrEqual: return .bool(order == .less || order == .equal)
        case .greater: return .bool(order == .greater)
        default: return .bool(order == .greater || order == .equal)
        }
    }
}

/// The order of two numbers; `unordered` if one is not a number.
enum NumberOrder {
    case less, equal, greater, unordered

    init<Number: Comparable>(_ left: Number, _ right: Number) {
        self = left < right ? .less : left == right ? .equal : left > right ? .greater : .unordered
    }
}

/// Compares numbers across types: integers exactly, an integer and a double as doubles. Nil if
/// one is not a number.
func compareNumbers(_ left: CELValue, _ right: CELValue) -> NumberOrder? {
    switch (left, right) {
    case (.int(let left), .int(let right)): NumberOrder(left, right)
    case (.uint(let left), .uint(let right)): NumberOrder(left, right)
    case (.double(let left), .double(let right)): NumberOrder(left, right)
    case (.int(let left), .uint(let right)): left < 0 ? .less : NumberOrder(UInt64(left), right)
    case (.uint(let left), .int(let right)): right < 0 ? .greater : NumberOrder(left, UInt64(right))
    case (.int(let left), .double(let right)): NumberOrder(Double(left), right)
    case (.double(let left), .int(let right)): NumberOrder(left, Double(right))
    case (.uint(let left), .double(let right)): NumberOrder(Double(left), right)
    case (.double(let left), .uint(let right)): NumberOrder(left, Double(right))
    default: nil
    }
}
