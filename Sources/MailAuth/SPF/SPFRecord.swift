// The SPF record (RFC 7208 sections 4.6 and 12), parsed completely before anything is evaluated.

import InternetMessage
import Support

/// A parsed record.
struct SPFRecord: Sendable {
    enum Mechanism: Sendable {
        case all
        case include(SPFMacroString)
        case a(SPFMacroString?, prefix4: Int, prefix6: Int)
        case mx(SPFMacroString?, prefix4: Int, prefix6: Int)
        case ptr(SPFMacroString?)
        case ip4([UInt8], prefix: Int)
        case ip6([UInt8], prefix: Int)
        case exists(SPFMacroString)
    }

    struct Directive: Sendable {
        /// The result if the mechanism matches.
        let result: SPFResult
        let mechanism: Mechanism
        /// The term as written in the record, for reasons.
        let text: String
    }

    struct Redirect: Sendable {
        let target: SPFMacroString
        let text: String
    }

    /// A term that violates the grammar, or a modifier that occurs twice.
    struct SyntaxError: Error, Sendable, Hashable {
        /// The term, printable.
        let term: String
    }

    /// Recently read records.
    static let parsed = ParsedRecords<Result<SPFRecord, SyntaxError>> { text in
        do throws(SyntaxError) { return .success(try SPFRecord(parsing: text)) } catch {
            return .failure(error)
        }
    }

    private(set) var directives: [Directive] = []
    private(set) var redirect: Redirect?
    private(set) var explanation: SPFMacroString?

    /// Whether a TXT record is an SPF record: `v=spf1`, then a space or the
    /// end (RFC 7208 section 4.5).
    static func isSPF(_ text: [UInt8]) -> Bool {
        let version = "v=spf1".utf8
        guard text.count >= version.count,
            zip(text, version).allSatisfy({ $0.asciiLowercased == $1 })
        else { return false }
        return text.count == version.count || text[version.count] == 0x20
    }

    /// Parses a text for which `isSPF` holds.
    init(parsing text: [UInt8]) throws(SyntaxError) {
        for term in text.dropFirst(6).split(separator: 0x20) {
            guard try add(term) else { throw SyntaxError(term: Self.printable(term)) }
        }
    }

    /// Reads one term; false for a syntax error.
    private mutating func add(_ term: ArraySlice<UInt8>) throws(SyntaxError) -> Bool {
        // The first of `:`, `/` and `=` distinguishes a modifier from a directive, as `=` never
        // follows the name of a mechanism.
        let mark = term.firstIndex {
            $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/")
        }
        if let mark, term[mark] == UInt8(ascii: "=") {
            return addModifier(name: term[..<mark], value: term[(mark + 1)...], term: term)
        }
        var rest = term
        var result = SPFResult.pass
        switch rest.first {
        case UInt8(ascii: "+"): rest = rest.dropFirst()
        case UInt8(ascii: "-"): (result, rest) = (.fail, rest.dropFirst())
        case UInt8(ascii: "~"): (result, rest) = (.softfail, rest.dropFirst())
        case UInt8(ascii: "?"): (result, rest) = (.neutral, rest.dropFirst())
        default: break
        }
        let name = String(
            decoding: rest[..<(mark ?? rest.endIndex)].map(\.asciiLowercased), as: UTF8.self)
        guard let mechanism = Self.mechanism(name, argument: mark.map { rest[$0...] } ?? []) else {
            return false
        }
        directives.append(
            Directive(result: result, mechanism: mechanism, text: Self.printable(term)))
        return true
    }

    private mutating func addModifier(
        name: ArraySlice<UInt8>, value: ArraySlice<UInt8>, term: ArraySlice<UInt8>
    ) -> Bool {
        guard let first = name.first, first.isASCIILetter,
            name.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit || "-_.".utf8.contains($0) })
        else { return false }
        switch String(decoding: name.map(\.asciiLowercased), as: UTF8.self) {
        case "redirect":
            guard redirect == nil, let target = SPFMacroString.domainSpec(value) else {
                return false
            }
            redirect = Redirect(target: target, text: Self.printable(term))
        case "exp":
            guard explanation == nil, let target = SPFMacroString.domainSpec(value) else {
                return false
            }
            explanation = target
        default:
            guard SPFMacroString(value, in: .term) != nil else { return false }
        }
        return true
    }

    /// - Parameter argument: the text from the first `:` or `/`; empty if there is none.
    private static func mechanism(_ name: String, argument: ArraySlice<UInt8>) -> Mechanism? {
        let colon = UInt8(ascii: ":")
        switch name {
        case "all": return argument.isEmpty ? .all : nil
        case "include", "exists":
            guard argument.first == colon,
                let domain = SPFMacroString.domainSpec(argument.dropFirst())
            else { return nil }
            return name == "include" ? .include(domain) : .exists(domain)
        case "ptr":
            if argument.isEmpty { return .ptr(nil) }
            guard argument.first == colon,
                let domain = SPFMacroString.domainSpec(argument.dropFirst())
            else { return nil }
            return .ptr(domain)
        case "a", "mx":
            guard let (rest, prefix4, prefix6) = dualPrefix(argument) else { return nil }
            var domain: SPFMacroString?
            if !rest.isEmpty {
                guard rest.first == colon, let parsed = SPFMacroString.domainSpec(rest.dropFirst())
                else { return nil }
                domain = parsed
            }
            return name == "a"
                ? .a(domain, prefix4: prefix4, prefix6: prefix6)
                : .mx(domain, prefix4: prefix4, prefix6: prefix6)
        case "ip4", "ip6":
            guard argument.first == colon else { return nil }
            var network = argument.dropFirst()
            let width = name == "ip4" ? 32 : 128
            var prefix = width
            if let slash = network.firstIndex(of: UInt8(ascii: "/")) {
                guard let number = Self.prefix(network[(slash + 1)...], maximum: width) else {
                    return nil
                }
                prefix = number
                network = network[..<slash]
            }
            if name == "ip4" { return IPAddress.ipv4(network).map { .ip4($0, prefix: prefix) } }
            return IPAddress.ipv6(network).map { .ip6($0, prefix: prefix) }
        default: return nil
        }
    }

    /// Removes dual-cidr-length from the end: `[/n][//m]`. Nil if a length is out of
    /// range or has a leading zero.
    private static func dualPrefix(
        _ text: ArraySlice<UInt8>
    ) -> (rest: ArraySlice<UInt8>, Int, Int)? {
        let slash = UInt8(ascii: "/")
        var (rest, prefix4, prefix6) = (text, 32, 128)
        func digitsAtEnd() -> ArraySlice<UInt8> {
            rest.suffix(while: { (0x30...0x39).contains($0) })
        }
        var digits = digitsAtEnd()
        if !digits.isEmpty, rest[..<digits.startIndex].suffix(2).elementsEqual([slash, slash]) {
            guard let number = prefix(digits, maximum: 128) else { return nil }
            prefix6 = number
            rest = rest[..<(digits.startIndex - 2)]
            digits = digitsAtEnd()
        }
        if !digits.isEmpty, rest[..<digits.startIndex].last == slash {
            guard let number = prefix(digits, maximum: 32) else { return nil }
            prefix4 = number
            rest = rest[..<(digits.startIndex - 1)]
        }
        return (rest, prefix4, prefix6)
    }

    /// `0`, or digits without a leading zero, up to a maximum.
    private static func prefix(_ digits: ArraySlice<UInt8>, maximum: Int) -> Int? {
        guard (1...3).contains(digits.count),
            digits.count == 1 || digits.first != UInt8(ascii: "0"),
            digits.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        let number = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return number <= maximum ? number : nil
    }

    /// Maximum octets of a term that a reason quotes.
    private static let quotedLength = 100

    private static func printable(_ term: ArraySlice<UInt8>) -> String {
        DomainName.printable(term.prefix(quotedLength))
    }
}

extension ArraySlice where Element == UInt8 {
    /// The longest suffix in which all octets satisfy the predicate.
    fileprivate func suffix(while predicate: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        var start = endIndex
        while start > startIndex, predicate(self[start - 1]) { start -= 1 }
        return self[start...]
    }
}
