// Confirmations of inboxes: started with a message, completed by its code or its link.

import Database
import InternetMessage
import MailCrypto
import RelayCore
import Support

/// Starts and completes confirmations. An inbox has one at a time: a new one makes the earlier
/// message invalid.
package struct InboxConfirmationRepository: Sendable {
    let database: any Database
    let inboxes: InboxRepository
    let secrets: SecretHash

    /// Starts a confirmation, and counts its message against the limits. Refused for a confirmed
    /// inbox (`exists`) and beyond a limit (`limit`). If another user has confirmed the inbox, only
    /// the confirmation is refused: a refusal here would tell the caller that the inbox is known.
    package func begin(
        user id: String, _ name: InboxName, limits: NoticeLimits, _ change: Change
    ) throws(StoreFailure) -> PendingConfirmation {
        let code = try SecretHash.newCode()
        let token = try SecretHash.newToken()
        let nonce = try SecretHash.newNonce()
        let expiresAt = change.now + limits.lifetime
        return try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let inbox = try inboxes.inbox(connection, user: user, id: id, name)
            guard !inbox.isVerified else {
                throw .refused(.exists, "inbox \(inbox.number) of user \(id) is already verified")
            }
            try connection.reserveNotice(
                .verification, index: inboxes.index.search(inbox.address.revealed).canonical,
                user: user, source: .unknown,
                limits: limits, now: change.now)
            try connection.run("DELETE FROM inbox_verifications WHERE inbox_id = \(inbox.id)")
            let number = try connection.inserted(
                """
                INSERT INTO inbox_verifications (inbox_id, code_hash, link_hash, answer_nonce, created_at, expires_at)
                VALUES (\(inbox.id), \(secrets.hash(.verificationCode, code, context: "\(inbox.id)")),
                    \(secrets.hash(.verificationLink, token)), \(nonce), \(change.now), \(expiresAt)) RETURNING id
                """)
            try connection.audit(change, "inbox.verify", "user:\(id)", "inbox \(inbox.number)")
            return PendingConfirmation(
                number: number, inbox: inbox, code: code, linkToken: token, answerNonce: nonce,
                expiresAt: expiresAt)
        }
    }

    /// The state of an inbox's confirmation; nil if none is in progress.
    package func state(
        user id: String, inbox number: Int64, limits: NoticeLimits, now: Int64
    ) throws(StoreFailure) -> VerificationState? {
        try database.read { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let row = try connection.row(
                """
                SELECT v.created_at, v.expires_at, v.tries FROM inbox_verifications v JOIN inboxes i ON i.id = v.inbox_id
                WHERE i.number = \(number) AND i.user_id = \(user) AND v.confirmed_at IS NULL AND v.expires_at > \(now)
                """)
            return try row.map { row throws(StoreFailure) in
                try VerificationState(
                    inboxNumber: number, createdAt: row["created_at"], expiresAt: row["expires_at"],
                    triesLeft: max(0, limits.tries - row["tries"]))
            }
        }
    }

    /// Confirms an inbox by the code of its message. A wrong code is counted and refused
    /// (`invalid`). After the last try, or if no confirmation is in progress, the code is refused
    /// with `unmet`.
    package func confirm(
        user id: String, _ name: InboxName, code: String, limits: NoticeLimits, _ change: Change
    ) throws(StoreFailure) -> Inbox {
        guard let code = TypedCode.digits(code) else {
            throw .refused(.invalid, "a code has six digits")
        }
        // A refusal thrown inside the transaction would undo the count of the try.
        let outcome: Result<Inbox, StoreFailure> = try inboxes.events.write(at: change.now) {
            connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let inbox = try inboxes.inbox(connection, user: user, id: id, name)
            guard !inbox.isVerified else { return .success(inbox) }
            let row = try connection.row(
                """
                SELECT id, code_hash, tries FROM inbox_verifications
                WHERE inbox_id = \(inbox.id) AND expires_at > \(change.now) AND confirmed_at IS NULL
                """)
            guard let row else {
                return .failure(
                    .refused(
                        .unmet,
                        "no verification is in progress: its message has expired or was never sent")
                )
            }
            let (number, used): (Int64, Int) = try (row["id"], row["tries"])
            guard used < limits.tries else {
                return .failure(
                    .refused(
                        .unmet, "too many wrong codes: request another message with a new code"))
            }
            guard
                constantTimeEqual(
                    try row["code_hash"],
                    secrets.hash(.verificationCode, code, context: "\(inbox.id)"))
            else {
                try connection.run(
                    "UPDATE inbox_verifications SET tries = tries + 1 WHERE id = \(number)")
                return .failure(Self.wrongCode(triesLeft: limits.tries - used - 1))
            }
            return .success(
                try finish(
                    connection, tracker, verification: number, user: user, id: id, inbox, "by code",
                    change))
        }
        return try outcome.get()
    }

    /// The refusal of a wrong code.
    package static func wrongCode(triesLeft: Int) -> StoreFailure {
        .refused(
            .invalid,
            triesLeft == 0
                ? "the code is wrong, and that was the last try: request another message with a new code"
                : "the code is wrong; tries left: \(triesLeft)")
    }

    /// The inbox that a link confirms, with its user; nil for an unknown or
    /// expired link. Changes nothing.
    package func inbox(link token: String, now: Int64) throws(StoreFailure) -> ConfirmedInbox? {
        try database.read { connection throws(StoreFailure) in
            guard let found = try self.find(connection, link: token, now: now) else { return nil }
            return ConfirmedInbox(
                userID: found.id, inbox: found.inbox, isNew: !found.inbox.isVerified)
        }
    }

    /// Confirms an inbox by the link of its message. Refused for an unknown or expired link
    /// (`unmet`), and if the inbox is verified for another user (`exists`).
    package func confirm(link token: String, now: Int64) throws(StoreFailure) -> ConfirmedInbox {
        try inboxes.events.write(at: now) { connection, tracker throws(StoreFailure) in
            guard let found = try find(connection, link: token, now: now) else {
                throw .refused(.unmet, "this link has expired, or a newer message has replaced it")
            }
            guard !found.inbox.isVerified else {
                return ConfirmedInbox(userID: found.id, inbox: found.inbox, isNew: false)
            }
            let inbox = try finish(
                connection, tracker, verification: found.verification, user: found.user,
                id: found.id, found.inbox, "by link",
                Change(actor: "user:\(found.id)", now: now))
            return ConfirmedInbox(userID: found.id, inbox: inbox, isNew: true)
        }
    }

    /// Records that the user answered the message of a confirmation. An answer confirms nothing,
    /// because programs answer too, and quote the code.
    /// - Parameters:
    ///   - token: from the address that the answer came to.
    ///   - author: the proven author of the answer.
    ///   - isTrial: changes nothing, and returns only the record that would be written: for
    ///     `postern explain`.
    package func recordAnswer(
        to token: AnswerToken, author: AddrSpec, isTrial: Bool = false, now: Int64
    ) throws(StoreFailure) -> AnswerRecord {
        let (number, nonce) = (Int64(clamping: token.number), Int64(clamping: token.nonce))
        return try database.write(.relaxed) { connection throws(StoreFailure) in
            let row = try connection.row(
                """
                SELECT v.answer_nonce, v.answered_at, i.canonical_index, u.language FROM inbox_verifications v
                JOIN inboxes i ON i.id = v.inbox_id JOIN users u ON u.id = i.user_id
                WHERE v.id = \(number) AND v.expires_at > \(now)
                """)
            guard let row, try row["answer_nonce"] == nonce,
                inboxes.index.isCanonical(try row["canonical_index"], of: author)
            else { return .notTheInbox }
            let last: Int64? = try row["answered_at"]
            let isFirst = last.map { Day.number($0) != Day.number(now) } ?? true
            if isFirst, !isTrial {
                try connection.run(
                    "UPDATE inbox_verifications SET answered_at = \(now) WHERE id = \(number)")
            }
            return isFirst ? .first(language: try row["language"]) : .repeated
        }
    }

    private struct Found {
        let verification: Int64
        let user: Int64
        package let id: String
        let inbox: Inbox
    }

    private func find(
        _ connection: any DatabaseConnection, link token: String, now: Int64
    ) throws(StoreFailure) -> Found? {
        let row = try connection.row(
            """
            SELECT v.id, i.user_id, u.handle, i.id AS inbox_id FROM inbox_verifications v
            JOIN inboxes i ON i.id = v.inbox_id JOIN users u ON u.id = i.user_id
            WHERE v.link_hash = \(secrets.hash(.verificationLink, token)) AND v.expires_at > \(now)
            """)
        guard let row else { return nil }
        let user: Int64 = try row["user_id"]
        return try Found(
            verification: row["id"], user: user, id: row["handle"],
            inbox: inboxes.inbox(connection, user: user, row: row["inbox_id"]))
    }

    private func finish(
        _ connection: any DatabaseConnection, _ tracker: AccountChangeTracker, verification: Int64,
        user: Int64, id: String,
        _ inbox: Inbox,
        _ how: String, _ change: Change
    ) throws(StoreFailure) -> Inbox {
        let confirmed = try inboxes.confirm(
            connection, tracker, user: user, id: id, inbox, detail: how, change)
        try connection.run(
            "UPDATE inbox_verifications SET confirmed_at = \(change.now) WHERE id = \(verification)"
        )
        return confirmed
    }

    /// Deletes expired confirmations, links, codes and sessions, and notices that no limit counts;
    /// at most `limit` of each. Returns the largest of the numbers: if it is `limit`, there may be
    /// more.
    package func deleteExpired(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            var most = 0
            for (table, column, before) in [
                ("inbox_verifications", "expires_at", now), ("page_links", "expires_at", now),
                ("page_codes", "kept_until", now), ("used_challenges", "expires_at", now),
                ("page_sessions", "expires_at", now),
                ("check_codes", "sent_at", now - NoticeWindow.kept),
                ("notices", "sent_at", now - NoticeWindow.kept),
            ] {
                let deleted = try connection.run(
                    """
                    DELETE FROM \(raw: table)
                    WHERE id IN (SELECT id FROM \(raw: table) WHERE \(raw: column) <= \(before) LIMIT \(limit))
                    """)
                most = max(most, deleted)
            }
            return most
        }
    }
}

/// The time for which the limits count notices.
enum NoticeWindow {
    /// Seconds of the window: a sliding hour.
    static let length: Int64 = 3600
    /// Seconds for which a notice is kept: a day, so that an operator can see what Postern sent.
    static let kept: Int64 = 86_400
}

extension DatabaseConnection {
    /// Counts a message that Postern itself sends, or refuses it (`limit`).
    /// - Parameters:
    ///   - index: the canonical index of the mailbox, with the key in use and with the other one.
    ///   - user: nil for a person who is not a user yet.
    package func reserveNotice(
        _ kind: NoticeKind, index: (SQLValue, SQLValue), user: Int64?, source: NoticeSource,
        limits: NoticeLimits, now: Int64
    ) throws(StoreFailure) {
        let (whole, total): (SQL, Int) =
            user == nil
            ? ("user_id IS NULL AND kind = \(kind)", limits.toStrangers)
            : ("user_id IS NOT NULL", limits.perInstallation)
        let sent = try notices(whole, now: now).count
        var parts: [(SQL, limit: Int, what: String)] = [
            (
                "canonical_index IN (\(index.0), \(index.1)) AND kind = \(kind)", limits.perInbox,
                "to this inbox"
            ),
            (whole, total, user == nil ? "to people who are not users" : "to users"),
        ]
        if let user { parts.append(("user_id = \(user)", limits.perUser, "for this user")) }
        if sent >= total / 2 {
            if let network = source.network {
                let share = max(2, total / NoticeSource.networks)
                parts.append(("network_hash = \(network) AND \(whole)", share, "for this network"))
            }
            if let domain = source.domain {
                parts.append(
                    (
                        "domain_hash = \(domain) AND \(whole)",
                        max(2, total / NoticeSource.domains), "to this domain"
                    ))
            }
        }
        for (condition, limit, what) in parts {
            let found = try notices(condition, now: now)
            guard found.count < limit else {
                // The wait until the oldest message leaves the window.
                let wait = max(1, (found.oldest ?? now) + NoticeWindow.length - now)
                let minutes = (wait + 59) / 60
                throw .refused(
                    .limit,
                    "\(limit) messages \(what) within an hour is the limit: try again in \(minutes) \(minutes == 1 ? "minute" : "minutes")"
                )
            }
        }
        try run(
            """
            INSERT INTO notices (kind, canonical_index, user_id, network_hash, domain_hash, sent_at)
            VALUES (\(kind), \(index.0), \(user), \(source.network), \(source.domain), \(now))
            """)
    }

    /// The messages of the window for which a condition holds.
    private func notices(
        _ condition: SQL, now: Int64
    ) throws(StoreFailure) -> (count: Int, oldest: Int64?) {
        let row = try row(
            """
            SELECT COUNT(*) AS count, MIN(sent_at) AS oldest FROM notices
            WHERE sent_at > \(now - NoticeWindow.length) AND \(condition)
            """)
        return try (row?["count"] ?? 0, row?["oldest"])
    }
}
