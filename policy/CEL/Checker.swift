// Syntax tree → resolved expression: names are resolved, types are checked (CEL language
// definition, "Name Resolution", "Type Checking"). In unchecked expressions (conformance cases),
// faults become errors of evaluation.

/// Parses, resolves and checks expressions.
package struct Checker {
    private let scope: ExpressionScope
    private let isChecked: Bool
    private var locals: [(name: String, type: CELType)] = []

    /// Parses an expression and resolves its names.
    ///
    /// - Parameter isChecked: whether unknown names and wrong types are faults (true), or
    ///   errors at evaluation (false).
    package static func resolve(
        _ text: String, in scope: ExpressionScope, isChecked: Bool = true
    ) throws(ExpressionFault) -> ResolvedExpression {
        let tree = try Parser.parse(text)
        var checker = Checker(scope: scope, isChecked: isChecked)
        return try checker.resolve(tree)
    }

    private init(scope: ExpressionScope, isChecked: Bool) {
        self.scope = scope
        self.isChecked = isChecked
    }

    private func fault(
        _ code: EvaluationError.Code, _ message: String, _ spot: Range<Int>, _ span: Range<Int>
    ) throws(ExpressionFault) -> ResolvedExpression {
        if isChecked { throw ExpressionFault(message, at: spot) }
        return ResolvedExpression(.failure(EvaluationError(code, message)), .dyn, span)
    }

    private func noOverload(_ message: String, _ spot: Range<Int>) throws(ExpressionFault) {
        if isChecked { throw ExpressionFault(message, at: spot) }
    }

    // MARK: Nodes

    private mutating func resolve(_ node: Syntax) throws(ExpressionFault) -> ResolvedExpression {
        func made(_ kind: ResolvedExpression.Kind, _ type: CELType) -> ResolvedExpression {
            ResolvedExpression(kind, isChecked ? type : .dyn, node.span)
        }
        switch node.kind {
        case .literal(let value):
            return made(.constant(value), Self.type(of: value))
        case .identifier, .select:
            return try name(node)
        case .has(let operand, let field):
            return try has(node, operand, field)
        case .index(let operand, let index):
            let operand = try resolve(operand)
            let index = try resolve(index)
            switch operand.type {
            case .list(let element) where index.type.goesWith(.int):
                return made(.index(operand, index), element)
            case .map(let key, let value) where index.type.goesWith(key):
                return made(.index(operand, index), value)
            case .dyn: break
            default:
                try noOverload(
                    "\(operand.type.text) has no index of type \(index.type.text)", node.spot)
            }
            return made(.index(operand, index), .dyn)
        case .not(let operand):
            let operand = try resolve(operand)
            if !operand.type.goesWith(.bool) {
                try noOverload("'!' needs a bool, not \(operand.type.text)", node.spot)
            }
            return made(.not(operand), .bool)
        case .negate(let operand):
            let operand = try resolve(operand)
            if ![.int, .double, .dyn].contains(operand.type) {
                try noOverload("'-' needs an int or a double, not \(operand.type.text)", node.spot)
            }
            return made(.negate(operand), operand.type)
        case .binary(let operation, let left, let right):
            let left = try resolve(left)
            let right = try resolve(right)
            let type = operation.result(left.type, right.type)
            if type == nil { try noOverload(Self.mismatch(operation, left, right), node.spot) }
            return made(.binary(operation, left, right), type ?? .dyn)
        case .conditional(let condition, let yes, let no):
            let condition = try resolve(condition)
            if !condition.type.goesWith(.bool) {
                try noOverload("'?' needs a bool before it, not \(condition.type.text)", node.spot)
            }
            let yes = try resolve(yes)
            let no = try resolve(no)
            if !yes.type.goesWith(no.type) {
                try noOverload(
                    "both sides of ':' must have the same type: \(yes.type.text) and \(no.type.text)",
                    node.spot)
            }
            return made(.conditional(condition, yes, no), yes.type.joined(with: no.type))
        case .call(let name, let target, let arguments):
            return try call(node, name, target, arguments)
        case .list(let elements):
            var resolved: [ResolvedExpression] = []
            for element in elements { resolved.append(try resolve(element)) }
            let type = resolved.dropFirst().reduce(resolved.first?.type ?? .dyn) {
                $0.joined(with: $1.type)
            }
            return made(.list(resolved), .list(type))
        case .map(let entries):
            return try map(node, entries)
        case .comprehension(let kind, let range, let variable, let predicate, let transform):
            return try comprehension(node, kind, range, variable, predicate, transform)
        }
    }

    private static func type(of value: CELValue) -> CELType {
        switch value {
        case .null: .null
        case .bool: .bool
        case .int: .int
        case .uint: .uint
        case .double: .double
        case .string: .string
        case .bytes: .bytes
        case .timestamp: .timestamp
        case .duration: .duration
        case .ip: .ip
        case .cidr: .cidr
        case .type: .type
        case .list(let elements):
            .list(
                elements.dropFirst().reduce(elements.first.map(type) ?? .dyn) {
                    $0.joined(with: type(of: $1))
                })
        case .map, .missing: .dyn
        }
    }

    private static func mismatch(
        _ operation: BinaryOperator, _ left: ResolvedExpression, _ right: ResolvedExpression
    ) -> String {
        let message =
            "'\(operation.rawValue)' is not defined for \(left.type.text) and \(right.type.text)"
        if left.type == .null || right.type == .null {
            return message + "; use has() to test whether a signal is present"
        }
        switch (left.type, right.type) {
        case (.int, .double), (.double, .int): return message + "; convert with double()"
        case (.int, .uint), (.uint, .int): return message + "; convert with int()"
        default: return message
        }
    }

    private mutating func map(
        _ node: Syntax, _ entries: [(key: Syntax, value: Syntax)]
    ) throws(ExpressionFault) -> ResolvedExpression {
        var resolved: [(key: ResolvedExpression, value: ResolvedExpression)] = []
        for entry in entries {
            let key = try resolve(entry.key)
            if ![.bool, .int, .uint, .string, .dyn].contains(key.type) {
                try noOverload("a map's key cannot be of type \(key.type.text)", entry.key.spot)
            }
            resolved.append((key, try resolve(entry.value)))
        }
        let keys = resolved.dropFirst().reduce(resolved.first?.key.type ?? .dyn) {
            $0.joined(with: $1.key.type)
        }
        let values = resolved.dropFirst().reduce(resolved.first?.value.type ?? .dyn) {
            $0.joined(with: $1.value.type)
        }
        return ResolvedExpression(.map(resolved), isChecked ? .map(keys, values) : .dyn, node.span)
    }

    // MARK: Names

    /// The parts of `a.b.c`, or nil if the node is not a plain dotted name.
    private func path(_ node: Syntax) -> (parts: [String], isRooted: Bool)? {
        var parts: [String] = []
        var current = node
        while true {
            switch current.kind {
            case .identifier(let name, let isRooted): return ((parts + [name]).reversed(), isRooted)
            case .select(let operand, let field):
                parts.append(field)
                current = operand
            default: return nil
            }
        }
    }

    private static let typeNames: Set<String> = [
        "bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration", "net.IP", "net.CIDR",
    ]

    private func declared(_ name: String, _ span: Range<Int>) -> ResolvedExpression? {
        if let variable = scope.variables[name] {
            return ResolvedExpression(
                .variable(variable.slot), isChecked ? variable.type : .dyn, span)
        }
        if let value = scope.constants[name] {
            return ResolvedExpression(
                .constant(value), isChecked ? Self.type(of: value) : .dyn, span)
        }
        if let set = scope.sets[name] {
            return ResolvedExpression(.stringSet(set), isChecked ? .list(.string) : .dyn, span)
        }
        if let list = scope.liveLists[name] {
            return ResolvedExpression(.liveList(list), isChecked ? .list(.string) : .dyn, span)
        }
        if Self.typeNames.contains(name) {
            return ResolvedExpression(.constant(.type(name)), isChecked ? .type : .dyn, span)
        }
        return nil
    }

    /// A name or a selection. The longest declared dotted name has priority; a comprehension's
    /// variable hides all of them.
    private mutating func name(_ node: Syntax) throws(ExpressionFault) -> ResolvedExpression {
        guard let (parts, isRooted) = path(node) else {
            if case .select(let operand, let field) = node.kind {
                return try select(try resolve(operand), field, node)
            }
            return try fault(.unknownName, "not a name", node.spot, node.span)
        }
        if !isRooted, let depth = locals.lastIndex(where: { $0.name == parts[0] }) {
            if case .select(let operand, let field) = node.kind {
                return try select(try resolve(operand), field, node)
            }
            return ResolvedExpression(
                .local(depth), isChecked ? locals[depth].type : .dyn, node.span)
        }
        if let found = declared(parts.joined(separator: "."), node.span) { return found }
        if case .select(let operand, let field) = node.kind, isPrefixDeclared(parts.dropLast()) {
            return try select(try resolve(operand), field, node)
        }
        let full = parts.joined(separator: ".")
        let prefix = full + "."
        if scope.variables.keys.contains(where: { $0.hasPrefix(prefix) }) {
            return try fault(
                .unknownName, "'\(full)' is a group of signals, not a signal", node.span, node.span)
        }
        let hint = scope.nearest(to: full).map { "; did you mean '\($0)'?" } ?? ""
        return try fault(.unknownName, "unknown name '\(full)'\(hint)", node.span, node.span)
    }

    private func isPrefixDeclared(_ parts: ArraySlice<String>) -> Bool {
        var parts = parts
        while !parts.isEmpty {
            if declared(parts.joined(separator: "."), 0..<0) != nil { return true }
            parts = parts.dropLast()
        }
        return false
    }

    private func select(
        _ operand: ResolvedExpression, _ field: String, _ node: Syntax
    ) throws(ExpressionFault) -> ResolvedExpression {
        var type = CELType.dyn
        switch operand.type {
        case .dyn: break
        case .map(let key, let value) where key.goesWith(.string): type = value
        default: try noOverload("\(operand.type.text) has no fields", node.spot)
        }
        return ResolvedExpression(
            .select(operand, field: field), isChecked ? type : .dyn, node.span)
    }

    private mutating func has(
        _ node: Syntax, _ operand: Syntax, _ field: String?
    ) throws(ExpressionFault) -> ResolvedExpression {
        let type: CELType = isChecked ? .bool : .dyn
        let asked =
            field.map { Syntax(.select(operand, field: $0), span: node.spot, depth: node.depth) }
            ?? operand
        if let (parts, isRooted) = path(asked),
            isRooted || !locals.contains(where: { $0.name == parts[0] }),
            let variable = scope.variables[parts.joined(separator: ".")],
            field != nil || scope.allowsHasOfVariable
        {
            return ResolvedExpression(.hasVariable(variable.slot), type, node.span)
        }
        guard let field else {
            if scope.allowsHasOfVariable { _ = try resolve(operand) }
            throw ExpressionFault("has() takes a field, as in has(x.y)", at: node.spot)
        }
        if scope.allowsHasOfVariable, let (parts, _) = path(asked),
            !locals.contains(where: { $0.name == parts[0] }),
            !isPrefixDeclared(parts.dropLast())
        {
            return try name(asked)  // throws the fault that names the unknown name
        }
        let resolved = try resolve(operand)
        switch resolved.type {
        case .dyn, .map: break
        default: try noOverload("\(resolved.type.text) has no fields", node.spot)
        }
        return ResolvedExpression(.hasField(resolved, field: field), type, node.span)
    }

    // MARK: Calls and macros

    private mutating func call(
        _ node: Syntax, _ name: String, _ target: Syntax?, _ arguments: [Syntax]
    ) throws(ExpressionFault) -> ResolvedExpression {
        if name == "isCanonical", let target, let (parts, _) = path(target), parts == ["ip"],
            declared("ip", node.span) == nil,
            !locals.contains(where: { $0.name == "ip" })
        {
            return try call(node, CELFunction.isCanonical.rawValue, nil, arguments)
        }
        guard let function = CELFunction(rawValue: name) else {
            if target != nil, ["exists", "all", "exists_one", "filter", "map"].contains(name) {
                return try fault(
                    .unknownName, "\(name)() takes a variable and an expression", node.spot,
                    node.span)
            }
            let hint = suggestion(for: name, among: CELFunction.allCases.map(\.rawValue))
            return try fault(
                .unknownName, "unknown function '\(name)'\(hint)", node.spot, node.span)
        }
        let called = function.isCalled
        guard target == nil ? called.asFunction : called.asMethod else {
            let form = target == nil ? "x.\(name)()" : "\(name)(x)"
            return try fault(
                .noSuchOverload, "'\(name)' is called as \(form)", node.spot, node.span)
        }
        var resolved: [ResolvedExpression] = []
        if let target { resolved.append(try resolve(target)) }
        for argument in arguments { resolved.append(try resolve(argument)) }
        guard let type = function.result(isMethod: target != nil, resolved.map(\.type)) else {
            let types = resolved.map(\.type.text).joined(separator: ", ")
            return try fault(
                .noSuchOverload, "'\(name)' does not take (\(types))", node.spot, node.span)
        }
        return ResolvedExpression(.call(function, resolved), isChecked ? type : .dyn, node.span)
    }

    private mutating func comprehension(
        _ node: Syntax, _ kind: ComprehensionKind, _ range: Syntax, _ variable: String,
        _ predicate: Syntax?,
        _ transform: Syntax?
    ) throws(ExpressionFault) -> ResolvedExpression {
        let range = try resolve(range)
        var element = CELType.dyn
        switch range.type {
        case .list(let type): element = type
        case .map(let key, _): element = key
        case .dyn: break
        default:
            try noOverload(
                "\(kind.rawValue)() needs a list or a map, not \(range.type.text)", node.spot)
        }
        locals.append((variable, element))
        defer { locals.removeLast() }
        var resolvedPredicate: ResolvedExpression?
        if let predicate {
            let resolved = try resolve(predicate)
            if !resolved.type.goesWith(.bool) {
                try noOverload(
                    "\(kind.rawValue)() needs a bool, not \(resolved.type.text)", predicate.spot)
            }
            resolvedPredicate = resolved
        }
        var resolvedTransform: ResolvedExpression?
        if let transform { resolvedTransform = try resolve(transform) }
        let type: CELType =
            switch kind {
            case .all, .exists, .existsOne: .bool
            case .filter: .list(element)
            case .map: .list(resolvedTransform?.type ?? .dyn)
            }
        return ResolvedExpression(
            .comprehension(
                kind, range: range, predicate: resolvedPredicate, transform: resolvedTransform),
            isChecked ? type : .dyn, node.span)
    }
}
