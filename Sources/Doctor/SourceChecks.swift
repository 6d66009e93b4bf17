// A team's domain in the relay's view: SPF, DKIM and DMARC, in words.

import Accounts
import InternetMessage
import MailAuth
import Support

/// Checks the records of a domain that a team sends from.
package struct SourceChecks {
    /// Selectors of large senders and of common programs. The DNS cannot list selectors; these find
    /// many of them.
    package static let commonSelectors = [
        "default", "dkim", "mail", "email", "smtp", "selector1", "selector2", "google", "s1", "s2",
        "k1", "k2", "k3", "mandrill",
        "mxvault",
        "pm", "mta", "key1", "sig1", "20230601", "fm1", "fm2", "fm3", "protonmail", "zoho",
        "mailjet", "sendinblue", "resend",
    ]

    /// The team's identifier; `TEAM` if it is not known.
    package let team: String
    /// In lower case and A-labels.
    package let domain: String
    /// The team's registered sources.
    package let sources: [OutboundSource]
    /// Selectors that the administrator named; if empty, common ones are tried.
    package let selectors: [String]
    /// An address that the team sends from, to test SPF with; nil for none.
    package let address: String?
    private let resolver: any DNSResolver

    package init(
        team: String = "TEAM", domain: String, sources: [OutboundSource], selectors: [String],
        address: String?,
        resolver: any DNSResolver
    ) {
        (self.team, self.domain) = (team, domain)
        self.sources = sources
        self.selectors = selectors
        self.address = address
        self.resolver = resolver
    }

    package func all() -> [Check] {
        let spf = envelopeDomains.map { ($0, self.spf($0)) }
        let dkim = signingDomains.map { ($0, self.dkim($0)) }
        let alignment = Alignment(domain, resolver: resolver)
        var checks = [registration()] + spf.map(\.1) + dkim.flatMap(\.1) + [dmarc()]
        // Either SPF or DKIM is enough, unless DMARC does not accept it.
        let envelopes = spf.filter { alignment.counts($0.0, isStrict: alignment.isStrictSPF) }
        let signers = dkim.filter { alignment.counts($0.0, isStrict: alignment.isStrictDKIM) }
        checks.append(
            conclusion(
                envelopes: envelopes.map(\.0), hasSPF: envelopes.contains { $0.1.verdict == .ok },
                signers: signers.map(\.0),
                hasDKIM: signers.contains { $0.1.contains { $0.verdict == .ok } },
                isUnanswered: envelopes.contains { $0.1.isUnanswered }
                    || signers.contains { $0.1.contains(where: \.isUnanswered) }))
        return checks
    }

    /// The domains that count for mail of this domain if its DMARC record requests refusal of mail
    /// that fails (docs/decisions/014).
    private struct Alignment {
        private let domain: String
        private let organization: String
        /// Whether the record requests any refusal.
        private let isEnforced: Bool
        let isStrictDKIM: Bool
        let isStrictSPF: Bool

        init(_ domain: String, resolver: any DNSResolver) {
            // Evaluated without any pass: only the policy matters here.
            let finding = DMARC.evaluate(fromDomain: domain, spf: [], dkim: [], resolver: resolver)
            self.domain = domain
            organization = finding.organizationalDomain ?? domain
            isEnforced =
                finding.result == .fail && finding.policy != DMARCRecord.Policy.none.rawValue
            (isStrictDKIM, isStrictSPF) = (finding.isStrictDKIM, finding.isStrictSPF)
        }

        func counts(_ name: String, isStrict: Bool) -> Bool {
            !isEnforced || name == domain
                || (!isStrict && DomainName.isEqualOrBelow(name, organization))
        }
    }

    private var covering: [OutboundSource] {
        sources.filter { source in
            switch source.kind {
            case .domain: DomainName.isEqualOrBelow(domain, source.value)
            case .address: source.value.split(separator: "@").last.map(String.init) == domain
            }
        }
    }

    /// The domains whose signatures prove the mail: the domain itself, and the source that contains
    /// it (docs/decisions/014).
    private var signingDomains: [String] {
        var names = [domain]
        for source in covering where source.kind == .domain && !names.contains(source.value) {
            names.append(source.value)
        }
        return names
    }

    /// The domains whose SPF proves the mail: the signing domains, and the
    /// domain paired with the source.
    private var envelopeDomains: [String] {
        var names = signingDomains
        for name in covering.compactMap(\.envelopeDomain) where !names.contains(name) {
            names.append(name)
        }
        return names
    }

    private func registration() -> Check {
        guard let source = covering.first else {
            return .broken(
                .registered,
                "\(domain) is not a registered source of the team: mail from it is refused, even with a valid proof",
                remedy: "run \(.addSource, team, domain)")
        }
        return .ok(.registered, "\(domain) is covered by the source \(source.value)")
    }

    // MARK: SPF

    private func spf(_ name: String) -> Check {
        let title = CheckKind.spf.of(name)
        let texts: [[UInt8]]
        switch resolver.query(name, .txt) {
        case .temporaryFailure(let reason):
            return .unanswered(title, "the DNS gives no answer for \(name): \(reason)")
        case .noData, .nxDomain: texts = []
        case .records(let records):
            texts = records.compactMap { if case .txt(let text) = $0 { text } else { nil } }
        }
        let version = Array("v=spf1".utf8)
        let records = texts.filter { text in
            text.count >= 6 && zip(text, version).allSatisfy { $0.asciiLowercased == $1 }
                && (text.count == 6 || text[6] == 0x20)
        }
        guard let record = records.first else {
            return .warning(
                title, "\(name) has no SPF record: only a DKIM signature can prove mail from it",
                remedy:
                    "publish a TXT record that names the servers that send for \(name), "
                    + "as in \"v=spf1 include:YOUR-PROVIDER -all\""
            )
        }
        guard records.count == 1 else {
            return .broken(
                title,
                "\(name) has \(records.count) SPF records, so SPF gives permerror for all mail",
                remedy: "merge them into one")
        }
        // An address that no record names shows whether the whole record can be evaluated.
        let probe = address ?? "192.0.2.255"
        let finding = SPF.check(
            client: SMTPClientIdentity(address: probe, helo: name, mailFrom: "postmaster@\(name)"),
            resolver: resolver)
        switch finding.result {
        case .permerror:
            return .broken(
                title, "the SPF record of \(name) has an error: \(finding.reason)",
                remedy: "fix the record")
        case .temperror:
            return .unanswered(title, "SPF of \(name) cannot be evaluated now: \(finding.reason)")
        case .pass where address == nil:
            return .broken(
                title,
                "SPF of \(name) passes for every address on the Internet: anyone can send as the team",
                remedy: "end the record with -all, and name only the servers that send for \(name)")
        case .pass: return .ok(title, "SPF of \(name) passes for \(probe)")
        case .none, .neutral, .fail, .softfail:
            guard address == nil else {
                return .broken(
                    title,
                    "SPF of \(name) does not cover \(probe): \(finding.result.rawValue), \(finding.reason)",
                    remedy: "add \(probe), or the include of the provider it belongs to")
            }
            return .ok(
                title,
                "SPF of \(name) can be evaluated (\(DomainName.printable(record).prefix(120))); "
                    + "--ip tries it with a sending address"
            )
        }
    }

    // MARK: DKIM

    private func dkim(_ domain: String) -> [Check] {
        let named = !selectors.isEmpty
        var checks: [Check] = []
        for selector in named ? selectors : Self.commonSelectors {
            let name = "\(selector)._domainkey.\(domain)"
            let answer = resolver.query(name, .txt)
            switch answer {
            case .noData, .nxDomain:
                guard named else { continue }
                checks.append(
                    .broken(
                        CheckKind.dkim.of(name), "no key at \(name)",
                        remedy: "publish the TXT record that the sending service gives for it"))
            case .temporaryFailure(let reason):
                guard named else { continue }
                checks.append(
                    .unanswered(
                        CheckKind.dkim.of(name), "the DNS gives no answer for \(name): \(reason)")
                )
            case .records:
                checks.append(judge(DKIMKeyAnswer(answer), name: name))
            }
        }
        if checks.isEmpty {
            checks.append(
                .warning(
                    CheckKind.dkim.of(domain),
                    "none of \(Self.commonSelectors.count) common selectors has a key at \(domain); "
                        + "selectors cannot be listed, so there may be another",
                    remedy:
                        "look for s= in the DKIM-Signature of a message from \(domain), and name it with --selector"
                ))
        }
        return checks
    }

    private func judge(_ answer: DKIMKeyAnswer, name: String) -> Check {
        let title = CheckKind.dkim.of(name)
        let found =
            if case .keys(let keys) = answer { keys } else { [DKIMKeyAnswer.PublishedKey]() }
        if found.contains(where: \.isTesting) {
            return .broken(
                title, "the key at \(name) is in test mode (t=y): its signatures prove nothing",
                remedy: "remove t=y from the record")
        }
        guard let key = found.first?.key else {
            return .broken(
                title, "\(name): \(answer.text)",
                remedy: "publish the TXT record that the sending service gives for it")
        }
        guard key.isStrong(DKIMLimits()) else {
            return .broken(
                title, "the key at \(name) has \(key.bits) bits: its signatures prove nothing",
                remedy: "generate a key of \(key.algorithm.newKeyBits.lowerBound) bits")
        }
        let best = key.algorithm.newKeyBits.lowerBound
        let advice = key.bits < best ? "; \(best) bits would be better" : ""
        return .ok(title, "\(name) has a key: \(answer.text)\(advice)")
    }

    // MARK: DMARC and conclusion

    private func dmarc() -> Check {
        let name = CheckKind.dmarc
        let advice =
            "forwarding does not need DMARC, but without it others can forge mail from \(domain) elsewhere"
        func judge(_ lookup: DMARC.RecordLookup, at: String) -> Check? {
            switch lookup {
            case .none: return nil
            case .temporaryFailure(let reason):
                return .warning(
                    name, "the DNS gives no answer for _dmarc.\(at): \(reason)",
                    remedy: "try again later")
            case .record(let record):
                let policy = at == domain ? record.policy : record.policyForSubdomain(exists: true)
                return policy == .none
                    ? .warning(
                        name, "DMARC of \(at) asks for nothing (p=none)",
                        remedy: "set p=quarantine or p=reject once its reports are clean")
                    : .ok(name, "DMARC of \(at) asks for \(policy.rawValue)")
            }
        }
        if let own = judge(DMARC.record(at: domain, resolver: resolver), at: domain) { return own }
        if case .found(let organization) = DMARC.organizationalDomain(
            of: domain, resolver: resolver), organization != domain,
            let inherited = judge(
                DMARC.record(at: organization, resolver: resolver), at: organization)
        {
            return inherited
        }
        return .warning(
            name, "\(domain) has no DMARC record",
            remedy: "\(advice): publish one at _dmarc.\(domain)")
    }

    private func conclusion(
        envelopes: [String], hasSPF: Bool, signers: [String], hasDKIM: Bool, isUnanswered: Bool
    ) -> Check {
        let name = CheckKind.forwarding
        guard !covering.isEmpty else {
            return .broken(
                name, "mail from \(domain) is refused (550 5.7.1)",
                remedy: "register the source first")
        }
        let envelopes = envelopes.joined(separator: " or ")
        let signers = "d=" + signers.joined(separator: " or d=")
        switch (hasSPF, hasDKIM) {
        case (true, true):
            return .ok(
                name,
                "mail from \(domain) is forwarded if it is signed with \(signers), or leaves with an envelope sender at "
                    + "\(envelopes) from a server that SPF names")
        case (false, true):
            return .ok(name, "mail from \(domain) is forwarded if it is signed with \(signers)")
        case (true, false):
            return .warning(
                name,
                "mail from \(domain) is forwarded only if its envelope sender is at \(envelopes) "
                    + "and its server is one that SPF names",
                remedy:
                    "sign it too (DKIM with \(signers)): many services use an envelope sender of their own"
            )
        case (false, false) where isUnanswered:
            return .unanswered(
                name.alone,
                "whether mail from \(domain) is forwarded is not known now: the DNS gives no answer, and such mail waits at its sender (451)"
            )
        case (false, false):
            return .broken(
                name, "nothing found proves mail from \(domain): it would be refused (550 5.7.26)",
                remedy:
                    "sign the mail (DKIM with \(signers)), "
                    + "or send it with an envelope sender at \(domain) and an SPF record for it"
            )
        }
    }
}
