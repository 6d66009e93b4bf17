// The parts of a condition that cost no step, because they take the same time for all signals.

extension ResolvedExpression {
    /// The condition with its free parts marked. These are signals, constants, logic, and
    /// comparisons and arithmetic of numbers of one type, if no function or list is around them.
    /// They have no loops, and the nodes of a policy are limited, so the budget does not need to
    /// count them. `in` a named list costs only the steps for the text.
    package func markingFreeParts() -> ResolvedExpression {
        guard type == .bool || type.isNumber else { return self }
        func free(_ kind: Kind) -> ResolvedExpression {
            ResolvedExpression(kind, type, span, isFree: true)
        }
        switch kind {
        case .constant, .variable, .hasVariable: return free(kind)
        case .not(let operand): return free(.not(operand.markingFreeParts()))
        case .negate(let operand): return free(.negate(operand.markingFreeParts()))
        case .conditional(let condition, let yes, let no)
        where type == .bool || yes.type == no.type:
            return free(
                .conditional(
                    condition.markingFreeParts(), yes.markingFreeParts(), no.markingFreeParts()))
        case .call(.double, let arguments)
        where arguments[0].type == .int || arguments[0].type == .uint:
            return free(.call(.double, arguments.map { $0.markingFreeParts() }))
        case .binary(let operation, let left, let right):
            guard operation.isFree(left, right) else { return self }
            return free(.binary(operation, left.markingOperand(), right.markingOperand()))
        default: return self
        }
    }

    /// Texts and lists can be operands of a free comparison.
    private func markingOperand() -> ResolvedExpression {
        switch kind {
        case .constant, .variable, .stringSet, .liveList:
            ResolvedExpression(kind, type, span, isFree: true)
        default: markingFreeParts()
        }
    }

    fileprivate var isConstant: Bool { if case .constant = kind { true } else { false } }
    fileprivate var isVariable: Bool { if case .variable = kind { true } else { false } }

    /// Whether all of it is free.
    package var isFreeThroughout: Bool { isFree && children.allSatisfy(\.isFreeThroughout) }

    /// The number of its nodes.
    package var nodes: Int { children.reduce(1) { $0 + $1.nodes } }
}

extension BinaryOperator {
    fileprivate func isFree(_ left: ResolvedExpression, _ right: ResolvedExpression) -> Bool {
        switch self {
        case .and, .or: return true
        case .in where left.isVariable && left.type == .string:
            switch right.kind {
            case .stringSet, .liveList: return true
            case .constant(.list(let elements)):
                return elements.allSatisfy { if case .string = $0 { true } else { false } }
            default: return false
            }
        case .in:
            return left.isConstant && left.type == .string && right.isVariable
                && right.type == .list(.string)
        case .equal, .notEqual:
            if left.type == .string, right.type == .string {
                return (left.isVariable && right.isConstant)
                    || (left.isConstant && right.isVariable)
            }
            return left.type == right.type && left.type.isNumber
        default: return left.type == right.type && left.type.isNumber
        }
    }
}
