// Where security event tokens of issuers are fetched (RFC 8936).

import Accounts
import Database

/// An address from which events are fetched.
package struct IssuerPoll: Sendable, Hashable {
    /// The issuer's name here.
    package let issuer: String
    package let url: String
    /// Whether plain http to other hosts is allowed.
    package let allowsHTTP: Bool

    package init(issuer: String, url: String, allowsHTTP: Bool) {
        (self.issuer, self.url, self.allowsHTTP) = (issuer, url, allowsHTTP)
    }
}

package struct IssuerPollRepository: Sendable {
    let database: any Database
    let sealer: Sealer

    /// Sets where an issuer's events are fetched, replacing any earlier setting.
    /// - Parameter token: the bearer token that the issuer gave; nil for none.
    package func set(_ poll: IssuerPoll, token: String?, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            guard try connection.row("SELECT id FROM issuers WHERE name = \(poll.issuer)") != nil
            else {
                throw .refused(
                    .notFound, "there is no issuer \(poll.issuer): see postern issuer list")
            }
            let sealed = try token.map { text throws(StoreFailure) in
                try sealer.seal(text, .issuerPoll(poll.issuer), connection)
            }
            try connection.run(
                """
                INSERT INTO issuer_polls (issuer, url, allows_http, token_key, token_sealed, created_at)
                VALUES (\(poll.issuer), \(poll.url), \(poll.allowsHTTP), \(sealed?.key), \(sealed?.octets), \(change.now))
                ON CONFLICT (issuer) DO UPDATE SET url = excluded.url, allows_http = excluded.allows_http,
                    token_key = excluded.token_key, token_sealed = excluded.token_sealed
                """)
            try connection.audit(change, "issuer.poll", "issuer:\(poll.issuer)", poll.url)
        }
    }

    /// Stops fetching an issuer's events; returns whether they were fetched.
    package func remove(_ issuer: String, _ change: Change) throws(StoreFailure) -> Bool {
        try database.write(.durable) { connection throws(StoreFailure) in
            guard try connection.run("DELETE FROM issuer_polls WHERE issuer = \(issuer)") > 0 else {
                return false
            }
            try connection.audit(change, "issuer.poll", "issuer:\(issuer)", "stopped")
            return true
        }
    }

    /// All places that are polled, each with its token.
    package func all() throws(StoreFailure) -> [(poll: IssuerPoll, token: String?)] {
        try database.rows(
            """
            SELECT p.issuer, p.url, p.allows_http, p.token_key, p.token_sealed FROM issuer_polls p
            JOIN issuers i ON i.name = p.issuer ORDER BY p.issuer
            """
        ).map { row throws(StoreFailure) in
            let poll = try IssuerPoll(
                issuer: row["issuer"], url: row["url"], allowsHTTP: row["allows_http"])
            let token = try SealedValue(row: row, "token").map { sealed throws(StoreFailure) in
                String(decoding: try sealer.open(sealed, .issuerPoll(poll.issuer)), as: UTF8.self)
            }
            return (poll, token)
        }
    }
}
