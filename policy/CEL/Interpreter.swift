// Evaluates a resolved expression node by node. Missing values are passed on; `&&`, `||` and
// macros absorb errors.

/// The values that an expression reads.
package struct ExpressionVariables: Sendable {
    /// By slot: `.missing` for an absent signal; nil for a name without a value, which is an error.
    let values: [CELValue?]
    /// Live lists; nil if they are unknown: values that depend on them are then missing.
    let lists: (any LiveLists)?

    /// - Parameters:
    ///   - values: by slot: `.missing` for an absent signal; nil for a name without a
    ///     value, which is an error.
    ///   - lists: live lists; nil if they are unknown: values that depend on them are then missing.
    package init(_ values: [CELValue?] = [], lists: (any LiveLists)? = nil) {
        self.values = values
        self.lists = lists
    }

    /// The value in a slot; nil if there is none.
    func value(slot: Int) -> CELValue? { values.indices.contains(slot) ? values[slot] : nil }
}

/// The outcome of a condition.
package enum ConditionOutcome: Sendable {
    case holds, fails, missing, error
}

/// Evaluates one expression once, and counts the steps.
package struct Interpreter {
    let variables: ExpressionVariables
    let zones: TimeZoneOffsets
    /// Below zero after the budget is used up.
    package private(set) var stepsLeft: Int
    private var locals: [CELValue] = []

    /// - Parameters:
    ///   - zones: time zones by name; `UTC` and fixed offsets need none.
    ///   - steps: the budget; for a decision, the rest of it for all remaining evaluations.
    package init(
        variables: ExpressionVariables, zones: TimeZoneOffsets = .none,
        steps: Int = ExpressionLimits.maximumSteps
    ) {
        self.variables = variables
        self.zones = zones
        stepsLeft = steps
    }

    /// The outcome of a condition of type bool.
    package mutating func outcome(_ condition: ResolvedExpression) -> ConditionOutcome {
        do throws(EvaluationError) {
            switch try evaluate(condition) {
            case .bool(let bool): return bool ? .holds : .fails
            case .missing: return .missing
            default: return .error
            }
        } catch {
            return .error
        }
    }

    /// The value of the expression, or the error of its evaluation.
    package mutating func evaluate(_ node: ResolvedExpression) throws(EvaluationError) -> CELValue {
        if !node.isFree { try charge(1) }
        switch node.kind {
        case .constant(let value): return value
        case .stringSet(let list): return .list(list.elements)
        case .liveList:
            throw EvaluationError(.noSuchOverload, "a live list can only be on the right of 'in'")
        case .variable(let slot):
            guard let value = variables.value(slot: slot) else {
                throw EvaluationError(.unknownName, "a variable has no value")
            }
            return value
        case .hasVariable(let slot):
            return .bool(variables.value(slot: slot).map { !$0.isMissing } ?? false)
        case .local(let depth): return locals[depth]
        case .failure(let error): throw error
        case .select(let operand, let field):
            return try select(try evaluate(operand), field)
        case .hasField(let operand, let field):
            switch try evaluate(operand) {
            case .map(let map): return .bool(map.field(field) != nil)
            case .missing: return .missing
            case let other: throw noOverload("has()", other)
            }
        case .index(let operand, let index):
            let operand = try evaluate(operand)
            let index = try evaluate(index)
            return operand.isMissing || index.isMissing ? .missing : try self.index(operand, index)
        case .not(let operand):
            switch try evaluate(operand) {
            case .bool(let bool): return .bool(!bool)
            case .missing: return .missing
            case let other: throw noOverload("!", other)
            }
        case .negate(let operand): return try negate(try evaluate(operand))
        case .binary(.and, let left, let right):
            return try logic(left, right, decisive: false, isFree: node.isFree)
        case .binary(.or, let left, let right):
            return try logic(left, right, decisive: true, isFree: node.isFree)
        case .binary(let operation, let left, let right):
            if case .in = operation, let member = try member(left, of: right, isFree: node.isFree) {
                return member
            }
            let left = try evaluate(left)
            let right = try evaluate(right)
            if node.isFree, let value = freely(operation, left, right) { return value }
            return try binary(operation, left, right)
        case .conditional(let condition, let yes, let no):
            switch try evaluate(condition) {
            case .bool(let bool): return try evaluate(bool ? yes : no)
            case .missing: return .missing
            case let other: throw noOverload("?:", other)
            }
        case .call(let function, let arguments):
            var values: [CELValue] = []
            for argument in arguments { values.append(try evaluate(argument)) }
            if values.contains(where: \.isMissing) { return .missing }
            return try call(function, values)
        case .list(let elements):
            var values: [CELValue] = []
            for element in elements { values.append(try evaluate(element)) }
            return values.contains(where: \.isMissing) ? .missing : .list(values)
        case .map(let entries): return try map(entries)
        case .comprehension(let kind, let range, let predicate, let transform):
            return try comprehension(kind, try evaluate(range), predicate, transform)
        }
    }

    /// Takes steps from the budget; throws the error "budget" if it is used up.
    mutating func charge(_ steps: Int) throws(EvaluationError) {
        stepsLeft = max(-1, stepsLeft - steps)
        if stepsLeft < 0 { throw .outOfSteps }
    }

    func noOverload(_ name: String, _ values: CELValue...) -> EvaluationError {
        EvaluationError(
            .noSuchOverload,
            "no such overload: \(name) of \(values.map(\.typeName).joined(separator: ", "))")
    }

    // MARK: Logic

    private enum Truth {
        case known(Bool)
        case missing
        case error(EvaluationError)
    }

    /// - Parameter absorbsBudget: whether the lack of steps is an error like others, and does not
    ///   end the evaluation.
    private mutating func truth(
        _ node: ResolvedExpression, absorbsBudget: Bool = false
    ) throws(EvaluationError) -> Truth {
        do throws(EvaluationError) {
            switch try evaluate(node) {
            case .bool(let bool): return .known(bool)
            case .missing: return .missing
            case let other: return .error(noOverload("logic", other))
            }
        } catch {
            if !absorbsBudget, error.code == .budget { throw error }
            return .error(error)
        }
    }

    /// `&&` (decisive: false) and `||` (decisive: true): a decisive operand has priority over all
    /// others, then an error over missing.
    private mutating func logic(
        _ left: ResolvedExpression, _ right: ResolvedExpression, decisive: Bool, isFree: Bool
    ) throws(EvaluationError) -> CELValue {
        let first = try truth(left, absorbsBudget: isFree)
        if case .known(decisive) = first { return .bool(decisive) }
        let second = try truth(right, absorbsBudget: isFree)
        if case .known(decisive) = second { return .bool(decisive) }
        if case .error(let error) = first { throw error }
        if case .error(let error) = second { throw error }
        if case .missing = first { return .missing }
        if case .missing = second { return .missing }
        return .bool(!decisive)
    }

    /// `in` a named list or a live list; nil for lists that are values. If the node is free, its
    /// step is charged only if there is a text to look up.
    private mutating func member(
        _ node: ResolvedExpression, of list: ResolvedExpression, isFree: Bool
    ) throws(EvaluationError) -> CELValue? {
        switch list.kind {
        case .stringSet, .liveList: break
        default: return nil
        }
        switch try evaluate(node) {
        case .missing: return .missing
        case .string(let text):
            try charge(ExpressionLimits.steps(octets: text.utf8.count) + (isFree ? 1 : 0))
            if case .stringSet(let set) = list.kind {
                if set.hasOnlyRanges { try Self.requireAddress(text) }
                return .bool(set.contains(text))
            }
            guard case .liveList(let name) = list.kind, let lists = variables.lists else {
                return .missing
            }
            if name.kind == .range { try Self.requireAddress(text) }
            return .bool(lists.contains(text, in: name))
        default: return .bool(false)
        }
    }

    /// Looks up a key in a map; for a string, charges the steps of hashing.
    mutating func value(_ map: CELMap, for key: CELValue) throws(EvaluationError) -> CELValue? {
        if case .string(let text) = key {
            try charge(ExpressionLimits.steps(octets: text.utf8.count))
        }
        return map.value(for: key)
    }

    // MARK: Collections

    private func select(_ operand: CELValue, _ field: String) throws(EvaluationError) -> CELValue {
        switch operand {
        case .missing: return .missing
        case .map(let map):
            guard let value = map.field(field) else {
                throw EvaluationError(.noSuchKey, "no such key: '\(field)'")
            }
            return value
        default: throw noOverload("field selection", operand)
        }
    }

    private mutating func index(
        _ operand: CELValue, _ index: CELValue
    ) throws(EvaluationError) -> CELValue {
        switch operand {
        case .map(let map):
            guard let value = try value(map, for: index) else {
                throw EvaluationError(.noSuchKey, "no such key")
            }
            return value
        case .list(let list):
            let position: Int? =
                switch index {
                case .int(let int): Int(exactly: int)
                case .uint(let uint): Int(exactly: uint)
                case .double(let double): Int(exactly: double)
                default: nil
                }
            guard let position, list.indices.contains(position) else {
                throw .noIndex
            }
            return list[position]
        default: throw noOverload("index", operand, index)
        }
    }

    private mutating func map(
        _ entries: [(key: ResolvedExpression, value: ResolvedExpression)]
    ) throws(EvaluationError) -> CELValue {
        var map = CELMap()
        var isMissing = false
        for entry in entries {
            let key = try evaluate(entry.key)
            let value = try evaluate(entry.value)
            if key.isMissing || value.isMissing {
                isMissing = true
            } else if CELKey(literal: key) == nil {
                throw EvaluationError(.invalidArgument, "unsupported key type: \(key.typeName)")
            } else {
                if case .string(let text) = key {
                    try charge(ExpressionLimits.steps(octets: text.utf8.count))
                }
                guard !map.add(key, value) else { continue }
                throw EvaluationError(.invalidArgument, "a key is repeated")
            }
        }
        return isMissing ? .missing : .map(map)
    }

    private mutating func comprehension(
        _ kind: ComprehensionKind, _ range: CELValue, _ predicate: ResolvedExpression?,
        _ transform: ResolvedExpression?
    ) throws(EvaluationError) -> CELValue {
        let elements: [CELValue]
        switch range {
        case .missing: return .missing
        case .list(let list): elements = list
        case .map(let map):
            try charge(map.entries.count)
            elements = map.entries.map(\.key)
        default: throw noOverload(kind.rawValue, range)
        }
        locals.append(.null)
        defer { locals.removeLast() }
        let decisive = kind == .exists
        var firstError: EvaluationError?
        var isMissing = false
        var count = 0
        var results: [CELValue] = []
        for element in elements {
            try charge(1)
            locals[locals.count - 1] = element
            var holds = true
            if let predicate {
                switch try truth(predicate) {
                case .known(let bool):
                    if bool == decisive, kind == .exists || kind == .all { return .bool(decisive) }
                    holds = bool
                case .missing:
                    isMissing = true
                    holds = false
                case .error(let error):
                    guard kind == .exists || kind == .all else { throw error }
                    firstError = firstError ?? error
                    holds = false
                }
            }
            guard holds else { continue }
            switch kind {
            case .all, .exists: break
            case .existsOne: count += 1
            case .filter: results.append(element)
            case .map:
                guard let transform else { break }
                let value = try evaluate(transform)
                if value.isMissing { isMissing = true }
                results.append(value)
            }
        }
        if let firstError { throw firstError }
        if isMissing { return .missing }
        return switch kind {
        case .all, .exists: .bool(!decisive)
        case .existsOne: .bool(count == 1)
        case .map, .filter: .list(results)
        }
    }
}
