// Rates how likely a user is to be real, if the operator's page did not.

import Accounts
import Database

/// Decides within the transaction of an authorization.
package protocol StatusSource: Sendable {
    /// The status of a user for an app at its first request or after a revocation;
    /// nil if the user has one.
    /// - Parameter now: seconds since 1970.
    func status(
        _ connection: any DatabaseConnection, of request: ProviderAuthorization, now: Int64
    ) throws(StoreFailure) -> GivenStatus?
}
