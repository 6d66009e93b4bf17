// The requests of a relay domain to its senders: MTA-STS (RFC 8461) and TLS reports (RFC 8460).
// Both may be absent.

import Foundation
import MailAuth
import Support

/// An MTA-STS policy (RFC 8461 section 3.2).
struct TransportPolicy {
    enum Mode: String { case enforce, testing, none }

    let mode: Mode
    /// Host names, or `*.` and a domain.
    let patterns: [String]
    /// Seconds for which senders keep it in their cache.
    let maxAge: Int

    /// Nil if the text is not a policy.
    init?(parsing text: String) {
        var fields: [String: [String]] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: ":", maxSplits: 1).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard parts.count == 2 else { return nil }
            fields[parts[0], default: []].append(parts[1].lowercased())
        }
        guard fields["version"]?.first == "stsv1",
            let mode = fields["mode"]?.first.flatMap(Mode.init),
            let age = fields["max_age"]?.first.flatMap(Int.init), (0...31_557_600).contains(age)
        else { return nil }
        self.mode = mode
        patterns = fields["mx"] ?? []
        maxAge = age
    }

    /// Whether it allows mail to a host (RFC 8461 section 4.1).
    func allows(_ host: String) -> Bool {
        let host = host.lowercased()
        return patterns.contains { pattern in
            pattern.hasPrefix("*.")
                ? host.split(separator: ".", maxSplits: 1).last == pattern.dropFirst(2)
                : host == pattern
        }
    }
}

extension RelayDomainChecks {
    /// The URL of the MTA-STS policy.
    package var transportPolicyURL: String { "https://mta-sts.\(domain)/.well-known/mta-sts.txt" }

    /// Whether the DNS tells senders to fetch the policy.
    package var announcesTransportPolicy: Bool {
        if case .success(let records) = texts("_mta-sts.\(domain)", beginning: "v=STSv1") {
            !records.isEmpty
        } else {
            false
        }
    }

    /// - Parameter policy: the text of the policy, or the reason why it could not be fetched; nil
    ///   if only the DNS is checked.
    package func transport(_ policy: Result<String, CheckInputError>?) -> [Check] {
        let name = CheckKind.mtaSTS.of(domain)
        switch texts("_mta-sts.\(domain)", beginning: "v=STSv1") {
        case .failure(let trouble):
            return [unanswered(name, "_mta-sts.\(domain)", trouble.description)]
        case .success(let records) where records.isEmpty: return reportsAboutTLS(isNeeded: false)
        case .success(let records):
            guard records.count == 1, Self.identifier(records[0]) != nil else {
                return [
                    .broken(
                        name,
                        "_mta-sts.\(domain) has \(records.count == 1 ? "no usable id" : "more than one record"): senders ignore it",
                        remedy:
                            "publish: _mta-sts.\(domain). IN TXT \"v=STSv1; id=1\", with a new id whenever the policy changes"
                    )
                ]
            }
            return (policy.map { [judge($0, name)] } ?? []) + reportsAboutTLS(isNeeded: true)
        }
    }

    private func judge(_ found: Result<String, CheckInputError>, _ name: CheckName) -> Check {
        let url = transportPolicyURL
        let text: String
        switch found {
        case .success(let found): text = found
        case .failure(let trouble):
            return .broken(
                name, "MTA-STS is announced, but \(url) cannot be fetched: \(trouble)",
                remedy: "serve the policy there, or remove the record _mta-sts.\(domain)")
        }
        guard let policy = TransportPolicy(parsing: text) else {
            return .broken(
                name, "\(url) is not an MTA-STS policy",
                remedy:
                    "write: version: STSv1, mode: testing, mx: \(host.heloName), max_age: 604800, each on a separate line"
            )
        }
        guard policy.mode != .none else {
            return .ok(name, "MTA-STS of \(domain) is withdrawn (mode: none)")
        }
        var exchanges: [String] = []
        if case .records(let records) = resolver.query(domain, .mx) {
            for case .mx(_, let exchange) in records { exchanges.append(exchange) }
        }
        guard !exchanges.isEmpty else {
            return unanswered(name, "MX of \(domain), which its policy must name", "no record")
        }
        let missing = exchanges.filter { !policy.allows($0) }
        guard missing.isEmpty else {
            let effect =
                policy.mode == .enforce
                ? "mail does not come" : "it will not come once the mode is enforce"
            return .broken(
                name,
                "the MTA-STS policy of \(domain) does not name \(missing.joined(separator: ", ")): \(effect)",
                remedy: "add mx: \(missing[0]) to \(url), and change the id of _mta-sts.\(domain)")
        }
        return .ok(
            name, "MTA-STS of \(domain) names where mail comes to (mode: \(policy.mode.rawValue))")
    }

    private func reportsAboutTLS(isNeeded: Bool) -> [Check] {
        let (name, place) = (CheckKind.tlsReports.of(domain), "_smtp._tls.\(domain)")
        let remedy: Remedy =
            "publish: \(place). IN TXT \"v=TLSRPTv1; rua=mailto:tlsrpt@\(domain)\", and add tlsrpt to local_recipients"
        switch texts(place, beginning: "v=TLSRPTv1") {
        case .failure(let trouble): return [unanswered(name, place, trouble.description)]
        case .success(let records) where records.isEmpty:
            guard isNeeded else { return [] }
            return [
                .warning(
                    name,
                    "\(domain) has MTA-STS, but no TLS-RPT, so no one learns of mail that it blocks",
                    remedy: remedy)
            ]
        case .success(let records):
            let targets = records.first.map(Self.reportTargets) ?? []
            guard records.count == 1, !targets.isEmpty else {
                return [
                    .broken(
                        name,
                        "\(place) has \(records.count == 1 ? "no usable rua" : "more than one record"): no reports are sent",
                        remedy: remedy)
                ]
            }
            // Reports over HTTPS go to the operator of that server, so their address is not
            // checked.
            return targets.filter { !$0.lowercased().hasPrefix("https:") }.map {
                report($0, name, at: domain, isOfDMARC: false)
            }
        }
    }

    /// TXT records of a name that begin with `beginning`.
    private func texts(_ name: String, beginning: String) -> Result<[String], CheckInputError> {
        switch resolver.query(name, .txt) {
        case .temporaryFailure(let reason): return .failure(CheckInputError(reason))
        case .noData, .nxDomain: return .success([])
        case .records(let records):
            var found: [String] = []
            for case .txt(let text) in records where text.starts(with: Array(beginning.utf8)) {
                found.append(String(decoding: text, as: UTF8.self))
            }
            return .success(found)
        }
    }

    private static func tags(_ record: String) -> [String: String] {
        Dictionary(
            record.split(separator: ";").compactMap { tag in
                let parts = tag.split(separator: "=", maxSplits: 1).map {
                    $0.trimmingCharacters(in: .whitespaces)
                }
                return parts.count == 2 ? (parts[0], parts[1]) : nil
            }, uniquingKeysWith: { first, _ in first })
    }

    /// One to 32 letters and digits (RFC 8461 section 3.1).
    private static func identifier(_ record: String) -> String? {
        guard let id = tags(record)["id"], (1...32).contains(id.utf8.count),
            id.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) })
        else {
            return nil
        }
        return id
    }

    private static func reportTargets(_ record: String) -> [String] {
        (tags(record)["rua"] ?? "").split(separator: ",").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        .filter { target in ["mailto:", "https:"].contains { target.lowercased().hasPrefix($0) } }
    }
}
