// check_host() (RFC 7208 sections 4 to 6): one check of one identity, with its counters.

import InternetMessage
import Support

/// Evaluates records. Only `include` and `redirect` recurse, and each of them uses one
/// of the ten look-ups.
struct SPFEvaluator {
    /// The explanation that the deciding record names; not yet fetched.
    struct OfferedExplanation: Sendable {
        let target: SPFMacroString
        /// `<domain>` of the deciding record.
        let domain: String
    }

    struct Verdict: Sendable {
        let result: SPFResult
        let reason: String
        var explanation: OfferedExplanation?
    }

    /// A result that ends the whole check at once: temperror or permerror.
    struct Abort: Error {
        let result: SPFResult
        let reason: String
    }

    private let address: IPAddress
    private let localPart: [UInt8]
    private let senderDomain: String
    private let helo: String
    private let resolver: any DNSResolver
    private var lookups = 0
    private var voidLookups = 0
    /// Whether the term that is being evaluated has been counted as void.
    private var termIsVoid = false
    /// The client's PTR names, at most ten, queried once.
    private var pointers: [String]?
    /// Results of forward confirmation, by name.
    private var confirmed: [String: Bool] = [:]

    init(
        address: IPAddress, localPart: [UInt8], senderDomain: String, helo: String,
        resolver: any DNSResolver
    ) {
        self.address = address
        self.localPart = localPart
        self.senderDomain = senderDomain
        self.helo = helo
        self.resolver = resolver
    }

    /// check_host() for the initial domain.
    mutating func checkHost(_ domain: String) -> Verdict {
        do throws(Abort) {
            return try evaluate(domain)
        } catch {
            return Verdict(result: error.result, reason: error.reason)
        }
    }

    /// The evaluated record of a domain; `none` if there is no record.
    private mutating func evaluate(_ domain: String) throws(Abort) -> Verdict {
        guard let record = try record(of: domain) else {
            return Verdict(
                result: .none, reason: "no SPF record at \(DomainName.printable(domain))")
        }
        var hasAll = false
        for directive in record.directives {
            termIsVoid = false
            if case .all = directive.mechanism { hasAll = true }
            if try matches(directive, domain: domain) {
                return Verdict(
                    result: directive.result, reason: describe("matched", directive.text, domain),
                    explanation: record.explanation.map {
                        OfferedExplanation(target: $0, domain: domain)
                    })
            }
        }
        guard !hasAll, let redirect = record.redirect else {
            return Verdict(
                result: .neutral,
                reason: "no term matched in the record of \(DomainName.printable(domain))")
        }
        termIsVoid = false
        try count(redirect.text, domain)
        return try evaluate(redirect.target, of: redirect.text, domain)
    }

    /// The record that `include` or `redirect` names. Its absence is a permerror (RFC 7208 sections
    /// 5.2 and 6.1).
    private mutating func evaluate(
        _ target: SPFMacroString, of term: String, _ domain: String
    ) throws(Abort) -> Verdict {
        guard let target = expand(target, domain: domain), target.utf8.contains(UInt8(ascii: "."))
        else {
            throw Abort(
                result: .permerror, reason: describe("does not name a domain", term, domain))
        }
        let verdict = try evaluate(target)
        guard verdict.result != .none else {
            throw Abort(
                result: .permerror, reason: describe("leads to no SPF record", term, domain))
        }
        return verdict
    }

    /// Selects the record and parses it; nil if there is none.
    private func record(of domain: String) throws(Abort) -> SPFRecord? {
        var name: String { DomainName.printable(domain) }
        switch SPF.select(at: domain, resolver: resolver) {
        case .record(let record, _): return record
        case .none: return nil
        case .several(let count):
            throw Abort(result: .permerror, reason: "\(count) SPF records at \(name)")
        case .syntaxError(let term):
            throw Abort(result: .permerror, reason: describe("is a syntax error", term, domain))
        case .temporaryFailure(let reason):
            throw Abort(result: .temperror, reason: "TXT \(name): \(reason)")
        }
    }

    private mutating func matches(
        _ directive: SPFRecord.Directive, domain: String
    ) throws(Abort) -> Bool {
        let text = directive.text
        switch directive.mechanism {
        case .all: return true
        case .ip4(let network, let prefix), .ip6(let network, let prefix):
            return address.matches(network, prefix: prefix)
        case .include(let target):
            try count(text, domain)
            return try evaluate(target, of: text, domain).result == .pass
        case .a(let target, let prefix4, let prefix6):
            try count(text, domain)
            guard let target = expand(target, domain: domain) else { return false }
            return try addresses(of: target, text, domain).contains {
                address.matches($0, prefix: address.isIPv4 ? prefix4 : prefix6)
            }
        case .mx(let target, let prefix4, let prefix6):
            try count(text, domain)
            guard let target = expand(target, domain: domain) else { return false }
            for exchange in try exchanges(of: target, text, domain) {
                let found = try addresses(of: exchange, text, domain).contains {
                    address.matches($0, prefix: address.isIPv4 ? prefix4 : prefix6)
                }
                if found { return true }
            }
            return false
        case .ptr(let target):
            try count(text, domain)
            guard let target = expand(target, domain: domain) else { return false }
            for name in try clientNames(text, domain) where DomainName.isEqualOrBelow(name, target)
            {
                if confirm(name) { return true }
            }
            return false
        case .exists(let target):
            try count(text, domain)
            guard let target = expand(target, domain: domain) else { return false }
            return try !ask(target, .a, text, domain).isEmpty
        }
    }

    // MARK: Queries

    /// Counts one term that queries the DNS.
    private mutating func count(_ term: String, _ domain: String) throws(Abort) {
        lookups += 1
        guard lookups <= SPF.maximumLookups else {
            throw Abort(
                result: .permerror,
                reason: describe(
                    "is beyond \(SPF.maximumLookups) terms that query the DNS", term, domain))
        }
    }

    /// Sends the queries of a term. A temporary failure ends the check; an empty answer counts as
    /// void, once for each term.
    private mutating func ask(
        _ name: String, _ type: DNSRecordType, _ term: String, _ domain: String
    ) throws(Abort)
        -> [DNSRecord]
    {
        switch resolver.query(name, type) {
        case .records(let records) where !records.isEmpty: return records
        case .temporaryFailure(let reason):
            throw Abort(
                result: .temperror,
                reason: describe("\(type.rawValue) look-up: \(reason)", term, domain))
        case .records, .noData, .nxDomain:
            try countVoid(term, domain)
            return []
        }
    }

    private mutating func countVoid(_ term: String, _ domain: String) throws(Abort) {
        guard !termIsVoid else { return }
        termIsVoid = true
        voidLookups += 1
        guard voidLookups <= SPF.maximumVoidLookups else {
            throw Abort(
                result: .permerror,
                reason: describe(
                    "is beyond \(SPF.maximumVoidLookups) terms that find nothing", term, domain))
        }
    }

    /// A or AAAA records, by the family of the client.
    private mutating func addresses(
        of name: String, _ term: String, _ domain: String
    ) throws(Abort) -> [[UInt8]] {
        try ask(name, address.isIPv4 ? .a : .aaaa, term, domain).compactMap {
            if case .address(let octets) = $0 { octets } else { nil }
        }
    }

    private mutating func exchanges(
        of name: String, _ term: String, _ domain: String
    ) throws(Abort) -> [String] {
        var found: [(UInt16, String)] = []
        for case .mx(let preference, let exchange) in try ask(name, .mx, term, domain) {
            found.append((preference, exchange))
        }
        guard found.count <= SPF.maximumExchanges else {
            throw Abort(
                result: .permerror,
                reason: describe("has more than \(SPF.maximumExchanges) exchanges", term, domain))
        }
        return found.sorted { $0.0 < $1.0 }.compactMap { DomainName.queryable($0.1) }
    }

    /// The first ten PTR names of the client; none if the look-up fails (RFC 7208 section 5.5).
    private mutating func clientNames(_ term: String, _ domain: String) throws(Abort) -> [String] {
        if let pointers { return pointers }
        var names: [String] = []
        switch resolver.query(address.reverseName, .ptr) {
        case .records(let records):
            for case .ptr(let name) in records.prefix(SPF.maximumPointers) {
                if let name = DomainName.queryable(name) { names.append(name) }
            }
        case .noData, .nxDomain: try countVoid(term, domain)
        case .temporaryFailure: break
        }
        pointers = names
        return names
    }

    /// Whether a PTR name resolves to the client. A failed look-up skips the name.
    private mutating func confirm(_ name: String) -> Bool {
        if let known = confirmed[name] { return known }
        var result = false
        if case .records(let records) = resolver.query(name, address.isIPv4 ? .a : .aaaa) {
            result = records.contains(.address(address.octets))
        }
        confirmed[name] = result
        return result
    }

    // MARK: Macros

    /// A target-name (RFC 7208 section 4.8): the expansion, truncated on the left to 253 octets, or
    /// `domain` itself without a domain-spec. Nil if the DNS cannot be queried for it: non-ASCII
    /// octets (RFC 8616 section 4), empty or long labels.
    private mutating func expand(_ target: SPFMacroString?, domain: String) -> String? {
        guard let target else { return domain }
        let limit = 2 * DomainName.maximumQueryLength
        var bytes = target.expand(limit: limit) { value(of: $0, domain: domain) }[...]
        if bytes.last == UInt8(ascii: ".") { bytes = bytes.dropLast() }
        if bytes.count > DomainName.maximumQueryLength {
            // The dot before the first label that is kept may be one octet further left.
            guard
                let dot = bytes.suffix(DomainName.maximumQueryLength + 1).firstIndex(
                    of: UInt8(ascii: "."))
            else { return nil }
            bytes = bytes[(dot + 1)...]
        }
        guard let name = String(validating: bytes, as: UTF8.self) else { return nil }
        return DomainName.queryable(name)
    }

    private mutating func value(of letter: UInt8, domain: String) -> [UInt8] {
        switch letter {
        case UInt8(ascii: "s"): localPart + [UInt8(ascii: "@")] + Array(senderDomain.utf8)
        case UInt8(ascii: "l"): localPart
        case UInt8(ascii: "o"): Array(senderDomain.utf8)
        case UInt8(ascii: "d"): Array(domain.utf8)
        case UInt8(ascii: "i"): Array(address.dotted.utf8)
        case UInt8(ascii: "p"): Array(validatedName(domain: domain).utf8)
        case UInt8(ascii: "v"): Array((address.isIPv4 ? "in-addr" : "ip6").utf8)
        case UInt8(ascii: "h"): Array(helo.utf8)
        case UInt8(ascii: "c"): Array(address.description.utf8)
        default: []
        }
    }

    /// `%{p}`: the domain itself if it is a confirmed name of the client, otherwise one below it,
    /// otherwise any, otherwise `unknown`.
    private mutating func validatedName(domain: String) -> String {
        if pointers == nil {
            // The PTR query counts against the ten (RFC 7208 section 4.6.4); beyond them there is
            // no validated name.
            guard lookups < SPF.maximumLookups else { return "unknown" }
            lookups += 1
        }
        // Errors are not thrown here: the client causes a void look-up for a macro, and an error
        // means `unknown`.
        let wasVoid = termIsVoid
        termIsVoid = true
        let names = (try? clientNames("", domain)) ?? []
        termIsVoid = wasVoid
        let below =
            names.filter { $0 == domain }
            + names.filter { $0 != domain && DomainName.isEqualOrBelow($0, domain) }
        let others = names.filter { !DomainName.isEqualOrBelow($0, domain) }
        for name in below + others where confirm(name) { return name }
        return "unknown"
    }

    /// Fetches and expands an explanation (RFC 7208 section 6.2); nil for every error, and for
    /// non-ASCII text.
    mutating func explanation(_ offered: OfferedExplanation, receiver: SPF.Receiver) -> String? {
        guard let name = expand(offered.target, domain: offered.domain),
            case .records(let records) = resolver.query(name, .txt), records.count == 1,
            case .txt(let text)? = records.first,
            let string = SPFMacroString(text[...], in: .explanation)
        else { return nil }
        let bytes = string.expand(limit: SPF.maximumExplanation) { letter in
            switch letter {
            case UInt8(ascii: "r"): Array(receiver.hostName.utf8)
            case UInt8(ascii: "t"): Array(String(receiver.time).utf8)
            default: value(of: letter, domain: offered.domain)
            }
        }
        guard bytes.count <= SPF.maximumExplanation, bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func describe(_ what: String, _ term: String, _ domain: String) -> String {
        "\(term) \(what), in the record of \(DomainName.printable(domain))"
    }
}
