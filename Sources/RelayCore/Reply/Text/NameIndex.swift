// The names of one reply in tables for search: the words that begin a mention, and the text that
// may precede and follow them.

import InternetMessage
import Support

/// Search tables over the lower-case spellings of everything that must be found. Built once for a
/// message.
struct NameIndex {
    enum Kind {
        /// A domain of a hidden address, or a local part that is also hidden alone. `TypedSearch`
        /// compares these. Here they only decide which texts are read.
        case user
        /// A relay domain.
        case relayDomain(String)
        /// The octets after the key id in the account's tokens.
        case token
    }

    struct Pattern {
        let octets: [UInt8]
        let kind: Kind
    }

    /// Equivalent domains, with the local parts that are hidden there.
    struct Group {
        var ignoresDots: Bool
        var forward = OctetTrie()
    }

    /// More patterns than a person's message ever has. A message with more is refused and not
    /// rewritten (`isOverfull`).
    static let maximumPatterns = 2_000

    private(set) var groups: [Group] = []
    private(set) var patterns: [Pattern] = []
    /// The domains of the hidden addresses in every spelling.
    private(set) var hiddenDomains: Set<[UInt8]> = []
    /// The groups by domain, in every spelling.
    private var groupOfDomain: [[UInt8]: Int] = [:]
    /// The local parts that are also hidden when they are alone.
    private(set) var bareLocals: Set<[UInt8]> = []
    /// The addresses as gateways write them in a path, with `_` for each mark: `jane_home_example`.
    private(set) var joined: Set<[UInt8]> = []
    /// Whether there were more names than can be searched for in linear time.
    private(set) var isOverfull = false
    /// Finds indices into `patterns`.
    private(set) var table = WordTable()
    private var seen: Set<[UInt8]> = []

    init(names: ReplyNames, anchors: [[UInt8]]) {
        isOverfull = names.hidden.count > Self.maximumPatterns
        var groupOf: [String: Int] = [:]
        for inbox in names.hidden.prefix(Self.maximumPatterns) {
            let address = inbox.revealed
            let canonical = names.providers.canonical(address)
            let index: Int
            let head = ProviderRules.sisters(of: canonical.domain)[0]
            if let known = groupOf[head] {
                index = known
            } else {
                index = groups.count
                groupOf[head] = index
                groups.append(Group(ignoresDots: names.providers.ignoresDots(canonical.domain)))
                for spelling in Self.spellings(
                    [address.domain] + names.providers.aliases(of: canonical.domain))
                {
                    add(spelling, .user)
                    groupOfDomain[spelling] = index
                    hiddenDomains.insert(spelling)
                }
            }
            for local in CanonicalForms.lowercased(canonical.localPart) {
                groups[index].forward.insert(local)
            }
            joined.insert(
                Self.joined(
                    Self.octets(address.localPart) + [UInt8(ascii: "@")]
                        + Self.octets(address.domain)))
            for local in CanonicalForms.lowercased(address.localPart).union(
                CanonicalForms.lowercased(canonical.localPart))
            where LocalPartGuard(local) != .none {
                add(local, .user)
                bareLocals.insert(local)
            }
        }
        for domain in names.relayDomains { add(Self.octets(domain), .relayDomain(domain)) }
        for anchor in anchors { add(anchor, .token) }
        seen = []
    }

    /// Whether an address is a hidden one. Both halves are in lower case; the
    /// local part may have a tag.
    func hides(local: ArraySlice<UInt8>, at domain: [UInt8]) -> Bool {
        guard let number = groupOfDomain[domain] else { return false }
        let group = groups[number]
        return TypedSearch.locals(local).contains { local in
            var node = OctetTrie.root
            for octet in local where !(group.ignoresDots && octet == UInt8(ascii: ".")) {
                guard let next = group.forward.step(node, octet) else { return false }
                node = next
            }
            return node != OctetTrie.root && group.forward.isEnd(node)
        }
    }

    static func joined(_ address: [UInt8]) -> [UInt8] {
        address.map { octet in
            switch octet {
            case 0x27, 0x2B, 0x2D, 0x2E, 0x40: UInt8(ascii: "_")
            default: octet
            }
        }
    }

    static func octets(_ text: String) -> [UInt8] { Array(text.lowercased().utf8) }

    /// Each domain as written, in A-labels and in U-labels.
    static func spellings(_ domains: [String]) -> [[UInt8]] {
        var all: [[UInt8]] = []
        for domain in domains {
            for spelling in [domain, DomainName.toASCII(domain), DomainName.toUnicode(domain)]
                .compactMap({ $0 })
            {
                for octets in CanonicalForms.lowercased(spelling) where !all.contains(octets) {
                    all.append(octets)
                }
            }
        }
        return all
    }

    private mutating func add(_ octets: [UInt8], _ kind: Kind) {
        // A single octet is not a mail domain, and would be found in every word.
        guard octets.count >= 2, seen.insert(octets).inserted else { return }
        guard patterns.count < Self.maximumPatterns else {
            isOverfull = true
            return
        }
        table.append(octets)
        patterns.append(Pattern(octets: octets, kind: kind))
    }

    /// The first two octets of every pattern.
    var pairs: PairSet { table.pairs }

}

/// A set of octet strings that is searched octet by octet.
struct OctetTrie {
    private var next: [[UInt8: Int]] = [[:]]
    private var ends: [Bool] = [false]

    /// The start node.
    static let root = 0

    mutating func insert(_ octets: some Sequence<UInt8>) {
        var node = Self.root
        for octet in octets {
            if let child = next[node][octet] {
                node = child
            } else {
                next.append([:])
                ends.append(false)
                next[node][octet] = next.count - 1
                node = next.count - 1
            }
        }
        if node != Self.root { ends[node] = true }
    }

    func step(_ node: Int, _ octet: UInt8) -> Int? { next[node][octet] }
    func isEnd(_ node: Int) -> Bool { ends[node] }
}

extension ProviderRules {
    /// A canonical domain, its sisters, and the other names under which their provider accepts
    /// mail.
    func aliases(of domain: String) -> [String] {
        let sisters = Self.sisters(of: domain)
        return sisters
            + rules.filter { rule in
                sisters.contains { $0.hasSameOctets(as: rule.value.sameAs ?? "") }
            }.keys.sorted()
    }

    func ignoresDots(_ domain: String) -> Bool { rules[domain]?.ignoresDots ?? false }
}
