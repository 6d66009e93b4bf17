// The header section of a message or body part (RFC 5322 section 2.1): its fields in order.

/// An ordered list of header fields.
package struct HeaderSection: Sendable, Hashable {
    /// The fields from top to bottom.
    package var fields: [HeaderField]

    package init(_ fields: [HeaderField] = []) { self.fields = fields }

    /// The fields of this name from top to bottom.
    package func all(_ name: String) -> [HeaderField] { fields.filter { $0.isNamed(name) } }

    /// The topmost field of this name.
    package func first(_ name: String) -> HeaderField? { fields.first { $0.isNamed(name) } }
}
