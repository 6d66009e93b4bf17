// What the store knows of users for themselves.

import Accounts

extension Store {
    /// What users see of themselves.
    package var persons: UserExportRepository {
        UserExportRepository(database: database, sealer: sealer, tombstones: tombstones, events: events)
    }
}
