// The names that the leak check searches for in a reply.

import InternetMessage
import LeakSearch
import Support

extension LeakNames {
    /// The addresses of the user that are hidden in a reply, in every spelling.
    init(_ names: ReplyNames) {
        var inboxes: [Inbox] = []
        var words: Set<[UInt8]> = []
        // With more, nothing is relayed (`NameIndex.isOverfull`).
        for inbox in names.hidden.prefix(NameIndex.maximumPatterns) {
            let address = inbox.revealed
            let canonical = names.providers.canonical(address)
            var domains = [address.domain] + names.providers.aliases(of: canonical.domain)
            domains += domains.flatMap {
                [DomainName.toASCII($0), DomainName.toUnicode($0)].compactMap { $0 }
            }
            let locals = CanonicalForms.lowercased(address.localPart).union(
                CanonicalForms.lowercased(canonical.localPart))
            let ignoresDots = names.providers.ignoresDots(canonical.domain)
            for local in locals {
                for domain in Set(domains.flatMap(CanonicalForms.lowercased)) {
                    inboxes.append(Inbox(local: local, domain: domain, ignoresDots: ignoresDots))
                }
                if TypedBounds.counts(local) { words.insert(local) }
            }
        }
        let relay = names.relayAddress
        self.init(
            inboxes: inboxes, words: Array(words),
            relayAddress: Self.octets(relay.localPart) + [0x40] + Self.octets(relay.domain),
            relayDomains: names.relayDomains.map(Self.octets))
        tokens = Tokens(anchors: OwnTokens(names: names).anchors) {
            // The rewriting refuses messages with more tokens than it can read. For all others, the
            // check reads more than the rewriting did.
            let own = OwnTokens(names: names, maximumReadings: 3 * OwnTokens.maximumReadings)
            return { word, index in
                word.withUnsafeBufferPointer {
                    own.find(around: index, in: $0, joins: { _ in true }, isApart: { _ in false })
                        != nil
                }
            }
        }
    }

    private static func octets(_ text: String) -> [UInt8] { Array(text.lowercased().utf8) }
}
