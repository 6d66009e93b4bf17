// Errors of expressions: before evaluation (a place in the text) and during it.

/// A fault in the text of an expression, found before it is evaluated.
package struct ExpressionFault: Error, Sendable, Equatable {
    /// The error, in one line.
    package let message: String
    /// The position, as UTF-8 offsets into the expression.
    package let span: Range<Int>

    /// A fault at a place.
    package init(_ message: String, at span: Range<Int>) {
        self.message = message
        self.span = span
    }
}

/// Why an evaluation has no value. A missing signal is not an error, but a value.
package struct EvaluationError: Error, Sendable, Equatable {
    /// The kind of error; extensible.
    package struct Code: Sendable, Equatable {
        /// In snake case, as logged.
        package let name: String
        /// An operator or function does not accept values of these types.
        package static let noSuchOverload = Code(name: "no_such_overload")
        /// A map has no such key.
        package static let noSuchKey = Code(name: "no_such_key")
        /// An unknown name or function, in an expression that is not checked.
        package static let unknownName = Code(name: "unknown_name")
        /// A result beyond the range of its type.
        package static let overflow = Code(name: "overflow")
        /// Integer division or remainder by zero.
        package static let divisionByZero = Code(name: "division_by_zero")
        /// A value that a function or literal does not accept.
        package static let invalidArgument = Code(name: "invalid_argument")
        /// A value that was sent for a signal is unusable.
        package static let unusableValue = Code(name: "unusable_value")
        /// The evaluation took too many steps.
        package static let budget = Code(name: "budget")
    }

    /// The kind of error.
    package let code: Code
    /// One line for an author; contains no value of a signal.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Division by zero.
    static let zeroDivisor = EvaluationError(.divisionByZero, "division by zero")
    static let zeroRemainder = EvaluationError(.divisionByZero, "remainder of a division by zero")
    static let noIndex = EvaluationError(.invalidArgument, "the list has no such index")
    static let outOfSteps = EvaluationError(
        .budget, "the evaluation took more than \(ExpressionLimits.maximumSteps) steps")
    static let unknownZone = EvaluationError(.invalidArgument, "unknown time zone")

    /// For a part that reads a signal with an unusable value.
    package init(unusable message: String) {
        self.init(.unusableValue, message)
    }

    /// By code.
    package static func == (left: EvaluationError, right: EvaluationError) -> Bool {
        left.code == right.code
    }
}

/// Limits on expressions, far above what a person writes. Checked at load; the
/// refusal names the limit.
package enum ExpressionLimits {
    /// Bytes of an expression's text: limits the cost of parsing. Longer texts are refused.
    package static let maximumLength = 16_384
    /// Depth of the syntax tree and of nesting while parsing: this keeps recursion within a small
    /// stack. Deeper trees are refused.
    package static let maximumNesting = 100
    /// Nodes of the syntax tree. More are refused.
    package static let maximumNodes = 4_000
    /// Steps of one decision with all its conditions, or of an expression that is evaluated alone:
    /// one for each node, and one for each 16 octets or each element processed. A step takes some
    /// tenth of a microsecond, so that the most expensive decision takes some ten milliseconds.
    /// Beyond the limit, the remaining evaluations give the error "budget".
    package static let maximumSteps = 100_000
    /// Steps for a named time zone, because its database is read.
    static let zoneSteps = 100

    /// Steps for octets that are read, copied or hashed.
    @inlinable
    package static func steps(octets: Int) -> Int { octets / 16 }
}
