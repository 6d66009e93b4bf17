// SPF (RFC 7208): the entry point of check_host().

import InternetMessage
import Support

/// Sender Policy Framework.
package enum SPF {
    /// Terms that query the DNS, per check (RFC 7208 section 4.6.4); beyond: permerror.
    package static let maximumLookups = 10
    /// Exchanges of one `mx` term (RFC 7208 section 4.6.4); beyond: permerror.
    package static let maximumExchanges = 10
    /// PTR names that are examined (RFC 7208 section 4.6.4); others are ignored.
    package static let maximumPointers = 10
    /// Terms with a look-up that found nothing (RFC 7208 section 4.6.4); beyond: permerror.
    package static let maximumVoidLookups = 2
    /// Longest explanation in octets, so that a record cannot put more into a reply. A longer one
    /// is ignored.
    package static let maximumExplanation = 2_000

    /// A finding, and the explanation that the domain offers for a `fail`.
    package struct Outcome: Sendable, Hashable {
        package let finding: SPFFinding
        /// The expanded text of `exp=`, printable ASCII. Nil if none was requested, or if it is
        /// missing or invalid. It comes from outside and may contain the local part of the sender.
        package let explanation: String?
    }

    /// The data that an explanation may mention besides the check itself (RFC 7208 section 7.2,
    /// macros `r` and `t`).
    package struct Receiver: Sendable {
        /// The name of the receiving host.
        package let hostName: String
        /// Seconds since 1970.
        package let time: Int64

        package init(hostName: String, time: Int64) {
            self.hostName = hostName
            self.time = time
        }
    }

    /// Checks the MAIL FROM identity, or the HELO identity for the null sender (RFC 7208 section
    /// 2.4).
    package static func check(client: SMTPClientIdentity, resolver: any DNSResolver) -> SPFFinding {
        check(
            client: client, identity: client.mailFrom.isEmpty ? .helo : .mailFrom,
            resolver: resolver
        ).finding
    }

    /// Checks one identity.
    ///
    /// - Parameters:
    ///   - identity: with `.helo` the sender is `postmaster@` and the HELO name (RFC 7208
    ///     sections 2.3 and 2.4).
    ///   - explaining: requests the explanation of a `fail`, which costs one more
    ///     query; nil requests none.
    package static func check(
        client: SMTPClientIdentity, identity: SPFFinding.Identity, resolver: any DNSResolver,
        explaining: Receiver? = nil
    ) -> Outcome {
        let sender = Sender(client: client, identity: identity)
        func none(_ reason: String, domain: String = "") -> Outcome {
            Outcome(
                finding: .init(result: .none, identity: identity, domain: domain, reason: reason),
                explanation: nil)
        }
        guard let domain = DomainName.mailDomain(sender.domain) else {
            return none(
                sender.domain.isEmpty
                    ? "no domain to check" : "not a domain name of two labels or more")
        }
        guard let text = client.address else { return none("no client address", domain: domain) }
        guard let address = IPAddress(text) else {
            return none("the client address is not an IP address", domain: domain)
        }
        var evaluator = SPFEvaluator(
            address: address, localPart: sender.localPart, senderDomain: domain, helo: client.helo,
            resolver: resolver)
        let verdict = evaluator.checkHost(domain)
        var explanation: String?
        if let explaining, verdict.result == .fail, let offered = verdict.explanation {
            explanation = evaluator.explanation(offered, receiver: explaining)
        }
        return Outcome(
            finding: .init(
                result: verdict.result, identity: identity, domain: domain, reason: verdict.reason),
            explanation: explanation)
    }

    /// The sender to whose parts macros refer.
    private struct Sender {
        /// Never empty (RFC 7208 section 4.3).
        let localPart: [UInt8]
        let domain: String

        init(client: SMTPClientIdentity, identity: SPFFinding.Identity) {
            let address = Array(client.mailFrom.utf8)
            var local: [UInt8] = []
            if identity == .helo {
                domain = client.helo
            } else if let at = address.lastIndex(of: UInt8(ascii: "@")) {
                local = Array(address[..<at])
                domain = String(decoding: address[(at + 1)...], as: UTF8.self)
            } else {
                domain = ""
            }
            localPart = local.isEmpty ? Array("postmaster".utf8) : local
        }
    }
}
