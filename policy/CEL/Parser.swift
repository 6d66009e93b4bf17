// Tokens → syntax tree, by precedence climbing; macros are recognised here (CEL language
// definition, "Syntax", "Macros").

struct Parser {
    private let tokens: [Token]
    private var position = 0
    private var nesting = 0
    private var nodes = 0

    /// Parses a whole expression.
    static func parse(_ text: String) throws(ExpressionFault) -> Syntax {
        var parser = Parser(tokens: try Lexer.tokens(text))
        if parser.token.kind == .end { throw ExpressionFault("the expression is empty", at: 0..<1) }
        let tree = try parser.expression()
        guard parser.token.kind == .end else {
            throw parser.unexpected("an operator or the end of the expression")
        }
        return tree
    }

    private init(tokens: [Token]) {
        self.tokens = tokens
    }

    private static let reserved: Set<String> = [
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
        "loop", "package", "namespace",
        "return", "var", "void", "while",
    ]
    private static let keywords = ExpressionWords.keywords

    // MARK: Reading tokens

    private var token: Token { tokens[min(position, tokens.count - 1)] }

    private func isSymbol(_ symbol: String) -> Bool { token.kind == .symbol(symbol) }

    private mutating func take(_ symbol: String) -> Bool {
        guard isSymbol(symbol) else { return false }
        position += 1
        return true
    }

    private mutating func expect(_ symbol: String) throws(ExpressionFault) {
        guard take(symbol) else { throw unexpected("'\(symbol)'") }
    }

    private func unexpected(_ wanted: String) -> ExpressionFault {
        let found =
            switch token.kind {
            case .end: "the end of the expression"
            case .identifier(let name): "'\(name)'"
            case .symbol(let symbol): "'\(symbol)'"
            case .string: "a string"
            case .bytes: "bytes"
            case .int, .uint, .double: "a number"
            case .quotedIdentifier: "a quoted name"
            }
        return ExpressionFault("expected \(wanted), found \(found)", at: token.span)
    }

    private mutating func node(
        _ kind: Syntax.Kind, _ span: Range<Int>, spot: Range<Int>? = nil, over children: Syntax...
    ) throws(ExpressionFault) -> Syntax {
        try node(kind, span, spot: spot, over: children)
    }

    private mutating func node(
        _ kind: Syntax.Kind, _ span: Range<Int>, spot: Range<Int>? = nil, over children: [Syntax]
    ) throws(ExpressionFault) -> Syntax {
        nodes += 1
        guard nodes <= ExpressionLimits.maximumNodes else {
            throw ExpressionFault(
                "the expression has more than \(ExpressionLimits.maximumNodes) parts",
                at: spot ?? span)
        }
        var depth = 1
        for child in children where child.depth >= depth { depth = child.depth + 1 }
        guard depth <= ExpressionLimits.maximumNesting else { throw tooDeep(spot ?? span) }
        return Syntax(kind, span: span, spot: spot, depth: depth)
    }

    private func tooDeep(_ span: Range<Int>) -> ExpressionFault {
        ExpressionFault(
            "the expression is nested more than \(ExpressionLimits.maximumNesting) deep", at: span)
    }

    // MARK: Grammar

    private mutating func expression() throws(ExpressionFault) -> Syntax {
        nesting += 1
        defer { nesting -= 1 }
        guard nesting <= ExpressionLimits.maximumNesting else { throw tooDeep(token.span) }
        let condition = try binary(atLeast: 1)
        let spot = token.span
        guard take("?") else { return condition }
        let whenTrue = try binary(atLeast: 1)
        try expect(":")
        let whenFalse = try expression()
        return try node(
            .conditional(condition, whenTrue, whenFalse),
            condition.span.lowerBound..<whenFalse.span.upperBound, spot: spot,
            over: condition, whenTrue, whenFalse)
    }

    private var binaryOperator: BinaryOperator? {
        switch token.kind {
        case .symbol(let symbol): BinaryOperator(rawValue: symbol)
        case .identifier("in"): .in
        default: nil
        }
    }

    private mutating func binary(atLeast precedence: Int) throws(ExpressionFault) -> Syntax {
        var left = try unary()
        while let operation = binaryOperator, operation.precedence >= precedence {
            let spot = token.span
            position += 1
            let right = try binary(atLeast: operation.precedence + 1)
            left = try node(
                .binary(operation, left, right), left.span.lowerBound..<right.span.upperBound,
                spot: spot, over: left, right)
        }
        return left
    }

    private mutating func unary() throws(ExpressionFault) -> Syntax {
        var signs: [Token] = []
        for symbol in ["!", "-"] {
            while isSymbol(symbol) {
                signs.append(token)
                position += 1
            }
            if !signs.isEmpty { break }
        }
        guard signs.count <= ExpressionLimits.maximumNesting else { throw tooDeep(token.span) }
        var operand: Syntax
        if let last = signs.last, last.kind == .symbol("-"),
            let literal = try negativeLiteral(from: last.span.lowerBound)
        {
            signs.removeLast()
            operand = try postfix(literal)
        } else {
            operand = try postfix(try primary())
        }
        for sign in signs.reversed() {
            let span = sign.span.lowerBound..<operand.span.upperBound
            operand = try node(
                sign.kind == .symbol("!") ? .not(operand) : .negate(operand), span, spot: sign.span,
                over: operand)
        }
        return operand
    }

    /// A number after a minus sign, so that the smallest int can be written.
    private mutating func negativeLiteral(from start: Int) throws(ExpressionFault) -> Syntax? {
        let span = start..<token.span.upperBound
        switch token.kind {
        case .int(let magnitude):
            guard let magnitude, magnitude <= UInt64(Int64.max) + 1 else {
                throw ExpressionFault("the number does not fit in an int (64 bits)", at: span)
            }
            position += 1
            return try node(.literal(.int(Int64(truncatingIfNeeded: 0 &- magnitude))), span)
        case .double(let value):
            position += 1
            return try node(.literal(.double(-value)), span)
        default:
            return nil
        }
    }

    private mutating func postfix(_ start: Syntax) throws(ExpressionFault) -> Syntax {
        var result = start
        while true {
            let begin = result.span.lowerBound
            if take(".") {
                let name = token
                switch name.kind {
                case .quotedIdentifier(let field):
                    position += 1
                    result = try node(
                        .select(result, field: field), begin..<name.span.upperBound,
                        spot: name.span, over: result)
                case .identifier(let field) where !Self.keywords.contains(field):
                    position += 1
                    if take("(") {
                        let arguments = try list(until: ")")
                        result = try call(field, target: result, arguments, begin..<end, name.span)
                    } else {
                        result = try node(
                            .select(result, field: field), begin..<name.span.upperBound,
                            spot: name.span, over: result)
                    }
                default:
                    throw unexpected("a field or function name")
                }
            } else if isSymbol("[") {
                let spot = token.span
                position += 1
                let index = try expression()
                try expect("]")
                result = try node(
                    .index(result, index), begin..<end, spot: spot, over: result, index)
            } else if isSymbol("{"), case .identifier = result.kind {
                throw ExpressionFault("messages are not supported", at: token.span)
            } else if isSymbol("{"), case .select = result.kind {
                throw ExpressionFault("messages are not supported", at: token.span)
            } else {
                return result
            }
        }
    }

    /// The end of the token before this one.
    private var end: Int { position > 0 ? tokens[position - 1].span.upperBound : 0 }

    private mutating func primary() throws(ExpressionFault) -> Syntax {
        let start = token
        position += 1
        switch start.kind {
        case .int(let magnitude):
            guard let magnitude, let value = Int64(exactly: magnitude) else {
                throw ExpressionFault("the number does not fit in an int (64 bits)", at: start.span)
            }
            return try node(.literal(.int(value)), start.span)
        case .uint(let magnitude):
            guard let magnitude else {
                throw ExpressionFault("the number does not fit in a uint (64 bits)", at: start.span)
            }
            return try node(.literal(.uint(magnitude)), start.span)
        case .double(let value):
            return try node(.literal(.double(value)), start.span)
        case .string(let value):
            return try node(.literal(.string(value)), start.span)
        case .bytes(let value):
            return try node(.literal(.bytes(value)), start.span)
        case .identifier(let name):
            return try identifier(name, start.span, isRooted: false)
        case .symbol("."):
            guard case .identifier(let name) = token.kind else { throw unexpected("a name") }
            let span = start.span.lowerBound..<token.span.upperBound
            position += 1
            return try identifier(name, span, isRooted: true)
        case .symbol("("):
            let inner = try expression()
            try expect(")")
            // The parentheses belong to the expression's span, not to the tree.
            return Syntax(
                inner.kind, span: start.span.lowerBound..<end, spot: inner.spot, depth: inner.depth)
        case .symbol("["):
            let elements = try list(until: "]")
            return try node(
                .list(elements), start.span.lowerBound..<end, spot: start.span, over: elements)
        case .symbol("{"):
            return try mapLiteral(start.span)
        default:
            position -= 1
            throw unexpected("a value")
        }
    }

    private mutating func identifier(
        _ name: String, _ span: Range<Int>, isRooted: Bool
    ) throws(ExpressionFault) -> Syntax {
        if !isRooted {
            switch name {
            case "true": return try node(.literal(.bool(true)), span)
            case "false": return try node(.literal(.bool(false)), span)
            case "null": return try node(.literal(.null), span)
            default: break
            }
        }
        guard !Self.keywords.contains(name) else {
            position -= 1
            throw unexpected("a value")
        }
        guard !Self.reserved.contains(name) else {
            throw ExpressionFault("'\(name)' is a reserved word and cannot be a name", at: span)
        }
        guard take("(") else { return try node(.identifier(name, isRooted: isRooted), span) }
        let arguments = try list(until: ")")
        return try call(name, target: nil, arguments, span.lowerBound..<end, span)
    }

    private mutating func list(until close: String) throws(ExpressionFault) -> [Syntax] {
        var elements: [Syntax] = []
        while !take(close) {
            elements.append(try expression())
            if take(close) { break }
            try expect(",")
            // A trailing comma is allowed in a list, not among arguments.
            if close == ")", isSymbol(close) { throw unexpected("an argument") }
        }
        return elements
    }

    private mutating func mapLiteral(_ open: Range<Int>) throws(ExpressionFault) -> Syntax {
        var entries: [(key: Syntax, value: Syntax)] = []
        while !take("}") {
            let key = try expression()
            try expect(":")
            entries.append((key, try expression()))
            if take("}") { break }
            try expect(",")
        }
        return try node(
            .map(entries), open.lowerBound..<end, spot: open,
            over: entries.map(\.key) + entries.map(\.value))
    }

    // MARK: Macros

    private mutating func call(
        _ name: String, target: Syntax?, _ arguments: [Syntax], _ span: Range<Int>,
        _ spot: Range<Int>
    ) throws(ExpressionFault) -> Syntax {
        if name == "matches", target != nil ? arguments.count == 1 : arguments.count == 2 {
            throw ExpressionFault(
                "'matches' is not supported: no regular expressions on user input", at: spot)
        }
        if target == nil, name == "has", arguments.count == 1 {
            switch arguments[0].kind {
            case .select(let operand, let field):
                return try node(
                    .has(operand, field: field), span, spot: arguments[0].spot, over: operand)
            case .identifier:
                return try node(
                    .has(arguments[0], field: nil), span, spot: arguments[0].spot,
                    over: arguments[0])
            default:
                throw ExpressionFault(
                    "has() takes a name or a field, as in has(account.age_hours)",
                    at: arguments[0].span)
            }
        }
        guard let target, let kind = Self.macro(name),
            arguments.count == 2 || (kind == .map && arguments.count == 3)
        else {
            return try node(
                .call(name, target: target, arguments), span, spot: spot,
                over: (target.map { [$0] } ?? []) + arguments)
        }
        guard case .identifier(let variable, isRooted: false) = arguments[0].kind else {
            throw ExpressionFault(
                "\(name)() takes a plain name as its variable", at: arguments[0].span)
        }
        let predicate: Syntax? =
            kind == .map ? (arguments.count == 3 ? arguments[1] : nil) : arguments[1]
        let transform: Syntax? = kind == .map ? arguments[arguments.count - 1] : nil
        return try node(
            .comprehension(
                kind, range: target, variable: variable, predicate: predicate, transform: transform),
            span,
            spot: spot, over: [target] + arguments.dropFirst())
    }

    private static func macro(_ name: String) -> ComprehensionKind? {
        name == "existsOne" ? .existsOne : ComprehensionKind(rawValue: name)
    }
}

/// Words that have a meaning in every expression.
package enum ExpressionWords {
    static let keywords: Set<String> = ["true", "false", "null", "in"]

    /// Whether a name cannot be written in an expression, not even after a dot.
    package static func isKeyword(_ name: String) -> Bool { keywords.contains(name) }
}
