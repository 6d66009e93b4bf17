// Our own Authentication-Results field (RFC 8601). It records the proof by signatures and envelope
// before we change the message.

import InternetMessage

extension AuthenticationResults {
    /// Our field for these findings. It names domains and never a local part,
    /// unless `mailFrom` is given.
    ///
    /// - Parameters:
    ///   - authservID: our authserv-id.
    ///   - evidence: the findings; without findings the value is `none`.
    ///   - fromDomain: the domain of the header From, for `header.from`; left out if nil.
    ///   - mailFrom: the whole reverse-path, to show instead of its domain; nil, the default, shows
    ///     only the domain.
    /// - Returns: a field folded before each result, every value a token or a
    ///   quoted-string of printable ASCII.
    package static func field(
        authservID: String, evidence: AuthenticationEvidence, fromDomain: String? = nil,
        mailFrom: String? = nil
    ) -> HeaderField {
        var writer = Writer(authservID: authservID, version: 1)
        for finding in evidence.spf {
            let isMailFrom = finding.identity == .mailFrom
            writer.begin("spf", finding.result.rawValue)
            writer.addIfAny(
                "smtp", isMailFrom ? "mailfrom" : "helo",
                isMailFrom ? mailFrom ?? finding.domain : finding.domain)
        }
        for finding in evidence.dkim {
            writer.begin("dkim", finding.result.rawValue)
            writer.addIfAny("header", "d", finding.domain)
            writer.addIfAny("header", "s", finding.selector)
            writer.addIfAny("header", "a", finding.algorithm)
        }
        if let dmarc = evidence.dmarc {
            writer.begin("dmarc", dmarc.result.rawValue)
            writer.addIfAny("header", "from", fromDomain ?? "")
            writer.addIfAny("policy", "dmarc", dmarc.policy)
        }
        return writer.field
    }

    /// The field in its written form; the version is written if it is not 1.
    package func field() -> HeaderField {
        var writer = Writer(authservID: authservID, version: version)
        for result in results {
            writer.begin(
                result.method, result.result, version: result.methodVersion, reason: result.reason)
            for property in result.properties {
                writer.add(property.ptype, property.property, property.value)
            }
        }
        return writer.field
    }

    /// The value while it is being written.
    private struct Writer {
        private var value: [UInt8] = [0x20]
        private var isEmpty = true

        init(authservID: String, version: Int) {
            value.reserveCapacity(512)
            append(authservID)
            if version != 1 { value += " \(version)".utf8 }
        }

        /// The outcome of a method. Its properties follow.
        mutating func begin(
            _ method: String, _ result: String, version: Int = 1, reason: String? = nil
        ) {
            isEmpty = false
            value += ";\r\n\t".utf8
            value += method.utf8
            if version != 1 { value += "/\(version)".utf8 }
            value.append(UInt8(ascii: "="))
            value += result.utf8
            guard let reason else { return }
            value += " reason=".utf8
            append(reason)
        }

        mutating func addIfAny(_ ptype: String, _ property: String, _ text: String) {
            if !text.isEmpty { add(ptype, property, text) }
        }

        mutating func add(_ ptype: String, _ property: String, _ text: String) {
            value.append(0x20)
            value += ptype.utf8
            value.append(UInt8(ascii: "."))
            value += property.utf8
            value.append(UInt8(ascii: "="))
            append(text)
        }

        var field: HeaderField {
            HeaderField(
                name: AuthenticationResults.fieldName,
                rawValue: isEmpty ? value + Array("; none".utf8) : value)
        }

        /// Maximum octets of a value. The rest is cut, so that no line exceeds the 998 octets of
        /// RFC 5322.
        private static let maximumLength = 255

        /// Writes a token unchanged. Writes other text as a quoted-string, with a question mark for
        /// each octet outside printable ASCII. So the text cannot contain a line break or another
        /// result.
        private mutating func append(_ text: String) {
            let octets = text.utf8.prefix(Self.maximumLength)
            // RFC 2045 section 5.1.
            if !octets.isEmpty, octets.allSatisfy(\.isTokenText) {
                value += octets
                return
            }
            value.append(UInt8(ascii: "\""))
            for octet in octets {
                if octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "\\") {
                    value.append(UInt8(ascii: "\\"))
                }
                value.append(octet >= 0x20 && octet < 0x7F ? octet : UInt8(ascii: "?"))
            }
            value.append(UInt8(ascii: "\""))
        }
    }
}
