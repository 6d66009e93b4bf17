// The parameters of a query or a form as received, and errors in their encoding.

import Support

/// Names and values; each name is used once.
package struct AppleParameters: Sendable {
    /// The most parameters of a request: Apple's have at most ten.
    package static let maximumCount = 50

    package let pairs: [(name: WireText, value: WireText)]

    package init(_ pairs: [(name: WireText, value: WireText)]) { self.pairs = pairs }

    /// From a query. Throws `invalid_request`.
    package init(query: some Collection<UInt8>) throws(AppleRefusal) {
        guard let pairs = FormEncoding.pairs(query, maximum: Self.maximumCount) else {
            throw AppleRefusal(.invalidRequest, "the query is not valid percent-encoded UTF-8")
        }
        self.pairs = pairs
        try requireDifferentNames()
    }

    /// From a form. Throws `invalid_request` for another media type and repeated parameters, and
    /// `invalid_client` for a form that is not percent-encoded, as Apple does.
    package init(form: some Collection<UInt8>, contentType: String?) throws(AppleRefusal) {
        let type = (contentType ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " }
        guard type == "application/x-www-form-urlencoded" else {
            throw AppleRefusal(
                .invalidRequest,
                "Content-Type is \(type.isEmpty ? "missing" : type.withoutControls(limit: 80)): "
                    + "send application/x-www-form-urlencoded")
        }
        // Octets that every encoder escapes. Some encoders leave `/` or `:`, which are accepted.
        guard form.allSatisfy({ (0x21...0x7E).contains($0) && !Self.neverPlain.contains($0) }),
            let pairs = FormEncoding.pairs(form, maximum: Self.maximumCount)
        else { throw AppleRefusal(.invalidClient, "the form is not percent-encoded") }
        self.pairs = pairs
        try requireDifferentNames()
    }

    private static let neverPlain = Set("\"<>\\^`{|}".utf8)

    /// The value; nil if absent or empty.
    package subscript(name: WireText) -> String? {
        pairs.first { $0.name == name && !$0.value.isEmpty }?.value.text
    }

    /// The value. Throws `invalid_request` if there is none.
    package func required(_ name: WireText) throws(AppleRefusal) -> String {
        guard let value = self[name] else {
            throw AppleRefusal(.invalidRequest, "\(name.text) is missing")
        }
        return value
    }

    /// Throws `invalid_request` for a parameter that is not among `names`.
    package func require(only names: Set<WireText>) throws(AppleRefusal) {
        for (name, _) in pairs where !names.contains(name) {
            throw AppleRefusal(
                .invalidRequest, "the parameter \(name.excerpt(limit: 80)) is not supported here")
        }
    }

    private func requireDifferentNames() throws(AppleRefusal) {
        var seen: Set<WireText> = []
        for (name, _) in pairs where !seen.insert(name).inserted {
            throw AppleRefusal(.invalidRequest, "\(name.excerpt(limit: 80)) is given twice")
        }
    }
}
