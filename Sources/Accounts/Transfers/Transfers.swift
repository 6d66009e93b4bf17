// The transfer of an app from one team to another.

import Database

/// The transfer of a group of apps.
package struct AppTransfer: Sendable, Hashable {
    package enum State: String, SQLCodable, Sendable, Hashable {
        /// Announced: the old team may request transfer subjects.
        case started
        /// The apps belong to the new team; grants move step by step.
        case moving
        /// Every grant has moved.
        case finished
    }

    /// Seconds for which the old address accepts the new team, tokens contain `transfer_sub`, and
    /// the new team may exchange one.
    package static let overlap: Int64 = 60 * 86_400

    package let number: Int64
    package let group: AppGroup
    package let fromTeam: String
    package let toTeam: String
    package let state: State
    package let startedAt: Int64
    package let movedAt: Int64?
    /// The end of the 60 days.
    package let endsAt: Int64?
    /// Grants that have yet to move. These three are counted as in `BoundedCount`.
    package let waiting: Int
    /// Accounts whose grant moved.
    package let moved: Int
    /// Subjects that the old team requested, or that the move created.
    package let subjects: Int
}

/// The new team's account for a transfer subject.
package struct MigratedAccount: Sendable, Hashable {
    package let sub: String
    package let email: ClientEmail?
}
