// Live lists as users see them, and their limits.

import CEL
import Database

/// Limits of live lists. A change beyond a limit is refused, with the limit in the message.
package enum LiveListLimits {
    /// Lists of a team: as many as a person can keep track of.
    package static let listsOfTeam: Int64 = 50
    /// Lists of the installation.
    package static let listsOfInstallation: Int64 = 200
    /// Entries of a team's list: every host keeps them in memory.
    package static let entriesOfTeam: Int64 = 100_000
    /// Entries of an installation's list: some 16 MB of IPv4 ranges, or 80 MB
    /// of texts, on every host.
    package static let entriesOfInstallation: Int64 = 1_000_000
    /// Octets of an entry: the longest domain has 253.
    package static let valueOctets = 256
    /// Octets of a reason.
    package static let reasonOctets = 200
    /// Entries that one change adds or removes: as many as the store
    /// handles in a tenth of a second.
    package static let entriesOfChange = 1_000
    /// Seconds for which a removed entry is stored, so that hosts see the removal. A host that was
    /// disconnected for longer reads the whole list.
    package static let removedFor: Int64 = 3_600
}

extension LiveListKind: SQLCodable {}

extension LiveListKind {
    /// The form of an entry, for refusals.
    var hint: String {
        switch self {
        case .text: "it is empty"
        case .personal:
            "give an email address or a phone number alone, without other columns of a table"
        case .domain: "give a domain, as in example.org: it includes all domains below it"
        case .range:
            "give an address or a range without spaces, as in 198.51.100.0/24 or 2001:db8::/32"
        }
    }
}

/// A list as stored.
package struct LiveList: Sendable, Hashable {
    package let number: Int64
    /// The team's number; nil for a list of the installation.
    package let team: Int64?
    /// The name after `lists.` in policies.
    package let name: String
    package let kind: LiveListKind
    /// Entries in force or recently expired.
    package let entries: Int64
    /// Seconds since 1970.
    package let createdAt: Int64
    package let changedAt: Int64
    let generation: Int64
    let staging: Int64
    let revision: Int64

    static let select: SQL =
        """
        SELECT id, team_id, name, kind, entries, created_at, changed_at, generation, staging, revision FROM live_lists
        WHERE removed_at IS NULL
        """

    init(row: SQLRow) throws(StoreFailure) {
        number = try row["id"]
        team = try row["team_id"]
        name = try row["name"]
        kind = try row["kind"]
        entries = try row["entries"]
        createdAt = try row["created_at"]
        changedAt = try row["changed_at"]
        generation = try row["generation"]
        staging = try row["staging"]
        revision = try row["revision"]
    }

    var maximumEntries: Int64 {
        team == nil ? LiveListLimits.entriesOfInstallation : LiveListLimits.entriesOfTeam
    }
}

/// An entry to add.
package struct LiveListEntry: Sendable, Hashable {
    /// As written; for a personal list the value itself, which is not stored.
    package let value: String
    /// Shown to people; empty for none.
    package let reason: String
    /// Seconds since 1970; nil for never.
    package let expiresAt: Int64?

    package init(_ value: String, reason: String = "", expiresAt: Int64? = nil) {
        self.value = value
        self.reason = reason
        self.expiresAt = expiresAt
    }
}

/// An entry as stored.
package struct KeptListEntry: Sendable, Hashable {
    /// In its normal form; for a personal list the keyed hash in base32.
    package let value: String
    package let reason: String
    /// Seconds since 1970.
    package let addedAt: Int64
    package let expiresAt: Int64?
}
