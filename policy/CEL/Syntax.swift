// The syntax tree: the text's structure with positions, before names are resolved.

/// Binary operators, in groups from the weakest.
package enum BinaryOperator: String, Sendable, CaseIterable {
    case or = "||"
    case and = "&&"
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case `in` = "in"
    case add = "+"
    case subtract = "-"
    case multiply = "*"
    case divide = "/"
    case remainder = "%"

    var precedence: Int {
        switch self {
        case .or: 1
        case .and: 2
        case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual, .in: 3
        case .add, .subtract: 4
        case .multiply, .divide, .remainder: 5
        }
    }
}

/// The macros that iterate over the elements of a list or the keys of a map.
package enum ComprehensionKind: String, Sendable {
    case all
    case exists
    case existsOne = "exists_one"
    case map
    case filter
}

/// A node of the syntax tree.
final class Syntax: Sendable {
    enum Kind: Sendable {
        case literal(CELValue)
        /// `isRooted`: written with a leading dot.
        case identifier(String, isRooted: Bool)
        case select(Syntax, field: String)
        /// `has(e.f)`, or `has(x)` with no field.
        case has(Syntax, field: String?)
        case index(Syntax, Syntax)
        case not(Syntax)
        case negate(Syntax)
        case binary(BinaryOperator, Syntax, Syntax)
        case conditional(Syntax, Syntax, Syntax)
        case call(String, target: Syntax?, [Syntax])
        case list([Syntax])
        case map([(key: Syntax, value: Syntax)])
        case comprehension(
            ComprehensionKind, range: Syntax, variable: String, predicate: Syntax?,
            transform: Syntax?)
    }
    let kind: Kind
    /// The span of the whole expression.
    let span: Range<Int>
    /// The place to which messages point: an operator or a name rather than the start of its left
    /// operand.
    let spot: Range<Int>
    /// 1 for a leaf.
    let depth: Int

    init(_ kind: Kind, span: Range<Int>, spot: Range<Int>? = nil, depth: Int) {
        self.kind = kind
        self.span = span
        self.spot = spot ?? span
        self.depth = depth
    }
}
