// Our own Authentication-Results field (RFC 8601): what the signatures and envelope that we change had proved.

import InternetMessage

extension AuthenticationResults {
    /// Our field for what was found out. It names domains and never a local part, unless `mailFrom` is given.
    ///
    /// - Parameters:
    ///   - authservID: our authserv-id.
    ///   - evidence: the findings; none at all gives `none`.
    ///   - fromDomain: the domain of the header From, for `header.from`; left out where nil.
    ///   - mailFrom: the whole reverse-path, to be shown instead of its domain; nil, the default, shows the domain alone.
    /// - Returns: a field folded before each result, every value a token or a quoted-string of printable ASCII.
    package static func field(
        authservID: String, evidence: AuthenticationEvidence, fromDomain: String? = nil, mailFrom: String? = nil
    ) -> HeaderField {
        var results: [Result] = evidence.spf.map { finding in
            let address = finding.identity == .mailFrom ? mailFrom : nil
            return Result(
                method: "spf", result: finding.result.rawValue,
                properties: properties(
                    ("smtp", finding.identity == .mailFrom ? "mailfrom" : "helo", address ?? finding.domain)))
        }
        results += evidence.dkim.map { finding in
            Result(
                method: "dkim", result: finding.result.rawValue,
                properties: properties(
                    ("header", "d", finding.domain), ("header", "s", finding.selector), ("header", "a", finding.algorithm)))
        }
        if let dmarc = evidence.dmarc {
            results.append(
                Result(
                    method: "dmarc", result: dmarc.result.rawValue,
                    properties: properties(("header", "from", fromDomain ?? ""), ("policy", "dmarc", dmarc.policy))))
        }
        return AuthenticationResults(authservID: authservID, results: results).field()
    }

    /// The field in its written form; the version is written where it is not 1.
    package func field() -> HeaderField {
        var value: [UInt8] = [0x20]
        value.reserveCapacity(64 + 128 * results.count)
        Self.append(authservID, to: &value)
        if version != 1 { value += " \(version)".utf8 }
        if results.isEmpty { value += "; none".utf8 }
        for result in results {
            value += ";\r\n\t".utf8
            value += result.method.utf8
            if result.methodVersion != 1 { value += "/\(result.methodVersion)".utf8 }
            value.append(UInt8(ascii: "="))
            value += result.result.utf8
            if let reason = result.reason {
                value += " reason=".utf8
                Self.append(reason, to: &value)
            }
            for property in result.properties {
                value.append(0x20)
                value += property.ptype.utf8
                value.append(UInt8(ascii: "."))
                value += property.property.utf8
                value.append(UInt8(ascii: "="))
                Self.append(property.value, to: &value)
            }
        }
        return HeaderField(name: Self.fieldName, rawValue: value)
    }

    private static func properties(_ values: (String, String, String)...) -> [Property] {
        values.filter { !$0.2.isEmpty }.map { Property(ptype: $0.0, property: $0.1, value: $0.2) }
    }

    /// Longest value that is written, in octets; what is beyond is cut, so that no line passes the 998 of RFC 5322.
    private static let maximumValue = 255

    /// Writes a token as it is; anything else as a quoted-string in which each octet outside printable ASCII is a question mark, so that
    /// neither a line break nor another result can be smuggled in.
    private static func append(_ text: String, to value: inout [UInt8]) {
        let octets = text.utf8.prefix(maximumValue)
        // RFC 2045 section 5.1.
        if !octets.isEmpty, octets.allSatisfy(\.isTokenText) {
            value += octets
            return
        }
        value.append(UInt8(ascii: "\""))
        for octet in octets {
            if octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "\\") { value.append(UInt8(ascii: "\\")) }
            value.append(octet >= 0x20 && octet < 0x7F ? octet : UInt8(ascii: "?"))
        }
        value.append(UInt8(ascii: "\""))
    }
}
