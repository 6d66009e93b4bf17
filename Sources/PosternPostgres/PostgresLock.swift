// An advisory lock that belongs to a connection.

import Database
import Synchronization

/// Lasts as long as its connection: PostgreSQL releases the lock when that ends.
final class PostgresLock: DatabaseLock {
    /// Nil after it is released or lost.
    private let link: Mutex<PostgresLink?>

    init(link: PostgresLink) { self.link = Mutex(link) }

    /// Queries the server: the connection may have been lost unnoticed, and another host may have
    /// the lock by now.
    var isHeld: Bool {
        link.withLock { link in
            guard let open = link else { return false }
            // A server that is now a standby has no locks.
            if (try? open.rows("SELECT pg_is_in_recovery()", []))?.first?.values == [false.sqlValue]
            {
                return true
            }
            open.close()
            link = nil
            return false
        }
    }

    func release() {
        link.withLock { link in
            // Released explicitly, because the server notices the end of the connection only a
            // little later.
            try? link?.script("SELECT pg_advisory_unlock_all()")
            link?.close()
            link = nil
        }
    }

    deinit { release() }
}
