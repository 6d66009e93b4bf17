// The DKIM-Signature field (RFC 6376 section 3.5), parsed and checked as far as possible
// without key and message.

import InternetMessage
import Support

enum DKIMCanonicalization: Hashable, Sendable {
    case simple, relaxed
}

struct DKIMSignature {
    /// Known, but never a proof (RFC 8301 section 3.1).
    static let weakAlgorithm = "rsa-sha1"

    /// Nil for `weakAlgorithm`.
    let algorithm: DKIMAlgorithm?
    let domain: String
    let selector: String
    let headerCanonicalization: DKIMCanonicalization
    let bodyCanonicalization: DKIMCanonicalization
    /// `h=`, lower case, in order.
    let signedNames: DKIMNameList
    let bodyHash: [UInt8]
    let signature: [UInt8]
    /// `l=` in octets.
    let bodyLength: Int64?
    let timestamp: Int64?
    let expiration: Int64?
    /// Domain of `i=`, lower case; `d=` if there is no `i=`. The local part is not kept, as it may
    /// name a person.
    let identityDomain: String
    /// The value of `b=` within the field's bytes; it is not part of the signed data (section 3.7).
    let signatureRange: Range<Int>

    init(_ field: HeaderField) throws(DKIMSyntaxError) {
        try self.init(DKIMTagList(field.rawValue))
    }

    init(_ tags: DKIMTagList) throws(DKIMSyntaxError) {
        func required(_ name: StaticString) throws(DKIMSyntaxError) -> DKIMTagList.Tag {
            guard let tag = tags[name] else { throw DKIMSyntaxError("the tag \(name)= is missing") }
            return tag
        }
        guard DKIMSyntax.equals(try required("v").value, "1") else {
            throw DKIMSyntaxError("the version is not 1")
        }
        let algorithm = try required("a").value
        self.algorithm = DKIMAlgorithm.allCases.first { algorithm.elementsEqual($0.name.utf8) }
        guard self.algorithm != nil || algorithm.elementsEqual(Self.weakAlgorithm.utf8) else {
            throw DKIMSyntaxError("the algorithm is unknown")
        }
        guard let domain = DKIMSyntax.domain(try required("d").value) else {
            throw DKIMSyntaxError("d= is not a valid domain name")
        }
        guard let selector = DKIMSyntax.domain(try required("s").value),
            selector.utf8.count + "._domainkey.".utf8.count + domain.utf8.count
                <= DomainName.maximumQueryLength
        else { throw DKIMSyntaxError("s= is not a valid selector") }
        self.domain = domain
        self.selector = selector
        let signature = try required("b")
        let bodyHash = try required("bh")
        guard let bytes = DKIMBase64.decode(signature.value) else {
            throw DKIMSyntaxError("b= is not valid base64")
        }
        guard let hash = DKIMBase64.decode(bodyHash.value) else {
            throw DKIMSyntaxError("bh= is not valid base64")
        }
        self.signature = bytes
        self.bodyHash = hash
        signatureRange = signature.range
        (headerCanonicalization, bodyCanonicalization) = try Self.canonicalization(tags["c"]?.value)
        signedNames = try Self.names(try required("h").value)
        identityDomain = try Self.identityDomain(tags["i"]?.value, within: domain)
        if let query = tags["q"],
            !DKIMSyntax.colonList(query.value).contains(where: { DKIMSyntax.equals($0, "dns/txt") })
        {
            throw DKIMSyntaxError("q= names no known query method")
        }
        bodyLength = try Self.number(tags, "l")
        // More than twelve digits are not an error but mean a time without end (section 3.5, `t=`).
        timestamp = try Self.number(tags, "t")
        expiration = try Self.number(tags, "x")
        if let timestamp, let expiration, expiration <= timestamp {
            throw DKIMSyntaxError("x= is not after t=")
        }
    }

    /// The DNS name of the key.
    var keyName: String { "\(selector)._domainkey.\(domain)" }

    private static func number(
        _ tags: DKIMTagList, _ name: StaticString
    ) throws(DKIMSyntaxError) -> Int64? {
        guard let tag = tags[name] else { return nil }
        guard let number = DKIMSyntax.number(tag.value, maximumDigits: 76) else {
            throw DKIMSyntaxError("\(name)= is not a number")
        }
        return number
    }

    private static func canonicalization(
        _ value: ArraySlice<UInt8>?
    ) throws(DKIMSyntaxError) -> (DKIMCanonicalization, DKIMCanonicalization) {
        guard let value else { return (.simple, .simple) }
        func one(_ bytes: ArraySlice<UInt8>) throws(DKIMSyntaxError) -> DKIMCanonicalization {
            if DKIMSyntax.equals(bytes, "simple") { return .simple }
            if DKIMSyntax.equals(bytes, "relaxed") { return .relaxed }
            throw DKIMSyntaxError("the canonicalization is unknown")
        }
        let slash = value.firstIndex(of: UInt8(ascii: "/"))
        let header = try one(value[..<(slash ?? value.endIndex)])
        guard let slash else { return (header, .simple) }
        return (header, try one(value[(slash + 1)...]))
    }

    private static func names(_ value: ArraySlice<UInt8>) throws(DKIMSyntaxError) -> DKIMNameList {
        guard let list = DKIMNameList(value) else {
            throw DKIMSyntaxError("h= contains no field name")
        }
        guard list.count("from") > 0 else { throw DKIMSyntaxError("h= does not cover From") }
        return list
    }

    /// `[local-part] "@" domain-name` in dkim-quoted-printable; the domain is `d=` or below it.
    private static func identityDomain(
        _ value: ArraySlice<UInt8>?, within domain: String
    ) throws(DKIMSyntaxError) -> String {
        guard let value else { return domain }
        guard let decoded = quotedPrintable(value),
            let at = decoded.lastIndex(of: UInt8(ascii: "@")),
            let identity = DKIMSyntax.domain(decoded[(at + 1)...])
        else { throw DKIMSyntaxError("i= is not a valid identity") }
        guard DomainName.isEqualOrBelow(identity, domain) else {
            throw DKIMSyntaxError("i= lies outside d=")
        }
        return identity
    }

    /// dkim-quoted-printable (section 2.11): white space is ignored, `=` and two upper-case
    /// hex digits are an octet.
    private static func quotedPrintable(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        func digit(_ octet: UInt8?) -> UInt8? {
            octet.flatMap { $0 < UInt8(ascii: "a") ? $0.hexValue : nil }
        }
        var rest = value
        func next() -> UInt8? {
            while let octet = rest.popFirst() {
                if !DKIMSyntax.isFolding(octet) { return octet }
            }
            return nil
        }
        var output = [UInt8]()
        output.reserveCapacity(value.count)
        while let octet = next() {
            guard octet == UInt8(ascii: "=") else {
                output.append(octet)
                continue
            }
            guard let high = digit(next()), let low = digit(next()) else { return nil }
            output.append(high << 4 | low)
        }
        return output
    }
}
