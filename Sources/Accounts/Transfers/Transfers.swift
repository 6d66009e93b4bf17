// An app's way from one team to another.

import Database

/// The transfer of a group of apps.
package struct AppTransfer: Sendable, Hashable {
    package enum State: String, SQLCodable, Sendable, Hashable {
        /// Announced: the old team may ask for transfer subjects.
        case started
        /// The apps are the new team's; grants follow one by one.
        case moving
        /// Every grant has followed.
        case finished
    }

    /// How long the old address admits the new team, tokens say `transfer_sub`, and the new team may exchange one. Seconds.
    package static let overlap: Int64 = 60 * 86_400

    package let number: Int64
    package let group: AppGroup
    package let fromTeam: String
    package let toTeam: String
    package let state: State
    package let startedAt: Int64
    package let movedAt: Int64?
    /// When the 60 days are over.
    package let endsAt: Int64?
    /// Grants that have yet to follow. These three are as `BoundedCount` has them.
    package let waiting: Int
    /// Accounts whose grant moved.
    package let moved: Int
    /// Subjects that the old team asked for, or that the move made.
    package let subjects: Int
}

/// What the new team gets for a transfer subject.
package struct MigratedAccount: Sendable, Hashable {
    package let sub: String
    package let email: ClientEmail?
}
