// An expression with resolved names and functions, ready to be evaluated.

/// A checked expression. Immutable; can be shared between threads.
package final class ResolvedExpression: Sendable {
    /// The kinds of nodes.
    package enum Kind: Sendable {
        case constant(CELValue)
        /// A constant list of many strings, tested with `in` (a policy's `lists:`).
        case stringSet(StringList)
        /// A list that changes while the policy is in force, tested with
        /// `in` (a policy's `live_lists:`).
        case liveList(LiveListName)
        /// A declared variable, by its slot.
        case variable(Int)
        /// Whether a declared variable is present.
        case hasVariable(Int)
        /// A comprehension's variable, numbered from the outermost.
        case local(Int)
        /// An unresolved name in an expression that is not checked: an error at evaluation.
        case failure(EvaluationError)
        case select(ResolvedExpression, field: String)
        case hasField(ResolvedExpression, field: String)
        case index(ResolvedExpression, ResolvedExpression)
        case not(ResolvedExpression)
        case negate(ResolvedExpression)
        case binary(BinaryOperator, ResolvedExpression, ResolvedExpression)
        case conditional(ResolvedExpression, ResolvedExpression, ResolvedExpression)
        case call(CELFunction, [ResolvedExpression])
        case list([ResolvedExpression])
        case map([(key: ResolvedExpression, value: ResolvedExpression)])
        case comprehension(
            ComprehensionKind, range: ResolvedExpression, predicate: ResolvedExpression?,
            transform: ResolvedExpression?)
    }
    /// The kind of this node.
    package let kind: Kind
    /// Its static type; `dyn` in expressions that are not checked.
    package let type: CELType
    /// UTF-8 offsets into the expression's text.
    package let span: Range<Int>
    /// Whether evaluating the node itself costs no step of the budget (`markingFreeParts`).
    package let isFree: Bool

    /// A node with its type; `span` is its place in the text.
    package init(_ kind: Kind, _ type: CELType, _ span: Range<Int>, isFree: Bool = false) {
        self.kind = kind
        self.type = type
        self.span = span
        self.isFree = isFree
    }

    /// The direct children, in the order written.
    package var children: [ResolvedExpression] {
        switch kind {
        case .constant, .stringSet, .liveList, .variable, .hasVariable, .local, .failure: []
        case .select(let operand, _), .hasField(let operand, _), .not(let operand),
            .negate(let operand):
            [operand]
        case .index(let left, let right), .binary(_, let left, let right): [left, right]
        case .conditional(let condition, let yes, let no): [condition, yes, no]
        case .call(_, let arguments): arguments
        case .list(let elements): elements
        case .map(let entries): entries.flatMap { [$0.key, $0.value] }
        case .comprehension(_, let range, let predicate, let transform):
            [range] + [predicate, transform].compactMap { $0 }
        }
    }

    /// The slots of the variables that it reads, including `has()`, ascending and each once.
    package var variables: [Int] {
        var found: Set<Int> = []
        visit { node in
            if case .variable(let slot) = node.kind { found.insert(slot) }
            if case .hasVariable(let slot) = node.kind { found.insert(slot) }
        }
        return found.sorted()
    }

    /// Calls `body` for this node and all below it.
    package func visit(_ body: (ResolvedExpression) -> Void) {
        body(self)
        for child in children { child.visit(body) }
    }
}

/// The names that an expression may use.
package struct ExpressionScope: Sendable {
    /// Variables by (dotted) name.
    package var variables: [String: (slot: Int, type: CELType)] = [:]
    /// Constants by name.
    package var constants: [String: CELValue] = [:]
    /// Named sets of strings, usable on the right of `in`.
    package var sets: [String: StringList] = [:]
    /// Live lists by (dotted) name, usable on the right of `in`.
    package var liveLists: [String: LiveListName] = [:]
    /// Whether `has(x)` of a plain variable is allowed: in policies, where a signal may be missing.
    package var allowsHasOfVariable = false

    /// No names.
    package init() {}

    /// Adds a variable in the next slot.
    package mutating func declare(_ name: String, _ type: CELType) {
        variables[name] = (variables.count, type)
    }

    /// Names similar to an unknown one.
    func nearest(to name: String) -> String? {
        nearestName(
            to: name,
            among: Array(variables.keys) + Array(constants.keys) + Array(sets.keys)
                + Array(liveLists.keys))
    }
}
