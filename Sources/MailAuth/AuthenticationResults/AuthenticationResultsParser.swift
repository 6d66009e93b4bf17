// The grammar of RFC 8601 section 2.2, read strictly and in one pass.

import InternetMessage

/// Reads one field value. There is no recursion, and each octet is read only a fixed number of
/// times.
struct AuthenticationResultsParser {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// The whole of authres-payload; nil for anything outside the grammar.
    mutating func parse() -> AuthenticationResults? {
        guard let identifier = leadingIdentifier(), !identifier.isEmpty else { return nil }
        var version = 1
        let afterIdentifier = position
        guard skipCFWS() else { return nil }
        if let octet = current, octet.isASCIIDigit {
            guard position > afterIdentifier, let number = digits(), skipCFWS() else { return nil }
            version = number
        }
        var results: [AuthenticationResults.Result] = []
        guard take(";"), skipCFWS() else { return nil }
        let afterSemicolon = position
        if keyword() == "none", skipCFWS(), current == nil {
            return AuthenticationResults(authservID: identifier, version: version, results: [])
        }
        position = afterSemicolon
        while true {
            guard let result = resinfo() else { return nil }
            results.append(result)
            if current == nil { break }
            guard take(";"), skipCFWS() else { return nil }
        }
        return AuthenticationResults(authservID: identifier, version: version, results: results)
    }

    /// `[CFWS] authserv-id`: a token or a quoted-string; nil if neither follows.
    mutating func leadingIdentifier() -> String? {
        guard skipCFWS() else { return nil }
        return current == UInt8(ascii: "\"") ? quotedString() : token()
    }

    /// methodspec, reasonspec and propspecs, with the white space after them.
    private mutating func resinfo() -> AuthenticationResults.Result? {
        guard let method = keyword(), skipCFWS() else { return nil }
        var methodVersion = 1
        if take("/") {
            guard skipCFWS(), let number = digits(), skipCFWS() else { return nil }
            methodVersion = number
        }
        guard take("="), skipCFWS(), let result = keyword() else { return nil }
        var reason: String?
        var properties: [AuthenticationResults.Property] = []
        while true {
            let before = position
            guard skipCFWS() else { return nil }
            guard let octet = current, octet != UInt8(ascii: ";") else { break }
            // The grammar makes white space optional after a pvalue only
            // because the pvalue already includes it.
            guard position > before, let name = keyword(), skipCFWS() else { return nil }
            if take("=") {
                guard name == "reason", reason == nil, properties.isEmpty, skipCFWS() else {
                    return nil
                }
                reason = current == UInt8(ascii: "\"") ? quotedString() : token()
                guard reason != nil else { return nil }
                continue
            }
            guard take("."), skipCFWS(), let property = keyword(), skipCFWS(), take("="),
                skipCFWS(), let value = pvalue()
            else { return nil }
            properties.append(.init(ptype: name, property: property, value: value))
        }
        return .init(
            method: method, methodVersion: methodVersion, result: result, reason: reason,
            properties: properties)
    }

    /// `value / [[local-part] "@"] domain-name`.
    private mutating func pvalue() -> String? {
        var local: String
        if current == UInt8(ascii: "\"") {
            guard let quoted = quotedString() else { return nil }
            if current != UInt8(ascii: "@") { return quoted }
            local = quoted
        } else {
            let start = position
            var isToken = true
            while let octet = current, octet.isAtext || octet == UInt8(ascii: ".") {
                if !octet.isTokenOctet { isToken = false }
                position += 1
            }
            guard let run = utf8(start..<position) else { return nil }
            if current != UInt8(ascii: "@") { return isToken && !run.isEmpty ? run : nil }
            guard run.isEmpty || isDotAtom(start..<position) else { return nil }
            local = run
        }
        position += 1
        let start = position
        while let octet = current, octet.isDomainOctet || octet == UInt8(ascii: ".") {
            position += 1
        }
        guard isDotAtom(start..<position), let domain = utf8(start..<position) else { return nil }
        local += "@"
        return local + domain
    }

    /// Keyword: letters, digits and hyphens, not ending in a hyphen (RFC 5321 section 4.1.2,
    /// Ldh-str). Returned in lower case.
    private mutating func keyword() -> String? {
        let start = position
        while let octet = current,
            octet.isASCIILetter || octet.isASCIIDigit || octet == UInt8(ascii: "-")
        { position += 1 }
        guard position > start, bytes[position - 1] != UInt8(ascii: "-") else { return nil }
        return String(decoding: bytes[start..<position].lazy.map(\.asciiLowercased), as: UTF8.self)
    }

    /// 1*DIGIT, at most nine digits, as no version number is longer.
    private mutating func digits() -> Int? {
        let start = position
        var number = 0
        while let octet = current, octet.isASCIIDigit {
            guard position - start < 9 else { return nil }
            number = number * 10 + Int(octet - 0x30)
            position += 1
        }
        return position > start ? number : nil
    }

    /// token (RFC 2045 section 5.1).
    private mutating func token() -> String? {
        let start = position
        while let octet = current, octet.isTokenOctet { position += 1 }
        return position > start ? utf8(start..<position) : nil
    }

    /// quoted-string (RFC 5322 section 3.2.4), its content with quoted-pairs
    /// resolved and folds removed.
    private mutating func quotedString() -> String? {
        guard take("\"") else { return nil }
        var content: [UInt8] = []
        while let octet = current {
            switch octet {
            case UInt8(ascii: "\""):
                position += 1
                return String(validating: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                position += 1
                guard let escaped = current, escaped.isVisible || escaped.isBlank else {
                    return nil
                }
                content.append(escaped)
                position += 1
            case 0x0D, 0x0A:
                guard skipLineEnd() else { return nil }
            default:
                guard octet.isVisible || octet.isBlank else { return nil }
                content.append(octet)
                position += 1
            }
        }
        return nil
    }

    /// `[CFWS]`; false if a comment does not end, or a fold or an octet in it is not allowed.
    private mutating func skipCFWS() -> Bool {
        var depth = 0
        while let octet = current {
            switch octet {
            case 0x20, 0x09: position += 1
            case 0x0D, 0x0A: guard skipLineEnd() else { return false }
            case UInt8(ascii: "("):
                depth += 1
                position += 1
            case UInt8(ascii: ")") where depth > 0:
                depth -= 1
                position += 1
            case UInt8(ascii: "\\") where depth > 0:
                position += 1
                guard let escaped = current, escaped.isVisible || escaped.isBlank else {
                    return false
                }
                position += 1
            default:
                guard depth > 0 else { return true }
                guard octet.isVisible else { return false }
                position += 1
            }
        }
        return depth == 0
    }

    /// A line end that is a fold: CRLF, or a bare LF as some filters receive it, followed by white
    /// space.
    private mutating func skipLineEnd() -> Bool {
        if current == 0x0D { position += 1 }
        guard current == 0x0A else { return false }
        position += 1
        guard let next = current else { return false }
        return next.isBlank
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard current == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private func isDotAtom(_ range: Range<Int>) -> Bool {
        var atomIsEmpty = true
        for index in range {
            let isDot = bytes[index] == UInt8(ascii: ".")
            if isDot, atomIsEmpty { return false }
            atomIsEmpty = isDot
        }
        return !atomIsEmpty
    }

    private func utf8(_ range: Range<Int>) -> String? {
        String(validating: bytes[range], as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }
    /// Printable, or part of a UTF-8 sequence. UTF-8 is validated when the text is used.
    fileprivate var isVisible: Bool { self > 0x20 && self != 0x7F }

    /// atext (RFC 5322 section 3.2.3, RFC 6532 section 3.2).
    fileprivate var isAtext: Bool {
        switch self {
        case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "<"), UInt8(ascii: ">"),
            UInt8(ascii: "["), UInt8(ascii: "]"),
            UInt8(ascii: ":"), UInt8(ascii: ";"), UInt8(ascii: "@"), UInt8(ascii: "\\"),
            UInt8(ascii: ","), UInt8(ascii: "\""),
            UInt8(ascii: "."):
            false
        default: isVisible
        }
    }

    /// An octet of a token: visible, and not one of the tspecials of RFC 2045 section 5.1.
    fileprivate var isTokenOctet: Bool {
        guard self != UInt8(ascii: ".") else { return true }
        return isAtext && self != UInt8(ascii: "/") && self != UInt8(ascii: "?")
            && self != UInt8(ascii: "=")
    }

    /// An octet of a domain label; the underscore occurs in names that are not host names.
    fileprivate var isDomainOctet: Bool {
        isASCIILetter || isASCIIDigit || self == UInt8(ascii: "-") || self == UInt8(ascii: "_")
            || self >= 0x80
    }
}
