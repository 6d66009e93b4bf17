// A user who asked that everything be deleted: until the day that was set nothing changes, and they may think better of it.

import Database

extension UserRepository {
    /// Sets the time at which the user is to be removed; nil takes that back.
    /// - Parameter time: seconds since 1970.
    package func planDeletion(_ id: String, at time: Int64?, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let changed = try connection.run(
                "UPDATE users SET deletes_at = \(time) WHERE id = \(user) AND COALESCE(deletes_at, 0) <> \(time ?? 0)")
            guard changed > 0 else { return }
            try connection.audit(change, time == nil ? "user.keep" : "user.plan-removal", "user:\(id)")
        }
    }

    /// When the user is to be removed, in seconds since 1970; nil where they stay.
    package func deletion(of id: String) throws(StoreFailure) -> Int64? {
        try database.value("SELECT deletes_at FROM users WHERE handle = \(id)")
    }

    /// Removes those whose time has come, the longest due first, at most a hundred; how many.
    /// - Parameter now: seconds since 1970.
    package func removeDue(now: Int64) throws(StoreFailure) -> Int {
        let due: [String] = try database.values(
            """
            SELECT handle FROM users WHERE deletes_at IS NOT NULL AND deletes_at <= \(now) ORDER BY deletes_at LIMIT 100
            """)
        for id in due {
            try accounts.events.write(at: now) { connection, tracker throws(StoreFailure) in
                // Kept, or removed elsewhere, since it was looked for.
                let user: Int64? = try connection.value(
                    "SELECT id FROM users WHERE handle = \(id) AND deletes_at IS NOT NULL AND deletes_at <= \(now)")
                guard let user else { return }
                try remove(connection, tracker, user: user, id: id, Change(actor: "user:\(id)", now: now))
            }
        }
        return due.count
    }

    /// The tag of the language in which Postern writes to the user; nil where none is known.
    package func language(of id: String) throws(StoreFailure) -> String? {
        try database.value("SELECT language FROM users WHERE handle = \(id)")
    }

    /// Keeps the language that the user reads.
    package func setLanguage(of id: String, _ tag: String) throws(StoreFailure) {
        guard try language(of: id) != tag else { return }
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("UPDATE users SET language = \(tag) WHERE handle = \(id)")
        }
    }
}
