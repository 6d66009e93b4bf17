// The store's data about users, for the users themselves.

import Accounts

extension Store {
    /// Users' own data.
    package var persons: UserExportRepository {
        UserExportRepository(
            database: database, sealer: sealer, tombstones: tombstones, events: events)
    }
}
