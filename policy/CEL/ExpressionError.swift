// What can be wrong with an expression: before evaluation (a spot in its text) and during it.

/// A fault of an expression's text, found before it is evaluated.
package struct ExpressionFault: Error, Sendable, Equatable {
    /// What is wrong, in one line.
    package let message: String
    /// Where, as UTF-8 offsets into the expression.
    package let span: Range<Int>

    /// A fault at a place.
    package init(_ message: String, at span: Range<Int>) {
        self.message = message
        self.span = span
    }
}

/// Why an evaluation has no value. A missing signal is not among these: it is a value.
package struct EvaluationError: Error, Sendable, Equatable {
    /// What happened; extensible.
    package struct Code: Sendable, Equatable {
        /// In snake case, as logged.
        package let name: String
        /// An operator or function does not take values of these types.
        package static let noSuchOverload = Code(name: "no_such_overload")
        /// A map has no such key.
        package static let noSuchKey = Code(name: "no_such_key")
        /// A name or function that is not known, in an expression that is not checked.
        package static let unknownName = Code(name: "unknown_name")
        /// A result beyond the range of its type.
        package static let overflow = Code(name: "overflow")
        /// Division or remainder by zero, of integers.
        package static let divisionByZero = Code(name: "division_by_zero")
        /// A value that a function or literal cannot take.
        package static let invalidArgument = Code(name: "invalid_argument")
        /// The evaluation took too many steps.
        package static let budget = Code(name: "budget")
    }

    /// What happened.
    package let code: Code
    /// One line for an author; holds no value of a signal.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// By code.
    package static func == (left: EvaluationError, right: EvaluationError) -> Bool {
        left.code == right.code
    }
}

/// Limits on expressions, refused at load with the limit's name. They are far above what a person writes.
package enum ExpressionLimits {
    /// Bytes of an expression's text: keeps parsing bounded. Beyond it: refused.
    package static let maximumLength = 16_384
    /// Depth of the syntax tree, and of nesting while parsing: keeps every recursion within a small stack. Beyond it: refused.
    package static let maximumNesting = 100
    /// Nodes of the syntax tree. Beyond it: refused.
    package static let maximumNodes = 4_000
    /// Steps of one decision, all of its conditions together, and of an expression that is evaluated on its own: a node each, and
    /// one for each 16 octets or element handled. A step takes some tenth of a microsecond, so that the dearest decision takes
    /// some ten milliseconds. Beyond it: what is still to be evaluated is an error, "budget".
    package static let maximumSteps = 100_000
    /// Steps for a named time zone: its database is asked.
    static let zoneSteps = 100

    /// Steps for octets that are read, copied or hashed.
    @inlinable
    package static func steps(octets: Int) -> Int { octets / 16 }
}
