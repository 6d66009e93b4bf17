// Why a database's server does not serve us, as far as it says.

/// What someone has to put right at a server, in its settings or in the URL of the database.
package enum ServerFault: Sendable, Hashable, CaseIterable {
    /// There is no such user, or no such database.
    case noUser, noDatabase
    /// The URL, or libpq's password file, has no password; or it is a wrong one.
    case noPassword, wrongPassword
    /// The user of this process is not the one whom the server takes it for (peer and ident authentication).
    case wrongSystemUser
    /// The server's rules refuse the user, the database or this host.
    case notAdmitted
    /// One side demands TLS and the other has none, or the certificate is not accepted.
    case encryption
    /// The server, or a pooler before it, has no connection left.
    case full
    /// The host has no address; nothing listens there; the port is not a valid one.
    case noHost, noAnswer, badURL
    /// A pooler before the server does not know a parameter that every connection sets.
    case poolerParameter
    /// The user may not change the tables.
    case noPrivilege
    /// The server takes no writes.
    case standby
}

extension StoreFailure {
    /// The same failure with what the server says is to be put right.
    package func by(_ fault: ServerFault?) -> StoreFailure {
        var failure = self
        failure.serverFault = fault
        return failure
    }
}
