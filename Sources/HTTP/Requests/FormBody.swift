// Bodies of type application/x-www-form-urlencoded, read strictly.

import Support

/// The parameters of a form. One without a value counts as absent (RFC 6749 section 3.1);
/// unknown names are ignored.
package struct FormBody: Sendable {
    private var values: [WireText: WireText] = [:]
    /// The octets as received.
    package private(set) var octets: [UInt8] = []

    /// The body of a request without a form.
    package init() {}

    /// Reads a body. Throws `Problem` (400) for a parameter that occurs twice, a broken escape,
    /// text that is not UTF-8, too long a name, or too many parameters.
    package init(_ octets: some Collection<UInt8>, maximum: Int) throws {
        guard octets.split(separator: UInt8(ascii: "&")).count <= maximum else {
            throw Problem.malformed("there are more than \(maximum) parameters")
        }
        guard let pairs = FormEncoding.pairs(octets, maximum: maximum) else {
            throw Problem.malformed("the body is not valid application/x-www-form-urlencoded")
        }
        self.octets = Array(octets)
        for (name, value) in pairs {
            guard values.updateValue(value, forKey: name) == nil else {
                throw Problem.malformed("a parameter is given twice")
            }
        }
    }

    /// The names of its parameters.
    package var names: some Collection<WireText> { values.keys }

    /// The value; nil if it is absent or empty.
    package subscript(name: WireText) -> WireText? {
        values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The value. Throws `Problem` (400) if it is absent or empty.
    package func required(_ name: WireText) throws -> WireText {
        guard let value = self[name] else { throw Problem.malformed("\(name.text) is missing") }
        return value
    }
}
