// Resolved expressions → instructions. Parts without a flat form are left to the interpreter.

import CEL

struct Compiler {
    private(set) var code: [Instruction] = []
    private(set) var expressions: [ResolvedExpression] = []
    private(set) var sets: [StringList] = []
    private(set) var liveLists: [LiveListName] = []
    /// Strings used in conditions, numbered.
    private(set) var symbols: [ExactString: Int] = [:]
    private let signals: [SignalDeclaration]

    init(signals: [SignalDeclaration]) {
        self.signals = signals
    }

    /// Compiles a condition; returns where it starts. `end` is `halt` or `ruleEnd`.
    mutating func compile(_ condition: ResolvedExpression, end: Instruction) -> Int {
        let start = code.count
        emitTruth(condition, 0)
        code.append(end)
        return start
    }

    mutating func append(_ instruction: Instruction) {
        code.append(instruction)
    }

    private mutating func symbol(_ text: String) -> Int {
        let key = ExactString(text)
        if let known = symbols[key] { return known }
        symbols[key] = symbols.count
        return symbols.count - 1
    }

    private mutating func interpret(_ node: ResolvedExpression, _ target: UInt8) {
        code.append(Instruction(operation: .interpret, target: target, immediate: Int64(expressions.count)))
        expressions.append(node)
    }

    private func signalSlot(_ node: ResolvedExpression, _ type: CELType) -> UInt16? {
        guard case .variable(let slot) = node.kind, signals.indices.contains(slot), signals[slot].type == type else { return nil }
        return UInt16(slot)
    }

    // MARK: Truths

    private mutating func emitTruth(_ node: ResolvedExpression, _ target: UInt8) {
        guard node.type == .bool, Int(target) < Register.registers - 2 else { return interpret(node, target) }
        switch node.kind {
        case .constant(.bool(let bool)):
            code.append(Instruction(operation: .setTruth, target: target, immediate: bool ? 1 : 0))
        case .variable:
            guard let slot = signalSlot(node, .bool) else { return interpret(node, target) }
            code.append(Instruction(operation: .loadTruth, target: target, a: slot))
        case .hasVariable(let slot):
            guard signals.indices.contains(slot) else { return interpret(node, target) }
            code.append(Instruction(operation: .hasSlot, target: target, a: UInt16(slot)))
        case .not(let operand):
            emitTruth(operand, target)
            code.append(Instruction(operation: .not, target: target, a: UInt16(target)))
        case .binary(.and, let left, let right): emitLogic(left, right, target, .and, .skipIfFalse)
        case .binary(.or, let left, let right): emitLogic(left, right, target, .or, .skipIfTrue)
        case .conditional(let condition, let yes, let no):
            emitBranch(condition, target, { $0.emitTruth(yes, target) }, { $0.emitTruth(no, target) })
        case .binary(.in, let left, let right):
            if !emitMembership(left, right, target) { interpret(node, target) }
        case .binary(let operation, let left, let right):
            if !emitComparison(operation, left, right, target) { interpret(node, target) }
        default:
            interpret(node, target)
        }
    }

    private mutating func emitLogic(
        _ left: ResolvedExpression, _ right: ResolvedExpression, _ target: UInt8, _ operation: Operation, _ skip: Operation
    ) {
        emitTruth(left, target)
        let hole = code.count
        code.append(Instruction(operation: skip, target: target))
        emitTruth(right, target + 1)
        // One instruction is cheaper than an unpredictable jump around it.
        if code.count == hole + 2, code[hole + 1].operation != .interpret {
            code.remove(at: hole)
            code.append(Instruction(operation: operation, target: target, a: UInt16(target + 1)))
            return
        }
        code.append(Instruction(operation: operation, target: target, a: UInt16(target + 1)))
        code[hole].b = UInt32(clamping: code.count)
    }

    private mutating func emitBranch(
        _ condition: ResolvedExpression, _ target: UInt8, _ yes: (inout Compiler) -> Void, _ no: (inout Compiler) -> Void
    ) {
        emitTruth(condition, target + 1)
        let branch = code.count
        code.append(Instruction(operation: .branch, target: target, a: UInt16(target + 1)))
        yes(&self)
        let jump = code.count
        code.append(Instruction(operation: .jump))
        code[branch].b = UInt32(clamping: code.count)
        no(&self)
        code[branch].immediate = Int64(code.count)
        code[jump].b = UInt32(clamping: code.count)
    }

    private mutating func emitMembership(_ left: ResolvedExpression, _ right: ResolvedExpression, _ target: UInt8) -> Bool {
        if case .constant(.string(let text)) = left.kind, let slot = signalSlot(right, .list(.string)) {
            let symbol = symbol(text)
            guard symbol < 64 else { return false }
            code.append(Instruction(operation: .symbolHeld, target: target, a: slot, immediate: 1 << Int64(symbol)))
            return true
        }
        guard let slot = signalSlot(left, .string) else { return false }
        switch right.kind {
        case .stringSet(let set):
            code.append(Instruction(operation: .textIn, target: target, a: slot, b: UInt32(clamping: sets.count)))
            sets.append(set)
            return true
        case .liveList(let list):
            code.append(Instruction(operation: .textInLive, target: target, a: slot, b: UInt32(clamping: liveLists.count)))
            liveLists.append(list)
            return true
        case .constant(.list(let elements)):
            var mask: UInt64 = 0
            for element in elements {
                guard case .string(let text) = element else { return false }
                let symbol = symbol(text)
                guard symbol < 64 else { return false }
                mask |= 1 << UInt64(symbol)
            }
            code.append(Instruction(operation: .symbolIn, target: target, a: slot, immediate: Int64(bitPattern: mask)))
            return true
        default:
            return false
        }
    }

    private mutating func emitComparison(
        _ operation: BinaryOperator, _ left: ResolvedExpression, _ right: ResolvedExpression, _ target: UInt8
    ) -> Bool {
        guard let comparison = Comparison(operation) else { return false }
        for (one, other, way) in [(left, right, comparison), (right, left, comparison.mirrored)] {
            if let slot = signalSlot(one, .string), case .constant(.string(let text)) = other.kind {
                guard way == .equal || way == .notEqual else { return false }
                let symbol = Int64(symbol(text))
                code.append(
                    Instruction(
                        operation: way == .equal ? .symbolEqual : .symbolNotEqual, target: target, a: slot, immediate: symbol))
                return true
            }
            if let slot = signalSlot(one, .int), case .constant(.int(let int)) = other.kind {
                let codes: [Comparison: Operation] = [
                    .equal: .intEqual, .notEqual: .intNotEqual, .less: .intLess, .lessOrEqual: .intLessOrEqual,
                    .greater: .intGreater, .greaterOrEqual: .intGreaterOrEqual,
                ]
                guard let code = codes[way] else { return false }
                self.code.append(Instruction(operation: code, target: target, a: slot, immediate: int))
                return true
            }
        }
        guard left.type == right.type else { return false }
        let compare: Operation
        switch left.type {
        case .int: compare = .compareInt
        case .uint: compare = .compareUInt
        case .double: compare = .compareDouble
        default: return false
        }
        emitNumber(left, target)
        emitNumber(right, target + 1)
        code.append(
            Instruction(
                operation: compare, target: target, a: UInt16(target), b: UInt32(target + 1), immediate: comparison.rawValue))
        return true
    }

    // MARK: Numbers

    private mutating func emitNumber(_ node: ResolvedExpression, _ target: UInt8) {
        guard node.type.isNumber, Int(target) < Register.registers - 2 else { return interpret(node, target) }
        switch node.kind {
        case .constant(.int(let int)):
            code.append(Instruction(operation: .setNumber, target: target, immediate: int))
        case .constant(.uint(let uint)):
            code.append(Instruction(operation: .setNumber, target: target, immediate: Int64(bitPattern: uint)))
        case .constant(.double(let double)):
            code.append(Instruction(operation: .setNumber, target: target, immediate: Int64(bitPattern: double.bitPattern)))
        case .variable:
            guard let slot = signalSlot(node, node.type) else { return interpret(node, target) }
            code.append(Instruction(operation: .loadNumber, target: target, a: slot))
        case .negate(let operand) where operand.type == .int || operand.type == .double:
            emitNumber(operand, target)
            code.append(
                Instruction(operation: operand.type == .int ? .negateInt : .negateDouble, target: target, a: UInt16(target)))
        case .call(.double, let arguments) where arguments[0].type == .int || arguments[0].type == .uint:
            emitNumber(arguments[0], target)
            code.append(
                Instruction(
                    operation: arguments[0].type == .int ? .intToDouble : .uintToDouble, target: target, a: UInt16(target)))
        case .conditional(let condition, let yes, let no) where yes.type == no.type:
            emitBranch(condition, target, { $0.emitNumber(yes, target) }, { $0.emitNumber(no, target) })
        case .binary(let operation, let left, let right) where left.type == right.type && left.type == node.type:
            guard let arithmetic = Self.arithmetic(operation, node.type) else { return interpret(node, target) }
            emitNumber(left, target)
            emitNumber(right, target + 1)
            code.append(
                Instruction(operation: arithmetic, target: target, a: UInt16(target), b: UInt32(target + 1)))
        default:
            interpret(node, target)
        }
    }

    private static func arithmetic(_ operation: BinaryOperator, _ type: CELType) -> Operation? {
        switch (operation, type) {
        case (.add, .int): .addInt
        case (.subtract, .int): .subtractInt
        case (.multiply, .int): .multiplyInt
        case (.divide, .int): .divideInt
        case (.remainder, .int): .remainderInt
        case (.add, .uint): .addUInt
        case (.subtract, .uint): .subtractUInt
        case (.multiply, .uint): .multiplyUInt
        case (.divide, .uint): .divideUInt
        case (.remainder, .uint): .remainderUInt
        case (.add, .double): .addDouble
        case (.subtract, .double): .subtractDouble
        case (.multiply, .double): .multiplyDouble
        case (.divide, .double): .divideDouble
        default: nil
        }
    }
}
