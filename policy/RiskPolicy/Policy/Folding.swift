// Simplifies the conditions of decisions: the event is known, and constants are computed once.

import CEL

extension ResolvedExpression {
    /// The expression with `values` for some variables, and with all constant parts computed.
    func folded(_ values: [Int: CELValue]) -> ResolvedExpression {
        func remade(_ kind: Kind) -> ResolvedExpression { ResolvedExpression(kind, type, span) }
        switch kind {
        case .constant, .stringSet, .liveList, .hasVariable, .local, .failure, .comprehension:
            return self
        case .variable(let slot):
            return values[slot].map { remade(.constant($0)) } ?? self
        case .binary(let operation, let left, let right):
            let left = left.folded(values)
            let right = right.folded(values)
            if operation == .and || operation == .or {
                let decisive = operation == .or
                for (one, other) in [(left, right), (right, left)] {
                    guard case .constant(.bool(let bool)) = one.kind else { continue }
                    if bool == decisive { return remade(.constant(.bool(decisive))) }
                    if other.type == .bool { return other }
                }
            }
            return remade(.binary(operation, left, right)).computed([left, right])
        case .conditional(let condition, let yes, let no):
            let condition = condition.folded(values)
            if case .constant(.bool(let bool)) = condition.kind {
                return (bool ? yes : no).folded(values)
            }
            return remade(.conditional(condition, yes.folded(values), no.folded(values)))
        case .not(let operand):
            let operand = operand.folded(values)
            return remade(.not(operand)).computed([operand])
        case .negate(let operand):
            let operand = operand.folded(values)
            return remade(.negate(operand)).computed([operand])
        case .call(let function, let arguments):
            let arguments = arguments.map { $0.folded(values) }
            // A zone's offset may change with the database, so it is looked up at evaluation.
            return remade(.call(function, arguments)).computed(
                arguments.count == 1 ? arguments : [])
        case .list(let elements):
            let elements = elements.map { $0.folded(values) }
            return remade(.list(elements)).computed(elements)
        case .select(let operand, let field):
            return remade(.select(operand.folded(values), field: field))
        case .hasField(let operand, let field):
            return remade(.hasField(operand.folded(values), field: field))
        case .index(let operand, let index):
            return remade(.index(operand.folded(values), index.folded(values)))
        case .map(let entries):
            return remade(.map(entries.map { ($0.key.folded(values), $0.value.folded(values)) }))
        }
    }

    /// The computed constant if all `parts` are constants; unchanged if computing it is an error.
    private func computed(_ parts: [ResolvedExpression]) -> ResolvedExpression {
        let isConstant =
            !parts.isEmpty
            && parts.allSatisfy { if case .constant = $0.kind { true } else { false } }
        guard isConstant else { return self }
        var interpreter = Interpreter(variables: ExpressionVariables())
        guard let value = try? interpreter.evaluate(self) else { return self }
        return ResolvedExpression(.constant(value), type, span)
    }
}
