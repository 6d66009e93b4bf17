// Lists in Postfix's syntax: items separated by commas or white space; `{…}`
// keeps one item together.

/// Splits and joins Postfix lists.
enum PostfixList {
    /// The items of a list. Unbalanced braces end with the text.
    static func items(_ text: String) -> [String] {
        var items = [String]()
        var item = ""
        var depth = 0
        for character in text {
            if depth == 0, character == "," || character.isWhitespace {
                if !item.isEmpty { items.append(item) }
                item = ""
                continue
            }
            if character == "{" { depth += 1 }
            if character == "}" { depth = max(0, depth - 1) }
            item.append(character)
        }
        if !item.isEmpty { items.append(item) }
        return items
    }

    static func text(_ items: [String]) -> String { items.joined(separator: ", ") }

    /// The socket of a milter item: both `{ unix:/x, default_action=accept }` and
    /// `unix:/x` give `unix:/x`.
    static func milterSocket(_ item: String) -> String {
        guard item.hasPrefix("{"), item.hasSuffix("}") else { return item }
        return items(String(item.dropFirst().dropLast())).first ?? item
    }

    /// Seconds of a Postfix time (`30`, `30s`, `5m`, `2h`, `1d`, `1w`); nil for anything else.
    static func seconds(_ text: String) -> Int? {
        guard let last = text.last else { return nil }
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
        guard let unit = units[last] else { return Int(text) }
        return Int(text.dropLast()).flatMap { number in
            let (seconds, overflow) = number.multipliedReportingOverflow(by: unit)
            return overflow ? nil : seconds
        }
    }
}
