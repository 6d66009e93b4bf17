// The parameters of an authorization request as received: each at most once, within limits. Pure.

import Support

/// The parameters of a request to `/auth/authorize`, from a query or a form. One without a value
/// counts as absent (RFC 6749 section 3.1). Prints nothing: `login_hint` may be an address.
package struct AuthorizationParameters: Sendable {
    /// Longest query or form, in octets.
    package static let maximumLength = 32_768
    /// Most parameters, unknown ones included.
    package static let maximumCount = 100

    private var values: [WireText: WireText] = [:]
    /// Names that occur more than once: their values are ignored (RFC 6749 section 3.1).
    package private(set) var repeated: Set<WireText> = []

    /// Reads a query or a form. Nil for broken escapes, text that is not UTF-8, or what exceeds the
    /// limits: such a request does not even identify its client.
    package init?(_ octets: some Collection<UInt8>) {
        guard octets.count <= Self.maximumLength,
            let pairs = FormEncoding.pairs(octets, maximum: Self.maximumCount)
        else {
            return nil
        }
        self.init(pairs)
    }

    /// From decoded names and values.
    package init(_ pairs: [(name: WireText, value: WireText)]) {
        for (name, value) in pairs where values.updateValue(value, forKey: name) != nil {
            repeated.insert(name)
        }
    }

    /// The only `client_id`, which may be any text.
    package var clientID: String? { self["client_id"]?.text }

    /// The value of a parameter that occurs once; nil if it is absent, empty or repeated.
    package subscript(name: WireText) -> WireText? {
        guard !repeated.contains(name), let value = values[name], !value.isEmpty else { return nil }
        return value
    }

    /// The words of a space-separated list; empty if the parameter is absent.
    func words(_ name: WireText) -> [WireText] {
        self[name]?.words ?? []
    }
}

extension AuthorizationParameters: CustomStringConvertible, CustomReflectable {
    package var description: String { "<parameters>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
