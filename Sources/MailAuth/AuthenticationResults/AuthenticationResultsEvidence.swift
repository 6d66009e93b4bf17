// Evidence from an upstream filter that the operator trusts (docs/decisions/014): its
// fields, read strictly.

import InternetMessage
import Support

extension AuthenticationResults {
    /// The supported version of the format and of each method; others are ignored (RFC
    /// 8601 sections 2.2, 2.6).
    private static let knownVersion = 1

    /// The findings of the trusted filters.
    ///
    /// *Every* Authentication-Results field with an authserv-id in `ids` counts, in any position.
    /// An upstream filter must remove foreign fields with its id (RFC 8601 section 5). Filters for
    /// SPF, DKIM and DMARC each add their own field, so the position means nothing. A field that
    /// does not parse, or has an unknown version, is ignored.
    ///
    /// A signature that passes counts as covering the whole body, unless a DKIM-Signature field of
    /// the same `d=` (and `s=`, if the filter names it) has `l=`. The filter does not report `l=`,
    /// and the sender chooses it. A pass by an algorithm that proves nothing becomes `policy`.
    package static func evidence(
        from header: HeaderSection, trusting ids: [String]
    ) -> AuthenticationEvidence {
        var evidence = AuthenticationEvidence()
        guard !ids.isEmpty else { return evidence }
        for field in header.all(fieldName) {
            guard let results = parse(field.rawValue), results.version == knownVersion,
                ids.contains(where: { sameID($0, results.authservID) })
            else { continue }
            for result in results.results where result.methodVersion == knownVersion {
                switch result.method {
                case "spf":
                    if let finding = spfFinding(result) { evidence.spf.append(finding) }
                case "dkim":
                    if let finding = dkimFinding(result, header: header) {
                        evidence.dkim.append(finding)
                    }
                case "dmarc":
                    guard let finding = dmarcFinding(result) else { continue }
                    // If two filters disagree about DMARC, the result that is not `pass` counts.
                    if evidence.dmarc == nil || evidence.dmarc?.result == .pass {
                        evidence.dmarc = finding
                    }
                default: continue
                }
            }
        }
        return evidence
    }

    private static func spfFinding(_ result: Result) -> SPFFinding? {
        // RFC 5451 used this name for `fail`, and some filters still do.
        let keyword = result.result == "hardfail" ? "fail" : result.result
        guard let outcome = SPFResult(rawValue: keyword) else { return nil }
        let names = result.properties.filter {
            $0.ptype == "smtp" && ($0.property == "mailfrom" || $0.property == "helo")
        }
        // With both properties, the result is that of MAIL FROM, unless there was no MAIL FROM to
        // check.
        let mailFrom = names.contains { $0.property == "mailfrom" }
        guard let value = result.value("smtp", mailFrom ? "mailfrom" : "helo") else { return nil }
        let name = domain(of: value)
        guard outcome != .pass || !name.isEmpty else { return nil }
        return SPFFinding(
            result: outcome, identity: mailFrom ? .mailFrom : .helo, domain: name,
            reason: upstreamReason)
    }

    private static func dkimFinding(_ result: Result, header: HeaderSection) -> DKIMFinding? {
        guard let outcome = DKIMResult(rawValue: result.result) else { return nil }
        let signer = result.value("header", "d").map(domain(of:))
        let agent = result.value("header", "i").map(domain(of:))
        var name = signer ?? agent ?? ""
        if result.properties.filter({ $0.ptype == "header" && ["d", "i"].contains($0.property) })
            .count > 2
        {
            name = ""
        }
        // i= is within d= (RFC 6376 section 3.5). If it is not, no signature with this result could
        // have passed.
        if let signer, let agent, !DomainName.isEqualOrBelow(agent, signer) { name = "" }
        guard outcome != .pass || !name.isEmpty else { return nil }
        let selector = result.value("header", "s") ?? ""
        // The filter may omit data of the signature, so all signatures to which the result may
        // refer are examined.
        let signatures = header.all("DKIM-Signature").map { SignatureTags($0.rawValue) }
            .filter { $0.domain == name && (selector.isEmpty || $0.selector == selector) }
        let algorithms = Set(signatures.map(\.algorithm))
        let algorithm =
            result.value("header", "a") ?? (algorithms.count == 1 ? algorithms.first : nil) ?? ""
        // A pass by an algorithm that proves nothing becomes `policy`.
        let isAccepted =
            algorithm.isEmpty
            || DKIMAlgorithm.allCases.contains {
                $0.name.hasSameOctets(as: lowercasedASCII(algorithm))
            }
        return DKIMFinding(
            result: outcome == .pass && !isAccepted ? .policy : outcome, domain: name,
            selector: selector, algorithm: algorithm,
            coversWholeBody: !signatures.contains(where: \.hasLength), reason: upstreamReason)
    }

    private static func dmarcFinding(_ result: Result) -> DMARCFinding? {
        guard let outcome = DMARCResult(rawValue: result.result) else { return nil }
        let from = result.value("header", "from").map(domain(of:)) ?? ""
        let policy = result.value("policy", "dmarc").map(lowercasedASCII) ?? ""
        return DMARCFinding(
            result: outcome, domain: outcome == .none ? "" : from,
            policy: ["none", "quarantine", "reject"].contains(policy) ? policy : "",
            organizationalDomain: nil)
    }

    /// Contains no text of the filter, which may quote addresses.
    private static let upstreamReason = "reported by the trusted upstream filter"

    /// The text after the last `@`, or the whole text, in lower case without the trailing dot.
    private static func domain(of value: String) -> String {
        var name = value.utf8[...]
        if let at = name.lastIndex(of: UInt8(ascii: "@")) { name = name[name.index(after: at)...] }
        if name.last == UInt8(ascii: ".") { name = name.dropLast() }
        return lowercasedASCII(String(Substring(name)))
    }

    private static func lowercasedASCII(_ text: String) -> String {
        String(decoding: text.utf8.map(\.asciiLowercased), as: UTF8.self)
    }

    /// The few tags of a DKIM-Signature field that determine the value of an upstream `pass`.
    private struct SignatureTags {
        var domain = ""
        var selector = ""
        var algorithm = ""
        var hasLength = false

        init(_ value: ArraySlice<UInt8>) {
            for tag in value.split(separator: UInt8(ascii: ";")) {
                let compact = tag.filter { ![0x20, 0x09, 0x0D, 0x0A].contains($0) }
                let text = String(decoding: compact.dropFirst(2), as: UTF8.self)
                switch compact.prefix(2) {
                case [UInt8(ascii: "d"), UInt8(ascii: "=")]: domain = lowercasedASCII(text)
                case [UInt8(ascii: "s"), UInt8(ascii: "=")]: selector = text
                case [UInt8(ascii: "a"), UInt8(ascii: "=")]: algorithm = lowercasedASCII(text)
                case [UInt8(ascii: "l"), UInt8(ascii: "=")]: hasLength = true
                default: continue
                }
            }
        }
    }
}

/// Uses the results of an upstream filter instead of our own evaluation. Reads no body and does not
/// query the DNS.
package struct UpstreamResultsAuthenticator: SenderAuthenticator {
    /// The trusted authserv-ids.
    package let trustedIDs: [String]

    package init(trustedIDs: [String]) { self.trustedIDs = trustedIDs }

    package func begin(
        client: SMTPClientIdentity, header: HeaderSection, now: Int64
    ) -> any AuthenticationSession {
        Session(evidence: AuthenticationResults.evidence(from: header, trusting: trustedIDs))
    }

    private final class Session: AuthenticationSession {
        private let evidence: AuthenticationEvidence

        init(evidence: AuthenticationEvidence) { self.evidence = evidence }

        func update(body: UnsafeRawBufferPointer) {}
        func finish() -> AuthenticationEvidence { evidence }
    }
}
