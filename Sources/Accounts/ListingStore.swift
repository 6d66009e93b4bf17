// What may be read at a standby: listings, statistics, backtests, exports and the audit.

import Database

/// A part of the store that answers people and reports, and decides nothing.
///
/// Everything that permits or forbids gets a `Store`, and no `Store` can be made of this: so mail,
/// decisions, sign-in and the users' page never read at a standby. Only what gets this value may,
/// and its database refuses changes. Other modules add their own listings (`extension
/// ListingStore`).
package struct ListingStore: Sendable {
    /// Changes through it are refused if it may read at a standby.
    package let database: any Database
    package let audit: AuditRepository
    package let accountList: AccountListRepository
    package let rejections: RejectionRepository

    /// - Parameter database: one that reads at a standby (`ReplicaDatabase`), or the store's own.
    package init(database: any Database) {
        self.database = database
        audit = AuditRepository(database: database)
        accountList = AccountListRepository(database: database)
        rejections = RejectionRepository(database: database)
    }
}

extension Store {
    /// Listings of this store's own database: for installations without a standby, and within a
    /// transaction.
    package var listings: ListingStore { ListingStore(database: database) }
}
