// Converts AddrSpec to and from its written form: envelope (RFC 5321 section 4.1.2, RFC 6531) and
// header (RFC 5322 section 3.4.1).

import Support

/// The argument of MAIL FROM (RFC 5321 section 4.1.2).
package enum ReversePath: Sendable, Hashable {
    /// `<>`: the message is a report, and must not be answered with a report.
    case null
    case address(AddrSpec)

    /// The address; nil for `<>`.
    package var address: AddrSpec? {
        if case .address(let address) = self { address } else { nil }
    }
}

extension AddrSpec {
    /// Longest local part that every SMTP program must accept, in octets of the wire form (RFC
    /// 5321 section 4.5.3.1.1).
    package static let maximumLocalPartLength = 64
    /// Longest path with its angle brackets (RFC 5321 section 4.5.3.1.3).
    package static let maximumPathLength = 256
    /// Longest envelope address that is read, in octets: more than an SMTP command line needs.
    /// Longer ones are nil.
    package static let maximumEnvelopeLength = 2048

    /// Reads a Mailbox as it appears in an SMTP envelope, without brackets: `local@domain`,
    /// `"quoted local"@domain`, `local@[1.2.3.4]`.
    ///
    /// UTF-8 is accepted in both parts (RFC 6531). There are two departures from RFC 5321.
    /// Underscores in domains are accepted, as they are in use. Local parts of over 64 octets are
    /// accepted too, as VERP makes them and Postfix delivers them; see `fitsSMTPLimits`. White
    /// space, comments, control characters and everything else outside the grammar give nil.
    package init?(envelope text: some Collection<UInt8>) {
        guard
            let parsed = EnvelopeReader.mailbox(
                Array(text.prefix(Self.maximumEnvelopeLength + 1))[...])
        else { return nil }
        self = parsed
    }

    /// Reads a Mailbox as it appears in an SMTP envelope; see `init(envelope:)` for octets.
    package init?(envelope text: String) { self.init(envelope: text.utf8) }

    /// Reads `<a@b>`, `<>`, `a@b` or an empty text as a reverse-path; a source route `<@a,@b:c@d>`
    /// is dropped (RFC 5321 appendix C). Nil if malformed.
    package static func parseReversePath(_ text: some Collection<UInt8>) -> ReversePath? {
        let path = Array(text.prefix(maximumEnvelopeLength + 1))[...]
        guard let inner = EnvelopeReader.unbracketed(path) else { return nil }
        if inner.isEmpty { return .null }
        return EnvelopeReader.mailbox(inner).map(ReversePath.address)
    }

    /// Reads a reverse-path; see the version for octets.
    package static func parseReversePath(_ text: String) -> ReversePath? {
        parseReversePath(text.utf8)
    }

    /// Reads `<a@b>` or `a@b` as a forward-path; a source route is dropped.
    /// Nil if malformed or empty.
    package static func parseForwardPath(_ text: some Collection<UInt8>) -> AddrSpec? {
        parseReversePath(text)?.address
    }

    /// Reads a forward-path; see the version for octets.
    package static func parseForwardPath(_ text: String) -> AddrSpec? {
        parseReversePath(text)?.address
    }

    /// Whether the local part is a dot-atom, so that it needs no quotes.
    package var isDotAtom: Bool { Self.isDotAtom(localPart.utf8) }

    /// Whether the domain is a domain literal `[…]`.
    package var isDomainLiteral: Bool { domain.utf8.first == UInt8(ascii: "[") }

    /// Whether every octet of the wire form is ASCII; if not, the address needs SMTPUTF8.
    package var isASCII: Bool {
        localPart.utf8.allSatisfy { $0 < 0x80 } && domain.utf8.allSatisfy { $0 < 0x80 }
    }

    /// Whether local part (64), domain (255) and path (256 with brackets) keep within
    /// RFC 5321 section 4.5.3.1.
    package var fitsSMTPLimits: Bool {
        let local = wireLocalPart.utf8.count
        let name = domain.utf8.count
        return local <= Self.maximumLocalPartLength && name <= DomainName.maximumLength
            && local + name + 3 <= Self.maximumPathLength
    }

    /// `local-part@domain` as written in header and envelope, without brackets. The local part is
    /// quoted only if it must be.
    ///
    /// NUL, CR and LF cannot be written and are left out, so that no address can end a line.
    package var wireForm: String {
        guard domain.utf8.contains(where: { $0 == 0 || $0 == 0x0D || $0 == 0x0A }) else {
            return wireLocalPart + "@" + domain
        }
        return wireLocalPart + "@"
            + String(
                decoding: domain.utf8.filter { $0 != 0 && $0 != 0x0D && $0 != 0x0A }, as: UTF8.self)
    }

    private var wireLocalPart: String {
        if isDotAtom { return localPart }
        return Self.quoted(localPart.utf8.filter { $0 != 0 && $0 != 0x0D && $0 != 0x0A })
    }

    /// A quoted-string (RFC 5322 section 3.2.4).
    static func quoted(_ octets: some Sequence<UInt8>) -> String {
        var quoted: [UInt8] = [UInt8(ascii: "\"")]
        for octet in octets {
            if octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "\\") {
                quoted.append(UInt8(ascii: "\\"))
            }
            quoted.append(octet)
        }
        quoted.append(UInt8(ascii: "\""))
        return String(decoding: quoted, as: UTF8.self)
    }

    /// The same address with its domain in lower-case A-labels (`DomainName.toASCII`); domain
    /// literals in lower case. Nil if the domain is not valid.
    package var normalized: AddrSpec? {
        if isDomainLiteral { return AddrSpec(localPart: localPart, domain: domain.asciiLowercased) }
        return DomainName.toASCII(domain).map { AddrSpec(localPart: localPart, domain: $0) }
    }

    static func isDotAtom(_ text: some Collection<UInt8>) -> Bool {
        var isAfterAtom = false
        for octet in text {
            if octet == UInt8(ascii: ".") {
                guard isAfterAtom else { return false }
                isAfterAtom = false
            } else {
                guard octet.isAtomText else { return false }
                isAfterAtom = true
            }
        }
        return isAfterAtom
    }
}

extension AddrSpec: CustomStringConvertible {
    /// The wire form. Never log an address that may be a user's; `InboxAddress` is the type for
    /// those.
    package var description: String { wireForm }
}

/// The grammar of RFC 5321 section 4.1.2.
private enum EnvelopeReader {
    /// The path without brackets and source route; nil if brackets do not match.
    static func unbracketed(_ path: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard path.first == UInt8(ascii: "<") else {
            return path.last == UInt8(ascii: ">") ? nil : path
        }
        guard path.count >= 2, path.last == UInt8(ascii: ">") else { return nil }
        let inner = path.dropFirst().dropLast()
        guard inner.first == UInt8(ascii: "@") else { return inner }
        // A-d-l ":" with A-d-l = At-domain *("," At-domain)
        guard let colon = inner.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        for hop in inner[..<colon].split(
            separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        {
            guard hop.first == UInt8(ascii: "@"), isDomain(hop.dropFirst()) else { return nil }
        }
        let address = inner[(colon + 1)...]
        return address.isEmpty ? nil : address
    }

    static func mailbox(_ text: ArraySlice<UInt8>) -> AddrSpec? {
        guard text.count <= AddrSpec.maximumEnvelopeLength,
            let at = text.lastIndex(of: UInt8(ascii: "@")), text.isValidUTF8,
            let local = localPart(text[..<at])
        else { return nil }
        let domain = text[(at + 1)...]
        guard domain.first == UInt8(ascii: "[") ? AddressLiteral.isValid(domain) : isDomain(domain)
        else { return nil }
        return AddrSpec(localPart: local, domain: String(decoding: domain, as: UTF8.self))
    }

    private static func localPart(_ text: ArraySlice<UInt8>) -> String? {
        guard text.first == UInt8(ascii: "\"") else {
            return AddrSpec.isDotAtom(text) ? String(decoding: text, as: UTF8.self) : nil
        }
        guard text.count >= 2, text.last == UInt8(ascii: "\"") else { return nil }
        let inner = text.dropFirst().dropLast()
        var output = [UInt8]()
        var index = inner.startIndex
        while index < inner.endIndex {
            var octet = inner[index]
            if octet == UInt8(ascii: "\\") {
                index += 1
                guard index < inner.endIndex else { return nil }
                octet = inner[index]
            } else if octet == UInt8(ascii: "\"") {
                return nil
            }
            guard !octet.isControl else { return nil }
            output.append(octet)
            index += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// sub-domain *("." sub-domain): letters, digits, hyphens not at the ends, and underscores;
    /// U-labels (RFC 6531 section 3.3).
    private static func isDomain(_ text: ArraySlice<UInt8>) -> Bool {
        guard !text.isEmpty, text.count <= DomainName.maximumLength else { return false }
        return text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy
        { label in
            guard let first = label.first, let last = label.last, first != UInt8(ascii: "-"),
                last != UInt8(ascii: "-"),
                label.count <= DomainName.maximumLabelLength
                    || label.contains(where: { $0 >= 0x80 })
            else { return false }
            return label.allSatisfy {
                $0 >= 0x80 || $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-")
                    || $0 == UInt8(ascii: "_")
            }
        }
    }
}
