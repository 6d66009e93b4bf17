// Reasons why a database server refuses or does not answer, as far as its messages tell.

/// A fault that a person must fix at the server, in its settings, or in the URL of the database.
package enum ServerFault: Sendable, Hashable, CaseIterable {
    /// The user or the database does not exist.
    case noUser, noDatabase
    /// The URL and libpq's password file have no password, or the password is wrong.
    case noPassword, wrongPassword
    /// The user of this process is not the system user that the server expects (peer and ident
    /// authentication).
    case wrongSystemUser
    /// The server's rules refuse the user, the database or this host.
    case notAdmitted
    /// One side requires TLS and the other has none, or the certificate is not accepted.
    case encryption
    /// The server, or a pooler in front of it, has no free connection.
    case full
    /// The host has no address; no server listens there; the port is not valid.
    case noHost, noAnswer, badURL
    /// A pooler in front of the server does not know a parameter that every connection sets.
    case poolerParameter
    /// The user may not change the tables.
    case noPrivilege
    /// The server accepts no writes.
    case standby
    /// The server speaks PostgreSQL's protocol, but does not behave as PostgreSQL.
    case otherEngine
}

extension StoreFailure {
    /// The same failure with the fault to be fixed.
    package func by(_ fault: ServerFault?) -> StoreFailure {
        var failure = self
        failure.serverFault = fault
        return failure
    }
}
