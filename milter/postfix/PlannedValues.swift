// The values of settings with references resolved, as they will be after the plan is applied, not
// as they are now.

/// Values of main.cf as written, with the changes of the plan.
struct PlannedValues {
    /// As written, by name; includes parameters that Postfix does not know
    /// but the operator defined.
    private var written: [String: String]
    /// Maximum depth of references; Postfix itself stops at 100.
    private static let maximumDepth = 10

    init(_ written: [String: String]) { self.written = written }

    mutating func set(_ name: String, to value: String) { written[name] = value }

    /// As written; empty if the parameter is not set.
    subscript(name: String) -> String { written[name] ?? "" }

    /// The items of a list with `$name`, `${name}` and `$(name)` resolved. Conditional references
    /// (`${name?…}`) stay unchanged.
    func items(of name: String) -> [String] { items(in: self[name]) }

    /// The same for the text of a list.
    func items(in text: String, depth: Int = 0) -> [String] {
        PostfixList.items(text).flatMap { item in
            guard depth < Self.maximumDepth,
                let value = Self.reference(item).flatMap({ written[$0] })
            else { return [item] }
            return items(in: value, depth: depth + 1)
        }
    }

    /// The name that an item refers to, if it is only a reference.
    private static func reference(_ item: String) -> String? {
        guard item.hasPrefix("$") else { return nil }
        var name = item.dropFirst()
        if (name.hasPrefix("{") && name.hasSuffix("}"))
            || (name.hasPrefix("(") && name.hasSuffix(")"))
        {
            name = name.dropFirst().dropLast()
        }
        let isName =
            !name.isEmpty
            && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        return isName ? String(name) : nil
    }
}
