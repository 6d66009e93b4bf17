// Lists whose entries change while a policy is in force: how a policy names one, and what it is asked.

/// What the entries of a live list are.
package enum LiveListKind: String, Sendable, Hashable, CaseIterable {
    /// Texts, compared octet for octet.
    case text
    /// Domains; each means itself and all domains below it.
    case domain
    /// Addresses and ranges of addresses in CIDR notation.
    case range
    /// Texts of which only keyed hashes are kept.
    case personal
}

/// A live list as a policy names it.
package struct LiveListName: Sendable, Hashable {
    /// Behind `lists.`.
    package let name: String
    package let kind: LiveListKind
    /// Whether it is the list of the team that asks; else the installation's.
    package let isTeams: Bool

    package init(_ name: String, _ kind: LiveListKind, isTeams: Bool = false) {
        self.name = name
        self.kind = kind
        self.isTeams = isTeams
    }
}

/// The live lists as they are when a question is answered.
package protocol LiveLists: Sendable {
    /// Whether the list means the text. A list that does not exist, or is of another kind, is empty.
    func contains(_ text: String, in list: LiveListName) -> Bool
}

extension ResolvedExpression {
    /// The first live list that is used otherwise than on the right of `in`: its entries cannot be read one by one.
    package var misusedLiveList: ResolvedExpression? {
        if case .liveList = kind { return self }
        for child in children {
            if case .binary(.in, _, let right) = kind, right === child, case .liveList = child.kind { continue }
            if let found = child.misusedLiveList { return found }
        }
        return nil
    }
}
