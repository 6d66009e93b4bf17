// A relay domain as other servers see it: MX, SPF, DKIM, DMARC. Evaluates DNS answers; the caller
// passes the resolver.

import Accounts
import MailAuth
import Relay
import Support

/// Checks of one relay domain.
package struct RelayDomainChecks {
    /// A key and the record that should be published for it.
    package struct Key: Sendable {
        package let key: DKIMKey
        package let publication: DKIMKeyPublication

        package init(key: DKIMKey, publication: DKIMKeyPublication) {
            self.key = key
            self.publication = publication
        }
    }

    package let domain: String
    package let host: RelayHost
    /// The keys of this domain that are not retired.
    package let keys: [Key]
    /// Local parts at relay domains whose mail reaches the operator, in lower case.
    package let localParts: Set<String>
    /// All relay domains.
    package let relayDomains: [String]
    /// Seconds since 1970.
    package let now: Int64
    let resolver: any DNSResolver

    package init(
        domain: String, host: RelayHost, keys: [Key], localParts: Set<String>,
        relayDomains: [String], now: Int64,
        resolver: any DNSResolver
    ) {
        self.domain = domain
        self.host = host
        self.keys = keys
        self.localParts = localParts
        self.relayDomains = relayDomains
        self.now = now
        self.resolver = resolver
    }

    package func all() -> [Check] { mx() + spf() + dkim() + dmarc() }

    func unanswered(_ name: CheckName, _ what: String, _ reason: String) -> Check {
        .warning(
            name, "the DNS gives no answer for \(what): \(reason)",
            remedy: "try again later, and check the domain's name servers")
    }

    // MARK: MX

    package func mx() -> [Check] {
        // The check of the host reports this once.
        guard host.trouble == nil else { return [] }
        let name = CheckKind.mx.of(domain)
        let remedy: Remedy = "publish: \(domain). IN MX 10 \(host.heloName)."
        switch resolver.query(domain, .mx) {
        case .temporaryFailure(let reason): return [unanswered(name, domain, reason)]
        case .noData, .nxDomain:
            return [
                .broken(
                    name, "\(domain) has no MX record: mail to relay addresses does not come here",
                    remedy: remedy)
            ]
        case .records(let records):
            var exchanges: [(preference: UInt16, host: String)] = []
            for case .mx(let preference, let exchange) in records {
                exchanges.append((preference, exchange.lowercased()))
            }
            exchanges.sort { $0 < $1 }
            guard !exchanges.contains(where: { $0.host.isEmpty }) else {
                return [
                    .broken(
                        name, "\(domain) says that it accepts no mail (a null MX)", remedy: remedy)
                ]
            }
            var away: [String] = []
            var leadHere: [Bool] = []
            for exchange in exchanges {
                let addresses = HostAddresses.of(exchange.host, resolver)
                if case .unknown(let reason) = addresses {
                    return [unanswered(name, exchange.host, reason)]
                }
                leadHere.append(addresses.list.contains(where: host.exchanges.contains))
                if leadHere.last == false {
                    away.append(
                        addresses.list.isEmpty ? "\(exchange.host) (no address)" : exchange.host)
                }
            }
            guard leadHere.contains(true) else {
                return [
                    .broken(
                        name,
                        "the MX of \(domain) points to \(away.joined(separator: ", ")), not here",
                        remedy: remedy)
                ]
            }
            guard away.isEmpty else {
                return [
                    .warning(
                        name,
                        "mail to \(domain) \(leadHere.first == true ? "may also go" : "goes first") to "
                            + "\(away.joined(separator: ", "))",
                        remedy:
                            "ensure that a postern with the same database and keys runs there, or remove that MX"
                    )
                ]
            }
            return [
                .ok(
                    name,
                    "mail to \(domain) comes here (\(exchanges.map(\.host).joined(separator: ", ")))"
                )
            ]
        }
    }

    // MARK: SPF

    /// SPF of the relay domain, which is the domain of return paths.
    package func spf() -> [Check] {
        guard !host.addresses.isEmpty else { return [] }
        return [
            spf(
                CheckKind.spf.of(domain), mailFrom: "postmaster@\(domain)", subject: domain,
                mechanisms, isNeeded: true)
        ]
    }

    private var mechanisms: String {
        host.addresses.map { ($0.isIPv4 ? "ip4:" : "ip6:") + $0.description }.joined(separator: " ")
    }

    /// SPF of the HELO name, which is checked for mail with the null sender.
    /// The same for all domains.
    package func helo() -> [Check] {
        guard !host.addresses.isEmpty, host.relayhost == nil else { return [] }
        // If all addresses are those of the name itself, the mechanism `a` is enough.
        let own = HostAddresses.of(host.heloName, resolver).list
        let isOfItsName = host.addresses.allSatisfy(own.contains)
        return [
            spf(
                CheckKind.spf.of(host.heloName), mailFrom: "", subject: host.heloName,
                isOfItsName ? "a" : mechanisms,
                isNeeded: false)
        ]
    }

    private func spf(
        _ name: CheckName, mailFrom: String, subject: String, _ mechanisms: String, isNeeded: Bool
    ) -> Check {
        let remedy: Remedy = "publish: \(subject). IN TXT \"v=spf1 \(mechanisms) -all\""
        func bad(_ sentence: String) -> Check {
            isNeeded
                ? .broken(name, sentence, remedy: remedy) : .warning(name, sentence, remedy: remedy)
        }
        for address in host.addresses {
            let client = SMTPClientIdentity(
                address: address.description, helo: host.heloName, mailFrom: mailFrom)
            let finding = SPF.check(client: client, resolver: resolver)
            switch finding.result {
            case .pass: continue
            case .none: return bad("\(subject) has no SPF record")
            case .temperror: return unanswered(name, subject, finding.reason)
            case .permerror:
                return bad("the SPF record of \(subject) has an error: \(finding.reason)")
            case .neutral, .fail, .softfail:
                return bad(
                    "SPF of \(subject) does not cover \(address): \(finding.result.rawValue), \(finding.reason)"
                )
            }
        }
        let others = SMTPClientIdentity(
            address: "192.0.2.255", helo: host.heloName, mailFrom: mailFrom)
        // 192.0.2.0/24 belongs to no one (RFC 5737): a record that passes an address of it passes
        // every address.
        if SPF.check(client: others, resolver: resolver).result == .pass {
            return bad("SPF of \(subject) passes for every address on the Internet")
        }
        return .ok(
            name,
            "SPF of \(subject) covers \(host.addresses.map(\.description).joined(separator: ", "))")
    }

    // MARK: DKIM

    package func dkim() -> [Check] {
        var checks = keys.map(dkim)
        let active = keys.filter { $0.key.state == .active }
        if !active.contains(where: { $0.key.algorithm == .rsa }) {
            checks.append(
                .broken(
                    CheckKind.dkim.of(domain),
                    active.isEmpty
                        ? "\(domain) has no active key: mail from it is not signed"
                        : "\(domain) signs with Ed25519 alone, which many providers do not check",
                    remedy: keys.first { $0.key.state == .pending && $0.key.algorithm == .rsa }.map
                    {
                        "publish the record that \(.showRecord, $0.key.selector, domain) prints, then run \(.activateKey, $0.key.selector, domain)"
                    } ?? "run \(.generateKey, domain), and do what it prints"))
        }
        return checks
    }

    private func dkim(_ item: Key) -> Check {
        let (key, publication) = (item.key, item.publication)
        let name = CheckKind.dkim.of(publication.name)
        let publish: Remedy = "publish the record that \(.showRecord, key.selector, domain) prints"
        let answer = resolver.query(publication.name, .txt)
        if case .temporaryFailure(let reason) = answer {
            return unanswered(name, publication.name, reason)
        }
        let objection = publication.objection(to: answer)
        switch key.state {
        case .active:
            guard let objection else {
                return .ok(
                    name, "\(key.selector) (\(key.algorithm.rawValue)) signs, and is published")
            }
            return .broken(
                name, "\(key.selector) signs, but verifiers cannot use it: \(objection)",
                remedy: publish)
        case .pending:
            return objection == nil
                ? .ok(
                    name,
                    "\(key.selector) is published and waits for postern keys dkim activate \(key.selector) --domain \(domain)"
                )
                : .ok(name, "\(key.selector) is not in use, and not published yet")
        case .retiring, .retired:
            let end = (key.deactivatedAt ?? now) + DKIMKeyRepository.publicationAfterUse
            guard now < end else {
                return .warning(
                    name,
                    "\(key.selector) no longer signs, and nothing that it signed is in transit",
                    remedy: "run \(.retireKey, key.selector, domain), then remove its record")
            }
            guard let objection else {
                return .ok(
                    name, "\(key.selector) is retiring, and still published for mail in transit")
            }
            return .warning(
                name,
                "\(key.selector) signed mail that may be in transit, but verifiers cannot use it: \(objection)",
                remedy: publish + " until the key is retired")
        }
    }

    // MARK: DMARC

    package func dmarc() -> [Check] {
        let name = CheckKind.dmarc.of(domain)
        let remedy: Remedy =
            "publish: _dmarc.\(domain). IN TXT \"v=DMARC1; p=reject; rua=mailto:dmarc@\(domain)\""
        var at = domain
        var lookup = DMARC.record(at: domain, resolver: resolver)
        if case .none = lookup {
            switch DMARC.organizationalDomain(of: domain, resolver: resolver) {
            case .found(let organization) where organization != domain:
                at = organization
                lookup = DMARC.record(at: organization, resolver: resolver)
            case .temporaryFailure(let reason): lookup = .temporaryFailure(reason)
            default: break
            }
        }
        switch lookup {
        case .temporaryFailure(let reason): return [unanswered(name, "_dmarc.\(domain)", reason)]
        case .none:
            return [
                .broken(
                    name,
                    "\(domain) has no DMARC record, or more than one: Gmail and Yahoo require one of every larger sender",
                    remedy: remedy)
            ]
        case .record(let record):
            guard record.hasUsablePolicy else {
                return [
                    .broken(name, "the DMARC record at \(at) has no usable policy", remedy: remedy)
                ]
            }
            let policy = at == domain ? record.policy : record.policyForSubdomain(exists: true)
            var checks: [Check] = []
            if policy == .none || record.isTesting {
                checks.append(
                    .warning(
                        name,
                        "DMARC of \(domain) asks for nothing\(record.isTesting ? " (t=y)" : ""): "
                            + "mail forged in its name is accepted",
                        remedy:
                            "once the reports show no problem, set p=reject: everything that the relay sends is signed"
                    )
                )
            } else {
                checks.append(.ok(name, "DMARC of \(domain) asks for \(policy.rawValue)"))
            }
            if !record.endedTags.isEmpty {
                checks.append(
                    .warning(
                        CheckKind.dmarcTags.of(domain),
                        "DMARC of \(at) has \(record.endedTags.joined(separator: ", ")), which RFC 9989 ended: receivers do not read it",
                        remedy: record.endedTags.contains("pct")
                            ? "take it out; t=y asks for a test" : "take it out"))
            }
            if at == domain, policy != .none, let weak = record.weakerSubdomains {
                checks.append(
                    .warning(
                        CheckKind.dmarcTags.of(domain),
                        "DMARC of \(at) asks for less for its subdomains (\(weak)): mail forged in their names is accepted",
                        remedy: "take it out"))
            }
            return checks + reports(record, at: at)
        }
    }

    /// Checks whether the reports that the rua tag requests reach a mailbox.
    private func reports(_ record: DMARCRecord, at: String) -> [Check] {
        let name = CheckKind.dmarcReports.of(domain)
        guard !record.aggregateReports.isEmpty else {
            return [
                .warning(
                    name,
                    "DMARC of \(at) names no address for reports (rua): forgery and mistakes go unnoticed",
                    remedy:
                        "add rua=mailto:dmarc@\(domain), and to postern.yaml local_recipients: {dmarc: YOUR ADDRESS}"
                )
            ]
        }
        return record.aggregateReports.map { uri in report(uri, name, at: at) }
    }

    /// - Parameter isOfDMARC: whether a domain must consent to receive
    ///   reports about another domain.
    func report(_ uri: String, _ name: CheckName, at: String, isOfDMARC: Bool = true) -> Check {
        // A size limit may follow (RFC 7489 section 6.2).
        let target = uri.split(separator: "!").first.map(String.init) ?? uri
        guard target.lowercased().hasPrefix("mailto:"), let sign = target.lastIndex(of: "@") else {
            return .warning(
                name,
                "reports go to \(target), which is not a mailto: URI: most reporters support no other",
                remedy: "use mailto:")
        }
        let local = target.dropFirst("mailto:".count).prefix { $0 != "@" }.lowercased()
        let place = String(target[target.index(after: sign)...]).lowercased()
        if relayDomains.contains(place) {
            guard localParts.contains(local) else {
                return .broken(
                    name,
                    "reports go to \(local)@\(place), which the relay refuses as an unknown address",
                    remedy:
                        "add to postern.yaml: local_recipients: {\(local): YOUR ADDRESS}, and reload"
                )
            }
            return .ok(name, "reports go to \(local)@\(place), and from there to the operator")
        }
        let isOwn = DomainName.isEqualOrBelow(place, at) || DomainName.isEqualOrBelow(at, place)
        if !isOwn, isOfDMARC {
            // RFC 9990 section 4: the other domain must publish that it accepts the reports.
            switch resolver.query("\(at)._report._dmarc.\(place)", .txt) {
            case .temporaryFailure(let reason):
                return unanswered(name, "\(at)._report._dmarc.\(place)", reason)
            case .records(let records) where records.contains(where: Self.isReportConsent): break
            default:
                return .warning(
                    name,
                    "\(place) does not say that it accepts reports about \(at), so none are sent there",
                    remedy: "have it publish: \(at)._report._dmarc.\(place). IN TXT \"v=DMARC1\"")
            }
        }
        if case .records = resolver.query(place, .mx) {
            return .ok(name, "reports go to an address at \(place)")
        }
        switch HostAddresses.of(place, resolver) {
        case .found: return .ok(name, "reports go to an address at \(place)")
        case .unknown(let reason): return unanswered(name, place, reason)
        case .none:
            return .warning(
                name, "reports go to \(place), which accepts no mail",
                remedy: "name an address that exists in rua")
        }
    }

    private static func isReportConsent(_ record: DNSRecord) -> Bool {
        if case .txt(let text) = record { text.starts(with: Array("v=DMARC1".utf8)) } else { false }
    }
}
