// A condition as facts joined by "and", "or" and "if": negations are moved to the facts, and facts
// about one value are joined.

import CEL
import Support

/// The statement of a condition. It is true, false and missing for the same inputs as the
/// condition.
indirect enum Statement: Sendable, Equatable {
    case always(Bool)
    case fact(Fact)
    case all([Statement])
    case any([Statement])
    case conditional(Statement, yes: Statement, no: Statement)
}

/// Reads conditions of one policy as statements.
struct StatementReader {
    let policy: Policy
    /// The expression to read. Its text replaces parts without words.
    let expression: PolicyExpression
    let words: FactWords

    init(_ policy: Policy, _ expression: PolicyExpression) {
        (self.policy, self.expression, words) = (policy, expression, FactWords(policy: policy))
    }

    /// - Parameter values: the values of known signals, by slot.
    func statement(_ values: [Int: CELValue] = [:]) -> Statement {
        read(expression.resolved.folded(values), true)
    }

    /// The same for a part of the expression.
    func statement(of part: ResolvedExpression, _ values: [Int: CELValue]) -> Statement {
        read(part.folded(values), true)
    }

    /// - Parameter isAffirmed: false: the negation of the statement.
    private func read(_ node: ResolvedExpression, _ isAffirmed: Bool) -> Statement {
        switch node.kind {
        case .constant(.bool(let bool)): return .always(bool == isAffirmed)
        case .not(let operand): return read(operand, !isAffirmed)
        case .binary(.and, let left, let right), .binary(.or, let left, let right):
            guard left.type == .bool, right.type == .bool else { break }
            let isAnd = if case .binary(.and, _, _) = node.kind { true } else { false }
            // A chain is joined once: joining it link by link would take the cube of its length.
            let parts = Self.links(of: node, isAnd: isAnd).map { read($0, isAffirmed) }
            return isAnd == isAffirmed ? all(parts) : any(parts)
        case .conditional(let condition, let yes, let no)
        where node.type == .bool && condition.type == .bool:
            return conditional(read(condition, true), read(yes, isAffirmed), read(no, isAffirmed))
        case .variable(let slot) where node.type == .bool && policy.signals.indices.contains(slot):
            return .fact(.flag(slot: slot, isAffirmed))
        case .hasVariable(let slot) where policy.signals.indices.contains(slot):
            return .fact(.known(slot: slot, isAffirmed))
        case .binary(let operation, let left, let right):
            if let statement = comparison(operation, left, right, isAffirmed), canBeSaid(statement)
            {
                return statement
            }
        case .call(let function, let arguments):
            if let fact = call(function, arguments, isAffirmed), words.text(fact) != nil {
                return .fact(fact)
            }
        case .comprehension(.exists, let range, let predicate?, nil):
            if let fact = exists(range, predicate, isAffirmed), words.text(fact) != nil {
                return .fact(fact)
            }
        default: break
        }
        return .fact(.holds(PersonText.withSingleSpaces(expression.text(of: node)), isAffirmed))
    }

    /// The operands of a chain of one operator, in the order written.
    private static func links(of node: ResolvedExpression, isAnd: Bool) -> [ResolvedExpression] {
        switch node.kind {
        case .binary(.and, let left, let right)
        where isAnd && left.type == .bool && right.type == .bool:
            links(of: left, isAnd: isAnd) + links(of: right, isAnd: isAnd)
        case .binary(.or, let left, let right)
        where !isAnd && left.type == .bool && right.type == .bool:
            links(of: left, isAnd: isAnd) + links(of: right, isAnd: isAnd)
        default: [node]
        }
    }

    /// Whether each of its facts has words.
    private func canBeSaid(_ statement: Statement) -> Bool {
        switch statement {
        case .always: true
        case .fact(let fact): words.text(fact) != nil
        case .all(let parts), .any(let parts): parts.allSatisfy(canBeSaid)
        case .conditional(let condition, let yes, let no):
            canBeSaid(condition) && canBeSaid(yes) && canBeSaid(no)
        }
    }

    // MARK: Joining

    private func all(_ parts: [Statement]) -> Statement {
        var joined: [Statement] = []
        for part in parts.flatMap({ if case .all(let inner) = $0 { inner } else { [$0] } }) {
            if case .always(true) = part { continue }
            if joined.contains(part) { continue }
            if case .fact(let fact) = part,
                let (place, both) = firstJoin(joined, fact, { $0.and($1, policy) })
            {
                joined[place] = .fact(both)
            } else {
                joined.append(part)
            }
        }
        if joined.contains(.always(false)) { return .always(false) }
        return joined.isEmpty ? .always(true) : joined.count == 1 ? joined[0] : .all(joined)
    }

    private func any(_ parts: [Statement]) -> Statement {
        var joined: [Statement] = []
        for part in parts.flatMap({ if case .any(let inner) = $0 { inner } else { [$0] } }) {
            if case .always(false) = part { continue }
            if joined.contains(part) { continue }
            if case .fact(let fact) = part,
                let (place, both) = firstJoin(joined, fact, { $0.or($1, policy) })
            {
                joined[place] = .fact(both)
            } else {
                joined.append(part)
            }
        }
        if joined.contains(.always(true)) { return .always(true) }
        return joined.isEmpty ? .always(false) : joined.count == 1 ? joined[0] : .any(joined)
    }

    private func firstJoin(
        _ joined: [Statement], _ fact: Fact, _ join: (Fact, Fact) -> Fact?
    ) -> (Int, Fact)? {
        for (place, other) in joined.enumerated() {
            if case .fact(let other) = other, let both = join(other, fact), words.text(both) != nil
            {
                return (place, both)
            }
        }
        return nil
    }

    private func conditional(_ condition: Statement, _ yes: Statement, _ no: Statement) -> Statement
    {
        switch (condition, yes, no) {
        case (.always(true), _, _): yes
        case (.always(false), _, _): no
        case (_, .always(true), .always(false)): condition
        default: .conditional(condition, yes: yes, no: no)
        }
    }

    // MARK: Comparisons

    private func comparison(
        _ operation: BinaryOperator, _ left: ResolvedExpression, _ right: ResolvedExpression,
        _ isAffirmed: Bool
    ) -> Statement? {
        if operation == .in { return membership(left, right, isAffirmed) }
        guard let comparison = Comparison(operation) else { return nil }
        // `x < (c ? 1 : 24)`: the comparison applies to either side.
        if case .conditional(let condition, let yes, let no) = left.kind, condition.type == .bool {
            guard let one = self.comparison(operation, yes, right, isAffirmed),
                let other = self.comparison(operation, no, right, isAffirmed)
            else { return nil }
            return conditional(read(condition, true), one, other)
        }
        if case .conditional(let condition, let yes, let no) = right.kind, condition.type == .bool {
            guard let one = self.comparison(operation, left, yes, isAffirmed),
                let other = self.comparison(operation, left, no, isAffirmed)
            else { return nil }
            return conditional(read(condition, true), one, other)
        }
        let wanted = isAffirmed ? comparison : comparison.negated
        switch (left.kind, right.kind) {
        case (.constant(let one), .constant(let other)): return constants(one, wanted, other)
        case (.constant(let value), _): return compare(right, wanted.flipped, value)
        case (_, .constant(let value)): return compare(left, wanted, value)
        default:
            guard let one = term(left), let other = term(right) else { return nil }
            let isSameness = comparison == .equal || comparison == .different
            let areTexts = isSameness && one.isText(policy) && other.isText(policy)
            guard areTexts || one.isNumber(policy) && other.isNumber(policy) else { return nil }
            return .fact(.compares(one, wanted, other))
        }
    }

    /// Both sides of a ternary may be constants.
    private func constants(
        _ one: CELValue, _ comparison: Comparison, _ other: CELValue
    ) -> Statement? {
        guard case .int(let left) = one, case .int(let right) = other else { return nil }
        return switch comparison {
        case .less: .always(left < right)
        case .atMost: .always(left <= right)
        case .equal: .always(left == right)
        case .different: .always(left != right)
        case .atLeast: .always(left >= right)
        case .more: .always(left > right)
        }
    }

    private func compare(
        _ node: ResolvedExpression, _ comparison: Comparison, _ value: CELValue
    ) -> Statement? {
        if case .bool(let bool) = value, node.type == .bool {
            guard comparison == .equal || comparison == .different else { return nil }
            return read(node, bool == (comparison == .equal))
        }
        guard let term = term(node) else { return nil }
        if case .string = value {
            guard comparison == .equal || comparison == .different else { return nil }
            return isOne(term, [value], comparison == .equal)
        }
        guard let amount = Amount(value) else { return nil }
        if let codes = policy.codes(of: term) { return ofCodes(term, codes, comparison, amount) }
        return .fact(.within(term, [Bound(comparison: comparison, amount: amount)]))
    }

    /// A number that means a word is compared by size: the result is the words for which the
    /// comparison holds.
    private func ofCodes(
        _ term: Term, _ codes: [SignalPhrase.Code], _ comparison: Comparison, _ amount: Amount
    ) -> Statement? {
        guard case .int(let int) = amount else { return nil }
        if comparison == .equal || comparison == .different {
            guard codes.contains(where: { $0.value == int }) else { return nil }
            return .fact(.isOne(term, of: [CELValueKey(.int(int))], comparison == .equal))
        }
        let holding = codes.filter { code in
            switch comparison {
            case .less: code.value < int
            case .atMost: code.value <= int
            case .atLeast: code.value >= int
            default: code.value > int
            }
        }
        guard !holding.isEmpty, holding.count < codes.count else { return nil }
        return .fact(.isOne(term, of: holding.map { CELValueKey(.int($0.value)) }, true))
    }

    // MARK: Lists and texts

    private func membership(
        _ left: ResolvedExpression, _ right: ResolvedExpression, _ isAffirmed: Bool
    ) -> Statement? {
        switch right.kind {
        case .stringSet:
            return term(left).map {
                .fact(.isIn($0, .fixed(expression.text(of: right)), isAffirmed))
            }
        case .liveList(let name):
            return term(left).map { .fact(.isIn($0, .live(name), isAffirmed)) }
        case .constant(.list(let values)):
            guard let term = term(left), !values.isEmpty else { return nil }
            return isOne(term, values, isAffirmed)
        case .variable(let slot):
            guard case .constant(let value) = left.kind,
                case .list? = policy.phrase(slot: slot)?.kind
            else { return nil }
            return .fact(.has(slot: slot, anyOf: [CELValueKey(value)], isAffirmed))
        default: return nil
        }
    }

    /// Texts with their own clauses are separate facts.
    private func isOne(_ term: Term, _ values: [CELValue], _ isAffirmed: Bool) -> Statement? {
        var keys: [CELValueKey] = []
        for value in values.map(CELValueKey.init) where !keys.contains(value) { keys.append(value) }
        if let codes = policy.codes(of: term) {
            let areCodes = keys.allSatisfy { key in
                codes.contains { CELValueKey(.int($0.value)) == key }
            }
            return areCodes ? .fact(.isOne(term, of: keys, isAffirmed)) : nil
        }
        let isComparable = keys.allSatisfy {
            switch $0.value {
            case .string, .int: true
            default: false
            }
        }
        guard isComparable else { return nil }
        let facts = keys.map { Statement.fact(.isOne(term, of: [$0], isAffirmed)) }
        if keys.count <= 4, keys.allSatisfy({ policy.clauses(of: term, $0) != nil }) {
            return isAffirmed ? any(facts) : all(facts)
        }
        return .fact(.isOne(term, of: keys, isAffirmed))
    }

    /// `list.exists(x, x == "a")`.
    private func exists(
        _ range: ResolvedExpression, _ predicate: ResolvedExpression, _ isAffirmed: Bool
    ) -> Fact? {
        if case .variable(let slot) = range.kind, case .list? = policy.phrase(slot: slot)?.kind,
            case .binary(.equal, let left, let right) = predicate.kind
        {
            switch (left.kind, right.kind) {
            case (.local(0), .constant(let value)), (.constant(let value), .local(0)):
                return .has(slot: slot, anyOf: [CELValueKey(value)], isAffirmed)
            default: return nil
            }
        }
        return nil
    }

    private func call(
        _ function: CELFunction, _ arguments: [ResolvedExpression], _ isAffirmed: Bool
    ) -> Fact? {
        guard let first = arguments.first else { return nil }
        let second = arguments.dropFirst().first
        switch function {
        case .contains, .startsWith, .endsWith:
            guard case .constant(.string(let text))? = second?.kind, let term = term(first) else {
                return nil
            }
            let test: TextTest =
                function == .contains
                ? .contains : function == .startsWith ? .startsWith : .endsWith
            return .text(term, test, text, isAffirmed)
        case .containsIP:
            guard case .constant(.cidr(let range)) = first.kind, let second else { return nil }
            if case .call(.ip, let inner) = second.kind, inner.count == 1 {
                return term(inner[0]).map { .isInRange($0, "\(range)", isAffirmed) }
            }
            return second.type == .string
                ? term(second).map { .isInRange($0, "\(range)", isAffirmed) } : nil
        case .isIP: return term(first).map { .isAddress($0, isAffirmed) }
        default: return nil
        }
    }

    // MARK: Terms

    /// A value that has a name; nil for others.
    private func term(_ node: ResolvedExpression) -> Term? {
        switch node.kind {
        case .variable(let slot):
            if policy.signals.indices.contains(slot) { return .signal(slot) }
            return node.type == .timestamp ? .now : nil
        case .call(.double, let arguments) where arguments.count == 1:
            // The count of an int or uint stays the same as a double.
            guard [.int, .uint, .double].contains(arguments[0].type) else { return nil }
            return term(arguments[0])
        case .call(.int, let arguments)
        where arguments.count == 1 && [.int, .uint].contains(arguments[0].type):
            return term(arguments[0])
        case .call(.size, let arguments) where arguments.count == 1:
            switch arguments[0].type {
            case .string: return atom(arguments[0]).map { .size($0, ofList: false) }
            case .list: return atom(arguments[0]).map { .size($0, ofList: true) }
            default: return nil
            }
        case .binary(.multiply, let left, let right):
            for (one, other) in [(left, right), (right, left)] {
                guard case .constant(let value) = one.kind, let amount = Amount(value),
                    let term = atom(other)
                else { continue }
                return .times(amount, term)
            }
            return nil
        case .binary(.add, let left, let right) where node.type.isNumber:
            guard let one = product(left), let other = product(right) else { return nil }
            return .sum(one, other)
        case .binary(.subtract, let left, let right):
            if node.type == .duration, case .variable(let slot) = left.kind,
                !policy.signals.indices.contains(slot)
            {
                return atom(right).map { .since($0) }
            }
            guard node.type.isNumber, let one = product(left), let other = product(right) else {
                return nil
            }
            return .difference(one, other)
        default: return nil
        }
    }

    /// A term without arithmetic.
    private func atom(_ node: ResolvedExpression) -> Term? {
        guard let term = term(node) else { return nil }
        if case .signal = term { return term }
        return nil
    }

    /// A term of a sum.
    private func product(_ node: ResolvedExpression) -> Term? {
        guard let term = term(node) else { return nil }
        switch term {
        case .signal, .times, .size: return term
        default: return nil
        }
    }
}

extension Term {
    /// Whether it is compared as a number.
    func isNumber(_ policy: Policy) -> Bool {
        switch self {
        case .signal(let slot):
            switch policy.phrase(slot: slot)?.kind {
            case .count, .since, .age, .number: policy.signals[slot].type.isNumber
            default: false
            }
        case .size, .times, .sum, .difference: true
        case .now, .since: false
        }
    }

    func isText(_ policy: Policy) -> Bool {
        guard case .signal(let slot) = self, policy.signals.indices.contains(slot) else {
            return false
        }
        return policy.signals[slot].type == .string
    }
}

extension Policy {
    /// The words for the values of a number.
    func codes(of term: Term) -> [SignalPhrase.Code]? {
        guard case .signal(let slot) = term, case .codes(let codes)? = phrase(slot: slot)?.kind
        else { return nil }
        return codes
    }

    /// The clauses of a text that has its own clauses.
    func clauses(of term: Term, _ value: CELValueKey) -> SignalPhrase.Pair? {
        guard case .signal(let slot) = term, case .word(let words)? = phrase(slot: slot)?.kind,
            case .string(let text) = value.value
        else { return nil }
        return words.first { sameCodePoints($0.value, text) }?.clauses
    }
}

extension Fact {
    /// One fact for both; nil if they are not about one value.
    func and(_ other: Fact, _ policy: Policy) -> Fact? {
        switch (self, other) {
        case (.within(let term, let bounds), .within(let second, let more)) where term == second:
            guard bounds.count == 1, more.count == 1 else { return nil }
            let (one, two) = (bounds[0], more[0])
            let ordered = one.comparison.isLowerBound ? (one, two) : (two, one)
            guard ordered.0.comparison.isLowerBound, ordered.1.comparison.isUpperBound,
                ordered.0.amount.isBelow(ordered.1.amount)
            else { return nil }
            return .within(term, [ordered.0, ordered.1])
        case (.isOne(let term, let values, false), .isOne(let second, let more, false))
        where term == second:
            // Values with their own clauses stay separate.
            guard !(values + more).contains(where: { policy.clauses(of: term, $0) != nil }) else {
                return nil
            }
            return .isOne(term, of: values + more.filter { !values.contains($0) }, false)
        case (.has(let slot, let values, false), .has(let second, let more, false))
        where slot == second:
            return .has(slot: slot, anyOf: values + more.filter { !values.contains($0) }, false)
        default: return nil
        }
    }

    func or(_ other: Fact, _ policy: Policy) -> Fact? {
        switch (self, other) {
        case (.isOne(let term, let values, true), .isOne(let second, let more, true))
        where term == second:
            // Values with their own clauses stay separate.
            guard !(values + more).contains(where: { policy.clauses(of: term, $0) != nil }) else {
                return nil
            }
            return .isOne(term, of: values + more.filter { !values.contains($0) }, true)
        case (.has(let slot, let values, true), .has(let second, let more, true))
        where slot == second:
            return .has(slot: slot, anyOf: values + more.filter { !values.contains($0) }, true)
        default: return nil
        }
    }
}
