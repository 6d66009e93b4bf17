// An advisory lock, held by a connection.

import Database
import Synchronization

/// Lives as long as its connection: PostgreSQL lets go of the lock when that ends.
final class PostgresLock: DatabaseLock {
    /// Nil once it is released or lost.
    private let link: Mutex<PostgresLink?>

    init(link: PostgresLink) { self.link = Mutex(link) }

    /// Asks the server: a connection may have been cut without our noticing, and another host have the lock since.
    var isHeld: Bool {
        link.withLock { link in
            guard let open = link else { return false }
            // What is a standby now holds nothing.
            if (try? open.rows("SELECT pg_is_in_recovery()", []))?.first?.values == [false.sqlValue] { return true }
            open.close()
            link = nil
            return false
        }
    }

    func release() {
        link.withLock { link in
            // Said and answered: the end of the connection alone is noticed a little later.
            try? link?.script("SELECT pg_advisory_unlock_all()")
            link?.close()
            link = nil
        }
    }

    deinit { release() }
}
