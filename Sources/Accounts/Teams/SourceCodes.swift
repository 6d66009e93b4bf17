// Codes that prove the addresses from which teams want to send. Postern mails a code to the
// address, and the team returns it.

import Database
import InternetMessage
import MailCrypto
import Support

/// A code for an address: the content of its message. The code is stored nowhere else.
package struct SourceCode: Sendable {
    /// The store's own number.
    let number: Int64
    package let address: AddrSpec
    /// The name of the team that requested it, for people.
    package let teamName: String
    /// Six digits.
    package let code: String
    /// Seconds since 1970.
    package let expiresAt: Int64
}

extension SourceCode: CustomStringConvertible, CustomReflectable {
    /// Never the code.
    package var description: String { "<code of a source>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The facts about an unsent message that the limits need.
package protocol UnsentMail: Error {
    /// Whether the mail server got the recipient. Then the message may have arrived, or the refusal
    /// reveals something about the mailbox.
    var namedRecipient: Bool { get }
}

/// The last code that was mailed for a claim, while it is valid.
package struct MailedCode: Encodable, Sendable, Hashable {
    let sentAt: Timestamp
    let expiresAt: Timestamp
    package let triesLeft: Int
}

/// The limits of messages and of wrong codes, so that no team can send endless mail to others, or
/// guess codes.
package enum SourceCodeLimits {
    /// Seconds for which a code is valid: the person who reads the mail may not be at their desk.
    package static let lifetime: Int64 = 3600
    /// Wrong codes for one message.
    package static let tries = 5
    /// Wrong codes of a team in a day, over all addresses: twenty guesses
    /// in a million find nothing.
    package static let wrongPerDay = 20
    /// Messages to one mailbox for one team in a day. All spellings of an address are one mailbox.
    package static let perTeamAndMailbox = 3
    /// Messages to one mailbox in a day, over all teams: one team alone cannot use them up.
    package static let perMailbox = 6
    /// Messages for one team in a day.
    package static let perTeam = 20
    /// The window of all these limits, and how long a message is kept.
    static let day: Int64 = 86_400
    /// Messages for one team in an hour that the mail server never got and that no other limit
    /// counts. Without it, repeated requests while the server is down would fill the store.
    package static let unsentPerTeam = 60
    static let hour: Int64 = 3600
    /// `expires_at` of the code of such a message.
    fileprivate static let unsent: Int64 = 0

    /// Tries that remain after `used` tries.
    fileprivate static func left(_ used: Int) -> Int { max(0, tries - used) }
}

extension SourceClaimRepository {
    /// Creates a code for an address that a team claimed; the previous code is invalid from then
    /// on. Its message counts, unless `withdraw` removes it from the count.
    /// - Parameter ifNone: returns nil if a usable code already exists.
    /// - Throws: `notFound` without a claim, `invalid` for a domain, `exists` for an address
    ///   that is proved, `limit`.
    package func newCode(
        team id: String, address text: String, ifNone: Bool, _ change: Change
    ) throws(StoreFailure) -> SourceCode? {
        let code = try SecretHash.newCode()
        return try database.write(.durable) { connection throws(StoreFailure) -> SourceCode? in
            let team = try connection.team(id)
            let claim = try connection.claim(of: team, to: SourceRepository.normal(text))
            let address = try claim.address
            guard claim.state != .proved else {
                throw .refused(.exists, "\(claim.value) is proved already")
            }
            if ifNone, let last = try connection.lastCode(of: claim, now: change.now),
                last.triesLeft > 0
            {
                return nil
            }
            try connection.checkSourceCodes(team, index.search(address).canonical, now: change.now)
            let expiresAt = change.now + SourceCodeLimits.lifetime
            let number = try connection.inserted(
                """
                INSERT INTO source_codes (claim_token, team_id, mailbox_index, code_hash, sent_at, expires_at)
                VALUES (\(claim.token), \(team.number), \(index.search(address).canonical.0), \(hash(code, claim)), \(change.now),
                    \(expiresAt)) RETURNING id
                """)
            try connection.audit(change, "source.code", "team:\(id)", claim.value)
            return SourceCode(
                number: number, address: address, teamName: team.name, code: code,
                expiresAt: expiresAt)
        }
    }

    /// Ends a code whose message was not sent, so that the next request creates another one. Its
    /// wrong tries still count.
    /// - Parameter counts: whether the message counts for the day; false if it
    ///   certainly reached no one.
    package func withdraw(_ code: SourceCode, counts: Bool, now: Int64) throws(StoreFailure) {
        let end: Int64 = counts ? now : SourceCodeLimits.unsent
        try database.write(.durable) { connection throws(StoreFailure) in
            _ = try connection.run(
                "UPDATE source_codes SET expires_at = \(end) WHERE id = \(code.number)")
        }
    }

    /// Proves an address by the code that was mailed to it. A proved address stays proved. A wrong
    /// code is counted and refused (`invalid`). After the last try, or without a valid code, it is
    /// refused with `unmet`; after too many wrong codes in a day, with `limit`.
    package func prove(
        team id: String, address text: String, code: String, _ change: Change
    ) throws(StoreFailure) -> SourceClaim {
        guard let digits = TypedCode.digits(code) else {
            throw .refused(.invalid, "a code has six digits")
        }
        // A refusal thrown inside the transaction would undo the count of the try.
        let outcome: Result<SourceClaim, StoreFailure> = try database.write(.durable) {
            connection throws(StoreFailure) in
            let team = try connection.team(id)
            let claim = try connection.claim(of: team, to: SourceRepository.normal(text))
            _ = try claim.address
            guard claim.state != .proved else { return .success(claim) }
            guard let last = try connection.lastCode(of: claim, now: change.now) else {
                return .failure(
                    .refused(
                        .unmet, "no code is valid: it has expired or was never sent; request one"))
            }
            guard last.triesLeft > 0 else {
                return .failure(
                    .refused(
                        .unmet, "too many wrong codes: request another message with a new code"))
            }
            let since = change.now - SourceCodeLimits.day
            let wrong: Int? = try connection.value(
                """
                SELECT CAST(SUM(tries) AS BIGINT) AS wrong FROM source_codes
                WHERE team_id = \(team.number) AND sent_at > \(since)
                """)
            guard wrong ?? 0 < SourceCodeLimits.wrongPerDay else {
                return .failure(
                    .refused(
                        .limit,
                        "\(SourceCodeLimits.wrongPerDay) wrong codes a day is the limit: try again tomorrow"
                    ))
            }
            guard constantTimeEqual(last.hash, hash(digits, claim)) else {
                try connection.run(
                    "UPDATE source_codes SET tries = tries + 1 WHERE id = \(last.number)")
                return .failure(
                    .refused(
                        .invalid,
                        last.triesLeft == 1
                            ? "the code is wrong, and that was the last try: request another message with a new code"
                            : "the code is wrong; tries left: \(last.triesLeft - 1)"))
            }
            guard let (next, _) = claim.after(.seen, now: change.now) else {
                return .success(claim)
            }
            try connection.run(
                "UPDATE source_codes SET expires_at = \(change.now) WHERE id = \(last.number)")
            try connection.write(next, after: claim, of: team, change)
            return .success(next)
        }
        return try outcome.get()
    }

    /// The valid codes for a team's addresses, by address.
    package func codes(team id: String, now: Int64) throws(StoreFailure) -> [String: MailedCode] {
        try database.read { connection throws(StoreFailure) -> [String: MailedCode] in
            let team = try connection.team(id).number
            let rows = try connection.rows(
                """
                SELECT c.value, s.sent_at, s.expires_at, s.tries FROM source_claims c
                JOIN source_codes s ON s.id = (SELECT MAX(o.id) FROM source_codes o WHERE o.claim_token = c.token)
                WHERE c.team_id = \(team) AND c.state = 'pending' AND s.expires_at > \(now)
                """)
            var codes: [String: MailedCode] = [:]
            for row in rows {
                let (address, sentAt, expiresAt): (String, Int64, Int64) = try (
                    row["value"], row["sent_at"], row["expires_at"]
                )
                codes[address] = MailedCode(
                    sentAt: Timestamp(sentAt), expiresAt: Timestamp(expiresAt),
                    triesLeft: try SourceCodeLimits.left(row["tries"])
                )
            }
            return codes
        }
    }

    /// Deletes codes and messages that no limit counts, at most `limit`. Returns the number.
    package func deleteExpiredCodes(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM source_codes
                WHERE id IN (SELECT id FROM source_codes WHERE sent_at <= \(now - SourceCodeLimits.day) LIMIT \(limit))
                """)
        }
    }

    private func hash(_ code: String, _ claim: SourceClaim) -> [UInt8] {
        secrets.hash(.sourceCode, code, context: claim.token)
    }
}

extension SourceClaim {
    /// The address that a code is mailed to. Throws `invalid` for a domain.
    fileprivate var address: AddrSpec {
        get throws(StoreFailure) {
            guard kind == .address else {
                throw .refused(.invalid, "a domain is proved by its TXT record, not by a code")
            }
            return try AddrSpec.typed(value)
        }
    }
}

extension DatabaseConnection {
    /// The last code of a claim, while it is valid.
    fileprivate func lastCode(
        of claim: SourceClaim, now: Int64
    ) throws(StoreFailure) -> (number: Int64, hash: [UInt8], triesLeft: Int)? {
        let row = try row(
            """
            SELECT id, code_hash, tries FROM source_codes
            WHERE id = (SELECT MAX(id) FROM source_codes WHERE claim_token = \(claim.token)) AND expires_at > \(now)
            """)
        guard let row else { return nil }
        return try (row["id"], row["code_hash"], SourceCodeLimits.left(row["tries"]))
    }

    /// Refuses (`limit`) a message beyond the daily limits. The error does not say which team
    /// caused the messages to a mailbox, so that no team learns of another team's claim.
    /// - Parameter index: the canonical index of the mailbox, with the key in use
    ///   and with the other one.
    fileprivate func checkSourceCodes(
        _ team: Team, _ index: (SQLValue, SQLValue), now: Int64
    ) throws(StoreFailure) {
        let mailbox: SQL = "mailbox_index IN (\(index.0), \(index.1))"
        let own: SQL = "team_id = \(team.number)"
        let counts: SQL = "expires_at <> \(SourceCodeLimits.unsent)"
        let (day, hour) = (SourceCodeLimits.day, SourceCodeLimits.hour)
        let full = "the daily limit of messages to this address is reached"
        let parts: [(SQL, limit: Int, seconds: Int64, sentence: String)] = [
            ("\(mailbox) AND \(own) AND \(counts)", SourceCodeLimits.perTeamAndMailbox, day, full),
            (
                "\(own) AND \(counts)", SourceCodeLimits.perTeam, day,
                "\(SourceCodeLimits.perTeam) messages for this team within a day is the limit"
            ),
            ("\(mailbox) AND \(counts)", SourceCodeLimits.perMailbox, day, full),
            (
                "\(own) AND expires_at = \(SourceCodeLimits.unsent)",
                SourceCodeLimits.unsentPerTeam, hour,
                "\(SourceCodeLimits.unsentPerTeam) messages for this team could not be sent within an hour"
            ),
        ]
        for (condition, limit, seconds, sentence) in parts {
            let row = try row(
                """
                SELECT COUNT(*) AS count, MIN(sent_at) AS oldest FROM source_codes
                WHERE sent_at > \(now - seconds) AND \(condition)
                """)
            guard try row?["count"] ?? 0 < limit else {
                // The wait until the oldest message leaves the window.
                let wait = max(1, (try row?["oldest"] ?? now) + seconds - now)
                let hours = (wait + 3599) / 3600
                throw .refused(
                    .limit, "\(sentence): try again in \(hours) \(hours == 1 ? "hour" : "hours")")
            }
        }
    }
}
