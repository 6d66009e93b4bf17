// What providers think of this host: block lists that the operator names, and whether it sends much more than it did.

import Decisions
import MailAuth

package enum ReputationChecks {
    /// Looks for the addresses that mail leaves from in block lists of IP addresses (RFC 5782).
    /// - Parameter lists: domains, as in `zen.blocklist.example`.
    package static func blocked(_ addresses: [IPAddress], lists: [String], resolver: any DNSResolver) -> [Check] {
        lists.map { list in
            let name = "block list \(list)"
            var listed: [String] = []
            for address in addresses {
                let query = address.reverseName.replacing(".in-addr.arpa", with: "").replacing(".ip6.arpa", with: "") + "." + list
                switch resolver.query(query, .a) {
                case .temporaryFailure(let reason):
                    return .warning(
                        name, "\(list) gives no answer: \(reason)", remedy: "try again later, or take it out of block_lists")
                case .noData, .nxDomain: continue
                case .records(let records):
                    let answers = records.compactMap { record -> [UInt8]? in
                        if case .address(let octets) = record { octets } else { nil }
                    }
                    // 127.255.255.0/24 is how lists say that they do not answer this resolver.
                    if answers.contains(where: { $0.starts(with: [127, 255, 255]) }) {
                        return .warning(
                            name, "\(list) does not answer your resolver, as it does for no public one",
                            remedy: "use a resolver of your own (docs/OPERATING.md), or take it out of block_lists")
                    }
                    if answers.contains(where: { $0.first == 127 }) { listed.append(address.description) }
                }
            }
            guard listed.isEmpty else {
                return .broken(
                    name, "\(list) lists \(listed.joined(separator: ", ")): who uses it refuses your mail",
                    remedy: "read there why, fix that, and ask for removal")
            }
            return .ok(name, "\(list) does not list this host")
        }
    }

    /// Below this many messages on a day no provider looks at how they rise.
    static let unnoticed = 1_000
    /// How much more than on the busiest of the days before: what providers advise new senders to stay within.
    static let usualRise = 2

    /// Messages by provider: large ones by their domain, all other domains together, as one of them could name a person.
    package static func byProvider(_ domains: [String: Int]) -> [String: Int] {
        domains.reduce(into: [:]) { sums, entry in
            sums[DomainClass.of(entry.key) == .provider ? entry.key : "others", default: 0] += entry.value
        }
    }

    /// Looks at what was sent a day to each provider. Whole days, the last one yesterday.
    /// - Parameter days: messages by provider, for each day that there is, the latest first; none before the relay began.
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
                    "warm-up",
                    "yesterday \(sent): to \(providers) more than twice as much as on any of the \(before.count) days before",
                    remedy: "let a new host's mail rise slowly, doubling at most each day, or providers defer and refuse it")
            ]
        }
        return [.ok("warm-up", "yesterday \(sent) messages were sent")]
    }
}
