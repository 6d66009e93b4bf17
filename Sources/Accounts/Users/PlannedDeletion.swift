// A user who requested full deletion: nothing changes until the planned day, and
// the user can cancel it.

import Database

extension UserRepository {
    /// Sets the time at which the user is to be removed; nil cancels that.
    /// - Parameter time: seconds since 1970.
    package func planDeletion(_ id: String, at time: Int64?, _ change: Change) throws(StoreFailure)
    {
        try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let changed = try connection.run(
                "UPDATE users SET deletes_at = \(time) WHERE id = \(user) AND COALESCE(deletes_at, 0) <> \(time ?? 0)"
            )
            guard changed > 0 else { return }
            try connection.audit(
                change, time == nil ? "user.keep" : "user.plan-removal", "user:\(id)")
        }
    }

    /// When the user is to be removed, in seconds since 1970; nil if no removal is planned.
    package func deletion(of id: String) throws(StoreFailure) -> Int64? {
        try database.value("SELECT deletes_at FROM users WHERE handle = \(id)")
    }

    /// Removes users whose time has come, the longest due first, at most a
    /// hundred. Returns the number.
    /// - Parameter now: seconds since 1970.
    package func removeDue(now: Int64) throws(StoreFailure) -> Int {
        let due: [String] = try database.values(
            """
            SELECT handle FROM users WHERE deletes_at IS NOT NULL AND deletes_at <= \(now) ORDER BY deletes_at LIMIT 100
            """)
        for id in due {
            try accounts.events.write(at: now) { connection, tracker throws(StoreFailure) in
                // The user may have cancelled the deletion, or been removed by another process,
                // since the query.
                let user: Int64? = try connection.value(
                    "SELECT id FROM users WHERE handle = \(id) AND deletes_at IS NOT NULL AND deletes_at <= \(now)"
                )
                guard let user else { return }
                try remove(
                    connection, tracker, user: user, id: id, Change(actor: "user:\(id)", now: now))
            }
        }
        return due.count
    }

    /// The tag of the language in which Postern writes to the user; nil if none is known.
    package func language(of id: String) throws(StoreFailure) -> String? {
        try database.value("SELECT language FROM users WHERE handle = \(id)")
    }

    /// Stores the language that the user reads.
    package func setLanguage(of id: String, _ tag: String) throws(StoreFailure) {
        guard try language(of: id) != tag else { return }
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("UPDATE users SET language = \(tag) WHERE handle = \(id)")
        }
    }
}
