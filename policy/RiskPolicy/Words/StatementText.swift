// Statements as the clauses after "when". How clauses are joined can be read in one way only.
//
//   facts alone        A, B and C              A, B or C
//   "or" within "and"  A, and either B or C
//   "and" within "or"  A and B, or C
//   deeper             in parentheses, by the same rules

import CEL

extension StatementReader {
    /// The clauses; nil for a statement that is always or never true.
    func text(_ statement: Statement) -> String? {
        if case .always = statement { return nil }
        return joined(statement)
    }

    private func joined(_ statement: Statement) -> String {
        switch statement {
        case .always(let bool): return bool ? "in every case" : "in no case"
        case .fact(let fact): return words.text(fact) ?? "`\(expression.text)` is true"
        case .conditional(let condition, let yes, let no): return "(\(choice(condition, yes, no)))"
        case .all(let parts):
            guard parts.contains(where: isChoice) else { return flat(parts, "and") }
            return parts.map { part in
                guard case .any(let inner) = part else { return group(part) }
                return inner.allSatisfy(isPlain)
                    ? "either \(flat(inner, "or"))" : "(\(joined(part)))"
            }.joined(separator: ", and ")
        case .any(let parts):
            guard parts.contains(where: { if case .all = $0 { true } else { isWide($0) } }) else {
                return flat(parts, "or")
            }
            return parts.map { part in
                guard case .all(let inner) = part else { return group(part) }
                return inner.allSatisfy(isPlain) ? flat(inner, "and") : "(\(joined(part)))"
            }.joined(separator: ", or ")
        }
    }

    private func choice(_ condition: Statement, _ yes: Statement, _ no: Statement) -> String {
        var words = "if \(joined(condition)): \(joined(yes)); otherwise"
        if case .conditional(let next, let then, let last) = no {
            words += ", \(choice(next, then, last))"
        } else {
            words += ": \(joined(no))"
        }
        return words
    }

    private func flat(_ parts: [Statement], _ word: String) -> String {
        NumberWords.list(parts.map(group), word)
    }

    private func group(_ part: Statement) -> String {
        switch part {
        case .all, .any: "(\(joined(part)))"
        default: joined(part)
        }
    }

    private func isPlain(_ part: Statement) -> Bool {
        switch part {
        case .fact(let fact): !words.isCompound(fact)
        case .conditional, .always: true
        case .all, .any: false
        }
    }

    /// A choice between clauses, or a fact that contains one.
    private func isChoice(_ part: Statement) -> Bool {
        if case .any = part { return true }
        return isWide(part)
    }

    private func isWide(_ part: Statement) -> Bool {
        if case .fact(let fact) = part { return words.isCompound(fact) }
        return false
    }
}
