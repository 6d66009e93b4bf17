// Parts of an expression that can only fail, for all signals: they have constants that no function
// accepts.

extension ResolvedExpression {
    /// The first part that fails for all values of the variables; the innermost one if such parts
    /// are nested. Nil if there is none.
    /// - Parameter zones: the names of time zones; without names, none counts as unknown.
    package func certainFailure(zones: TimeZoneOffsets) -> ExpressionFault? {
        var search = FailureSearch(zones: zones)
        _ = search.isConstant(self, depth: 0)
        return search.fault
    }
}

private struct FailureSearch {
    let zones: TimeZoneOffsets
    /// The first fault.
    private(set) var fault: ExpressionFault?
    /// One budget for all parts: constants are computed once for each part that contains them.
    private var stepsLeft = 20 * ExpressionLimits.maximumSteps

    init(zones: TimeZoneOffsets) {
        self.zones = zones
    }

    /// Whether a part always has the same value, and can be evaluated alone. Notes the first part
    /// that can only fail.
    /// - Parameter depth: the number of comprehensions around the part.
    mutating func isConstant(_ node: ResolvedExpression, depth: Int) -> Bool {
        guard fault == nil else { return false }
        switch node.kind {
        case .constant, .stringSet: return true
        case .variable, .hasVariable, .local, .liveList: return false
        case .failure(let error):
            note(error, node)
            return false
        case .comprehension(_, let range, let predicate, let transform):
            var isClosed = isConstant(range, depth: depth)
            for part in [predicate, transform].compactMap({ $0 })
            where !isConstant(part, depth: depth + 1) { isClosed = false }
            // The comprehension binds its own variable, but not those around it.
            if !isClosed, fault == nil { isClosed = !node.readsVariables(at: depth) }
            return isClosed && computes(node)
        default:
            var isClosed = true
            for child in node.children where !isConstant(child, depth: depth) { isClosed = false }
            guard fault == nil else { return false }
            if case .call(_, let arguments) = node.kind, arguments.count == 2,
                let zone = namedZone(node, depth)
            {
                return check(zone: zone, of: arguments[1]) && isClosed && computes(node)
            }
            if isClosed { return computes(node) }
            noteFailure(of: node, depth)
            return false
        }
    }

    /// Whether a constant part has a value.
    private mutating func computes(_ node: ResolvedExpression) -> Bool {
        guard stepsLeft > 0 else { return false }
        let budget = min(stepsLeft, ExpressionLimits.maximumSteps)
        var interpreter = Interpreter(variables: ExpressionVariables(), zones: zones, steps: budget)
        defer { stepsLeft -= budget - max(0, interpreter.stepsLeft) }
        do throws(EvaluationError) {
            _ = try interpreter.evaluate(node)
            return true
        } catch {
            if error.code != .budget || budget == ExpressionLimits.maximumSteps {
                note(error, node)
            }
            return false
        }
    }

    private mutating func note(_ error: EvaluationError, _ node: ResolvedExpression) {
        if fault == nil {
            fault = ExpressionFault("this can only fail: \(error.message)", at: node.span)
        }
    }

    /// Notes a part that reads variables, but fails because of one of its constants.
    private mutating func noteFailure(of node: ResolvedExpression, _ depth: Int) {
        switch node.kind {
        case .binary(.divide, _, let right):
            if isZero(right, depth) { note(.zeroDivisor, node) }
        case .binary(.remainder, _, let right):
            if isZero(right, depth) { note(.zeroRemainder, node) }
        case .index(let operand, let index):
            guard case .list = operand.type, case .int(let position)? = value(index, depth),
                position < 0
            else { return }
            note(.noIndex, index)
        case .call(.containsIP, let arguments)
        where arguments.count == 2 && arguments[1].type == .string:
            convert(arguments[1], by: .ip, to: .ip, depth)
        case .call(.containsCIDR, let arguments)
        where arguments.count == 2 && arguments[1].type == .string:
            convert(arguments[1], by: .cidr, to: .cidr, depth)
        case .map(let entries):
            // Only the keys.
            guard entries.allSatisfy({ value($0.key, depth) != nil }) else { return }
            let null = ResolvedExpression(.constant(.null), .null, node.span)
            _ = computes(
                ResolvedExpression(.map(entries.map { ($0.key, null) }), node.type, node.span))
        default: break
        }
    }

    private mutating func isZero(_ node: ResolvedExpression, _ depth: Int) -> Bool {
        switch value(node, depth) {
        case .int(0), .uint(0): true
        default: false
        }
    }

    /// Converts a constant text in the way in which a function converts its argument.
    private mutating func convert(
        _ text: ResolvedExpression, by function: CELFunction, to type: CELType, _ depth: Int
    ) {
        guard value(text, depth) != nil else { return }
        _ = computes(ResolvedExpression(.call(function, [text]), type, text.span))
    }

    /// The value of a constant part; nil for others.
    private mutating func value(_ node: ResolvedExpression, _ depth: Int) -> CELValue? {
        guard stepsLeft > 0, !node.readsVariables(at: depth) else { return nil }
        var interpreter = Interpreter(
            variables: ExpressionVariables(), zones: zones,
            steps: min(stepsLeft, ExpressionLimits.maximumSteps))
        let before = interpreter.stepsLeft
        defer { stepsLeft -= before - max(0, interpreter.stepsLeft) }
        return try? interpreter.evaluate(node)
    }

    /// The time zone, if a method of a time names it by a constant.
    private mutating func namedZone(_ node: ResolvedExpression, _ depth: Int) -> String? {
        guard case .call(let function, let arguments) = node.kind, arguments.count == 2,
            function.takesZone,
            case .string(let zone)? = value(arguments[1], depth)
        else { return nil }
        return zone
    }

    /// Whether a zone is known. If it is not, notes the fault, unless no names can be looked up.
    private mutating func check(zone: String, of argument: ResolvedExpression) -> Bool {
        guard zones.seconds(of: zone, at: 0) == nil else { return true }
        let isName = !zone.utf8.contains(UInt8(ascii: ":"))
        if zones.hasNames || !isName { note(.unknownZone, argument) }
        return false
    }
}

extension ResolvedExpression {
    /// Whether it reads a variable, a live list, or the variable of a comprehension around it.
    /// - Parameter depth: the number of comprehensions around it. Variables are numbered from the
    ///   outermost one. Within a comprehension, a part with its own variables cannot be evaluated
    ///   alone, so it counts as reading some.
    fileprivate func readsVariables(at depth: Int) -> Bool {
        switch kind {
        case .variable, .hasVariable, .liveList, .failure, .local: true
        case .comprehension(_, let range, let predicate, let transform):
            range.readsVariables(at: depth)
                || [predicate, transform].contains {
                    $0?.reads(outside: depth == 0 ? 1 : 0) ?? false
                }
        default: children.contains { $0.readsVariables(at: depth) }
        }
    }

    /// Whether it reads more than the variables of the `bound` outermost comprehensions.
    private func reads(outside bound: Int) -> Bool {
        switch kind {
        case .variable, .hasVariable, .liveList, .failure: true
        case .local(let number): number >= bound
        case .comprehension(_, let range, let predicate, let transform):
            range.reads(outside: bound)
                || [predicate, transform].contains {
                    $0?.reads(outside: bound == 0 ? 0 : bound + 1) ?? false
                }
        default: children.contains { $0.reads(outside: bound) }
        }
    }
}

extension CELFunction {
    /// Whether a second argument is the name of a time zone.
    fileprivate var takesZone: Bool {
        switch self {
        case .getFullYear, .getMonth, .getDate, .getDayOfMonth, .getDayOfWeek, .getDayOfYear,
            .getHours, .getMinutes, .getSeconds,
            .getMilliseconds:
            true
        default: false
        }
    }
}
