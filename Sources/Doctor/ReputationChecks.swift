// The reputation of this host: block lists that the operator names, and sudden increases of its
// mail.

import Decisions
import MailAuth
import Support

package enum ReputationChecks {
    /// Looks up the addresses from which mail leaves in block lists of IP addresses (RFC 5782).
    /// - Parameter lists: domains, for example `zen.blocklist.example`.
    package static func blocked(
        _ addresses: [IPAddress], lists: [String], resolver: any DNSResolver
    ) -> [Check] {
        lists.map { list in
            let name = CheckKind.blockList.of(list)
            // Every list has this entry (RFC 5782 section 5): without it, the name is misspelt or
            // the list does not exist.
            switch answer("2.0.0.127." + list, resolver) {
            case .listed: break
            case .refused:
                return .warning(
                    name, "\(list) does not answer public resolvers",
                    remedy:
                        "use your own resolver (docs/OPERATING-DNS.md), or remove it from block_lists"
                )
            case .notListed, .unknown:
                return .warning(
                    name, "\(list) does not answer as a block list does",
                    remedy: "look at its name in block_lists, and try again later")
            }
            let found = addresses.map { address in
                (address, answer(query(address) + "." + list, resolver))
            }
            let listed = found.filter { $0.1 == .listed }.map(\.0.description)
            guard listed.isEmpty else {
                return .broken(
                    name,
                    "\(list) lists \(listed.joined(separator: ", ")): servers that use it refuse your mail",
                    remedy: "find the reason there, fix it, and request removal")
            }
            guard found.allSatisfy({ $0.1 == .notListed }) else {
                return .warning(
                    name, "\(list) gives no answer for this host", remedy: "try again later")
            }
            return .ok(name, "\(list) does not list this host")
        }
    }

    private enum Answer { case listed, notListed, refused, unknown }

    /// A list answers with 127.0.0.0/8. An answer in 127.255.255.0/24 means that it refuses this
    /// resolver.
    private static func answer(_ name: String, _ resolver: any DNSResolver) -> Answer {
        switch resolver.query(name, .a) {
        case .temporaryFailure: return .unknown
        case .noData, .nxDomain: return .notListed
        case .records(let records):
            var octets: [[UInt8]] = []
            for case .address(let found) in records { octets.append(found) }
            if octets.contains(where: { $0.starts(with: [127, 255, 255]) }) { return .refused }
            return octets.contains { $0.first == 127 } ? .listed : .unknown
        }
    }

    private static func query(_ address: IPAddress) -> String {
        address.reverseName.replacing(".in-addr.arpa", with: "").replacing(".ip6.arpa", with: "")
    }

    /// Providers do not react to an increase below this number of messages a day.
    static let unnoticed = 1_000
    /// The allowed increase over the busiest earlier day: providers advise new senders not to
    /// exceed it.
    static let usualRise = 2

    /// Messages by provider: large ones by domain, all others as one sum, because a small domain
    /// could identify a person.
    package static func byProvider(_ domains: [String: Int]) -> [String: Int] {
        domains.reduce(into: [:]) { sums, entry in
            sums[DomainClass.of(entry.key) == .provider ? entry.key : "others", default: 0] +=
                entry.value
        }
    }

    /// Checks the messages per day to each provider. Counts whole days, up to yesterday.
    /// - Parameter days: messages by provider for each recorded day, the latest first, beginning
    ///   with the relay's first day.
    package static func warmUp(_ days: [[String: Int]]) -> [Check] {
        guard let yesterday = days.first, !yesterday.isEmpty else { return [] }
        let before = days.dropFirst()
        let steep = yesterday.filter { provider, count in
            count >= unnoticed && count > usualRise * (before.map { $0[provider] ?? 0 }.max() ?? 0)
        }
        let sent = yesterday.sorted { ($0.value, $1.key) > ($1.value, $0.key) }.prefix(6)
            .map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        guard steep.isEmpty else {
            let providers = steep.keys.sorted().joined(separator: ", ")
            return [
                .warning(
                    .warmUp,
                    "yesterday \(sent): to \(providers) more than twice as much as on any of the \(before.count) days before",
                    remedy:
                        "let a new host's mail rise slowly, doubling at most each day, or providers defer and refuse it"
                )
            ]
        }
        return [.ok(.warmUp, "yesterday \(sent) messages were sent")]
    }
}
