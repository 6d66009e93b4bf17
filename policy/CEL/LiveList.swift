// Lists whose entries change while a policy is in force: their names in policies, and their kinds.

/// The kind of a live list's entries.
package enum LiveListKind: String, Sendable, Hashable, CaseIterable {
    /// Texts, compared octet for octet.
    case text
    /// Domains; each entry matches itself and all its subdomains.
    case domain
    /// Addresses and ranges of addresses in CIDR notation.
    case range
    /// Texts stored only as keyed hashes.
    case personal
}

/// A live list as named by a policy.
package struct LiveListName: Sendable, Hashable {
    /// The name after `lists.`.
    package let name: String
    package let kind: LiveListKind
    /// Whether it is the list of the requesting team; otherwise the installation's.
    package let isTeams: Bool

    package init(_ name: String, _ kind: LiveListKind, isTeams: Bool = false) {
        self.name = name
        self.kind = kind
        self.isTeams = isTeams
    }
}

/// The live lists at the time when a request is answered.
package protocol LiveLists: Sendable {
    /// Whether the list matches the text. A list that does not exist, or
    /// has another kind, is empty.
    func contains(_ text: String, in list: LiveListName) -> Bool
}

extension ResolvedExpression {
    /// The first live list in any place other than the right of `in`: its entries cannot be read
    /// one by one.
    package var misusedLiveList: ResolvedExpression? {
        if case .liveList = kind { return self }
        for child in children {
            if case .binary(.in, _, let right) = kind, right === child, case .liveList = child.kind
            {
                continue
            }
            if let found = child.misusedLiveList { return found }
        }
        return nil
    }
}
