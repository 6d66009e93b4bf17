// The latest sign-ins of a user, shown to that user, who can notice a sign-in by someone else.

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
    private static let signInsPerUser = 20

    /// Records that a user signed in.
    func note(
        _ connection: any DatabaseConnection, signInOf user: Int64, by method: SignInMethod, now: Int64
    ) throws(StoreFailure) {
        try connection.run("INSERT INTO page_sign_ins (user_id, at, method) VALUES (\(user), \(now), \(method))")
        try connection.keepNewest(Self.signInsPerUser, of: "page_sign_ins", user: user)
    }

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
