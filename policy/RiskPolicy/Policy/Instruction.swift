// The flat form of conditions: instructions over a few registers, without loops and without allocation.

import CEL

/// The operation of an instruction. `state` of a register: 0 false or a value, 1 true, 2 missing, 3 error.
enum Operation: UInt8, Sendable {
    /// Ends an expression; its truth is in register 0.
    case halt
    /// Ends a rule's condition and continues with the next rule. a: the rule's position.
    case ruleEnd
    /// target = the truth in `immediate`.
    case setTruth
    /// target = the number in `immediate`.
    case setNumber
    /// target = slot a.
    case loadNumber, loadTruth
    /// target = whether slot a has a value.
    case hasSlot
    /// target = slot a compared with `immediate`.
    case intEqual, intNotEqual, intLess, intLessOrEqual, intGreater, intGreaterOrEqual
    case symbolEqual, symbolNotEqual
    /// target = whether the symbol in slot a is one of the bits of `immediate`.
    case symbolIn
    /// target = whether the list in slot a contains the symbol whose bit is in `immediate`.
    case symbolHeld
    /// target = whether the string in slot a is in set b.
    case textIn
    /// Whether a string signal is in a live list; b: the list.
    case textInLive
    /// target = register a compared with register b; `immediate` is the comparison.
    case compareInt, compareUInt, compareDouble
    /// target = register a (operator) register b.
    case addInt, subtractInt, multiplyInt, divideInt, remainderInt
    case addUInt, subtractUInt, multiplyUInt, divideUInt, remainderUInt
    case addDouble, subtractDouble, multiplyDouble, divideDouble
    /// target = from register a.
    case negateInt, negateDouble, intToDouble, uintToDouble
    case not
    /// target = target (operator) register a.
    case and, or
    /// Jumps to b if target alone decides `&&` (or `||`).
    case skipIfFalse, skipIfTrue
    /// On register a: true continues, false jumps to b, missing and error become target and jump to `immediate`.
    case branch
    case jump
    /// target = the value of expression `immediate`, by the interpreter.
    case interpret
}

struct Instruction: Sendable {
    var operation: Operation
    var target: UInt8 = 0
    var a: UInt16 = 0
    var b: UInt32 = 0
    var immediate: Int64 = 0
}

struct Register {
    var bits: Int64
    var state: UInt8

    static let registers = 32
}

/// Comparisons, for `immediate` of the register forms.
enum Comparison: Int64 {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual

    init?(_ operation: BinaryOperator) {
        switch operation {
        case .equal: self = .equal
        case .notEqual: self = .notEqual
        case .less: self = .less
        case .lessOrEqual: self = .lessOrEqual
        case .greater: self = .greater
        case .greaterOrEqual: self = .greaterOrEqual
        default: return nil
        }
    }

    /// The same comparison with the operands exchanged.
    var mirrored: Comparison {
        switch self {
        case .equal, .notEqual: self
        case .less: .greater
        case .lessOrEqual: .greaterOrEqual
        case .greater: .less
        case .greaterOrEqual: .lessOrEqual
        }
    }

    @inline(__always)
    func holds<Number: Comparable>(_ left: Number, _ right: Number) -> Bool {
        switch self {
        case .equal: left == right
        case .notEqual: left != right
        case .less: left < right
        case .lessOrEqual: left <= right
        case .greater: left > right
        case .greaterOrEqual: left >= right
        }
    }
}
