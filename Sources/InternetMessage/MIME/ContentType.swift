// Content-Type (RFC 2045 section 5) and Content-Disposition (RFC 2183).

/// A media type with its parameters.
package struct ContentType: Sendable, Hashable {
    /// The type in lower case: `text`.
    package var type: String
    /// The subtype in lower case: `plain`.
    package var subtype: String
    package var parameters: MIMEParameters
    /// The defects that were tolerated.
    package var defects: Set<ParameterDefect>

    package init(_ type: String, _ subtype: String, _ parameters: MIMEParameters = MIMEParameters())
    {
        self.type = type.asciiLowercased
        self.subtype = subtype.asciiLowercased
        self.parameters = parameters
        defects = []
    }

    /// `text/plain; charset=us-ascii`: the type of a part without Content-Type (RFC 2045 section
    /// 5.2).
    package static let plainText = ContentType(
        "text", "plain",
        MIMEParameters([MIMEParameter(name: "charset", bytes: Array("us-ascii".utf8))]))

    /// `message/rfc822`: the type of a part of multipart/digest without Content-Type (RFC 2046
    /// section 5.1.5).
    package static let message = ContentType("message", "rfc822")

    /// Reads the raw value of the field. Never fails: a value without type and subtype is
    /// `plainText` with `.invalidValue`.
    package static func parse(_ value: ArraySlice<UInt8>) -> ContentType {
        let unfolded = HeaderField.unfold(value)
        var parser = ParameterParser(unfolded[...])
        let type = parser.token()
        let hasSlash = !type.isEmpty && parser.take(UInt8(ascii: "/"))
        let subtype = hasSlash ? parser.token() : []
        guard hasSlash, !subtype.isEmpty, type.allSatisfy(\.isTokenText),
            subtype.allSatisfy(\.isTokenText)
        else {
            var result = plainText
            // Parameters are still read, as another program might use a boundary among them.
            let raw = parser.parameters()
            result.parameters = MIMEParameters.join(raw, &parser.defects)
            result.defects = parser.defects.union([.invalidValue])
            return result
        }
        let raw = parser.parameters()
        var result = ContentType(
            String(decoding: type, as: UTF8.self), String(decoding: subtype, as: UTF8.self))
        result.parameters = MIMEParameters.join(raw, &parser.defects)
        result.defects = parser.defects
        return result
    }

    /// Reads a value; see the version for octets.
    package static func parse(_ value: String) -> ContentType { parse(Array(value.utf8)[...]) }

    /// Whether type and subtype are these; compared in lower case. `*` as subtype matches any.
    package func matches(_ type: String, _ subtype: String = "*") -> Bool {
        self.type.hasSameOctets(as: type)
            && (subtype.hasSameOctets(as: "*") || self.subtype.hasSameOctets(as: subtype))
    }

    /// The `charset` parameter in lower case, without the apostrophes and spaces that some programs
    /// put around it; nil if there is none.
    package var charset: String? {
        parameters["charset"].map { label in
            let octets = label.utf8
            func isAround(_ octet: UInt8) -> Bool {
                octet == UInt8(ascii: "'") || octet == 0x20 || octet == 0x09
            }
            guard octets.first.map(isAround) == true || octets.last.map(isAround) == true else {
                return label.asciiLowercased
            }
            guard let first = octets.firstIndex(where: { !isAround($0) }),
                let last = octets.lastIndex(where: { !isAround($0) })
            else { return "" }
            return String(label[first...last]).asciiLowercased
        }
    }

    /// The octets of the `boundary` parameter; nil if there is none.
    package var boundary: [UInt8]? { parameters.first("boundary")?.bytes }

    /// The value as text without folds: `type/subtype; name=value; …`.
    package var serialized: String { type + "/" + subtype + parameters.serialized }
}

/// A disposition with its parameters (RFC 2183).
package struct ContentDisposition: Sendable, Hashable {
    /// The disposition in lower case: `inline`, `attachment` or another.
    package var disposition: String
    package var parameters: MIMEParameters
    /// The defects that were tolerated.
    package var defects: Set<ParameterDefect>

    package init(_ disposition: String, _ parameters: MIMEParameters = MIMEParameters()) {
        self.disposition = disposition.asciiLowercased
        self.parameters = parameters
        defects = []
    }

    /// Reads the raw value of the field. Never fails: a value without a disposition is `attachment`
    /// (RFC 2183 section 2.8) with `.invalidValue`.
    package static func parse(_ value: ArraySlice<UInt8>) -> ContentDisposition {
        let unfolded = HeaderField.unfold(value)
        var parser = ParameterParser(unfolded[...])
        let token = parser.token()
        let isValid = !token.isEmpty && token.allSatisfy(\.isTokenText)
        let raw = parser.parameters()
        var result = ContentDisposition(
            isValid ? String(decoding: token, as: UTF8.self) : "attachment")
        result.parameters = MIMEParameters.join(raw, &parser.defects)
        result.defects = parser.defects
        if !isValid { result.defects.insert(.invalidValue) }
        return result
    }

    /// Reads a value; see the version for octets.
    package static func parse(_ value: String) -> ContentDisposition {
        parse(Array(value.utf8)[...])
    }

    /// The `filename` parameter, decoded; nil if there is none.
    package var filename: String? { parameters["filename"] }

    /// The value as text without folds.
    package var serialized: String { disposition + parameters.serialized }
}
