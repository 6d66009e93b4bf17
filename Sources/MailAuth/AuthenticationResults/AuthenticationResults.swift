// Authentication-Results (RFC 8601) as a value, and a search for fields of a message that claim to
// be ours.

import InternetMessage

/// The parsed value of one Authentication-Results field (RFC 8601 section 2.2).
package struct AuthenticationResults: Sendable, Hashable {
    /// The name of the field.
    package static let fieldName = "Authentication-Results"

    /// One `ptype.property=value` (RFC 8601 section 2.2, propspec).
    package struct Property: Sendable, Hashable {
        /// `smtp`, `header`, `body`, `policy` or another keyword; lower case.
        package let ptype: String
        /// The property, lower case.
        package let property: String
        /// The value without quotes; an address is complete here, local part included.
        package let value: String

        package init(ptype: String, property: String, value: String) {
            self.ptype = ptype
            self.property = property
            self.value = value
        }
    }

    /// The outcome of one method (RFC 8601 section 2.2, resinfo).
    package struct Result: Sendable, Hashable {
        /// `spf`, `dkim`, `dmarc` or another keyword; lower case.
        package let method: String
        /// The version of the method; 1 if none is written.
        package let methodVersion: Int
        /// The result keyword, lower case.
        package let result: String
        /// The `reason=` text without quotes.
        package let reason: String?
        /// The properties in order; the same one may occur twice.
        package let properties: [Property]

        package init(
            method: String, methodVersion: Int = 1, result: String, reason: String? = nil,
            properties: [Property] = []
        ) {
            self.method = method
            self.methodVersion = methodVersion
            self.result = result
            self.reason = reason
            self.properties = properties
        }

        /// The value of a property; nil if it is absent or occurs more than once. It is then
        /// unclear which one counts, so it proves nothing.
        package func value(_ ptype: String, _ property: String) -> String? {
            var found: String?
            for candidate in properties
            where candidate.ptype == ptype && candidate.property == property {
                guard found == nil else { return nil }
                found = candidate.value
            }
            return found
        }
    }

    /// The authserv-id without quotes, in its original letter case.
    package let authservID: String
    /// The version of the format; 1 if none is written (RFC 8601 section 2.2, authres-version).
    package let version: Int
    /// The results in order; empty for `none`.
    package let results: [Result]

    package init(authservID: String, version: Int = 1, results: [Result]) {
        self.authservID = authservID
        self.version = version
        self.results = results
    }

    /// Parses a field value by the grammar of RFC 8601 section 2.2. UTF-8 is accepted in the places
    /// of RFC 8616 section 5.
    ///
    /// - Parameter value: everything after the colon, folds included.
    /// - Returns: nil if any part of the value violates the grammar, or if it is longer than
    ///   `maximumLength`. A field that two readers could read differently proves nothing.
    package static func parse(_ value: some Collection<UInt8>) -> AuthenticationResults? {
        guard value.count <= maximumLength else { return nil }
        return Array(value).withUnsafeBufferPointer { bytes in
            var parser = AuthenticationResultsParser(bytes)
            return parser.parse()
        }
    }

    /// Longest field value that is read, in octets. No honest filter writes more, and a longer one
    /// counts as malformed.
    package static let maximumLength = 16_384

    /// Whether two authserv-ids are equal: like domain names, they compare ASCII
    /// letters case-insensitively.
    package static func sameID(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
        left.utf8.count == right.utf8.count
            && zip(left.utf8, right.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }

    /// The fields that must be removed from a message from outside (RFC 8601 section 5). These are
    /// all Authentication-Results fields with an authserv-id in `ids`. Fields with an unreadable
    /// authserv-id are included, since a less strict reader may take it for ours. Well-formed
    /// fields of others stay.
    ///
    /// - Returns: indices into `header.fields`, ascending.
    package static func fieldsClaiming(ids: [String], in header: HeaderSection) -> [Int] {
        header.fields.indices.filter { index in
            let field = header.fields[index]
            guard field.isNamed(fieldName) else { return false }
            let claimed = field.rawValue.withUnsafeBufferPointer { bytes in
                var parser = AuthenticationResultsParser(bytes)
                return parser.leadingIdentifier()
            }
            guard let claimed else { return true }
            return ids.contains { sameID($0, claimed) }
        }
    }
}
