// Numbers of things, in text for people.

package enum Count {
    /// `12,345`.
    package static func text(_ number: Int) -> String {
        var digits = Array(String(number.magnitude))
        var place = digits.count - 3
        while place > 0 {
            digits.insert(",", at: place)
            place -= 3
        }
        return (number < 0 ? "-" : "") + String(digits)
    }

    /// `1 entry`, `12,345 entries`.
    /// - Parameter many: by default the word for one with an s.
    package static func text(_ number: Int, _ one: String, _ many: String? = nil) -> String {
        "\(text(number)) \(number == 1 ? one : many ?? one + "s")"
    }
}
