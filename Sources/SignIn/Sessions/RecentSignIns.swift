// The latest sign-ins of a user. The user sees them, and can notice a sign-in by someone else.

import Accounts
import Database

/// One sign-in.
package struct RecentSignIn: Sendable, Hashable {
    /// Seconds since 1970.
    package let at: Int64
    package let method: SignInMethod
}

extension PortalRepository {
    /// The number of sign-ins kept for one user.
    static let signInsPerUser = 20

    /// The latest sign-ins of a user, the newest first, at most `limit`.
    package func signIns(user id: String, limit: Int = 10) throws(StoreFailure) -> [RecentSignIn] {
        try database.rows(
            """
            SELECT x.at, x.method FROM page_sign_ins x JOIN users u ON u.id = x.user_id WHERE u.handle = \(id)
            ORDER BY x.id DESC LIMIT \(limit)
            """
        ).map { row throws(StoreFailure) in try RecentSignIn(at: row["at"], method: row["method"]) }
    }
}
