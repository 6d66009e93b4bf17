// Freezes: users and teams that an administrator stops without deleting anything.

import Database
import InternetMessage
import RelayCore
import Support

/// Whom a freeze stops, by identifier.
package enum FreezeTarget: Sendable, Hashable {
    case user(String)
    case team(String)

    /// As the audit names it.
    package var subject: String {
        switch self {
        case .user(let id): "user:\(id)"
        case .team(let id): "team:\(id)"
        }
    }

    fileprivate var kind: String {
        switch self {
        case .user: "user"
        case .team: "team"
        }
    }

    fileprivate var place: SQL {
        switch self {
        case .user: "user_freezes"
        case .team: "team_freezes"
        }
    }

    fileprivate var column: SQL {
        switch self {
        case .user: "user_id"
        case .team: "team_id"
        }
    }

    fileprivate func number(_ connection: any DatabaseConnection) throws(StoreFailure) -> Int64 {
        switch self {
        case .user(let id): try connection.userNumber(id)
        case .team(let id): try connection.team(id).number
        }
    }
}

/// A freeze in force.
package struct Freeze: Sendable, Hashable {
    /// Seconds since 1970.
    package let beganAt: Int64
    /// Seconds since 1970; nil if only an administrator ends it. A running service ends it within
    /// the hour after this time.
    package let endsAt: Int64?

    /// The latest end, in days from the beginning: ten years.
    package static let maximumDays = 3_653

    init(row: SQLRow) throws(StoreFailure) {
        (beganAt, endsAt) = try (row["began_at"], row["ends_at"])
    }
}

/// Begins and ends freezes. Each beginning and end has a line in the audit. The teams of a frozen
/// user get the events for an address that takes no mail.
package struct FreezeRepository: Sendable {
    let events: AccountEvents

    /// Freezes a user or a team, or gives a freeze another end and reason. Throws `notFound` for an
    /// unknown target, and `invalid` for a reason or an end that cannot be.
    /// - Parameter endsAt: seconds since 1970; nil for no end.
    package func begin(
        _ target: FreezeTarget, reason: String, endsAt: Int64?, _ change: Change
    ) throws(StoreFailure) {
        let reason = try AuditReason.checked(reason)
        if let endsAt,
            endsAt <= change.now || endsAt > change.now + Int64(Freeze.maximumDays) * 86_400
        {
            throw .refused(
                .invalid,
                "the end of a freeze must be in the future, and at most \(Freeze.maximumDays) days from now"
            )
        }
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let number = try target.number(connection)
            if case .user = target { try tracker.snapshot(.user(number)) }
            try connection.run(
                """
                INSERT INTO \(target.place) (\(target.column), began_at, ends_at)
                VALUES (\(number), \(change.now), CAST(\(endsAt) AS BIGINT))
                ON CONFLICT (\(target.column)) DO UPDATE SET ends_at = excluded.ends_at
                """)
            try connection.audit(
                change, "\(target.kind).freeze", target.subject,
                "\(endsAt.map { "until \(UTCTime.text($0))" } ?? "without an end"): \(reason)")
        }
    }

    /// Ends a freeze. Throws `notFound` if there is none.
    package func end(_ target: FreezeTarget, _ change: Change) throws(StoreFailure) {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let number = try target.number(connection)
            if case .user = target { try tracker.snapshot(.user(number)) }
            let ended = try connection.run(
                "DELETE FROM \(target.place) WHERE \(target.column) = \(number)")
            guard ended > 0 else {
                throw .refused(
                    .notFound, "\(target.kind) \(target.subject.dropFirst(5)) is not frozen")
            }
            try connection.audit(change, "\(target.kind).unfreeze", target.subject)
        }
    }

    /// The freeze of a user or a team; nil if it is not frozen. Throws `notFound` for an unknown
    /// target.
    package func freeze(of target: FreezeTarget) throws(StoreFailure) -> Freeze? {
        try events.database.read { connection throws(StoreFailure) in
            let number = try target.number(connection)
            return try connection.row(
                "SELECT began_at, ends_at FROM \(target.place) WHERE \(target.column) = \(number)"
            ).map(Freeze.init(row:))
        }
    }

    /// Everyone who is frozen, teams first, in the order of identifiers.
    package func all() throws(StoreFailure) -> [(target: FreezeTarget, freeze: Freeze)] {
        try events.database.rows(
            """
            SELECT 0 AS place, t.handle, f.began_at, f.ends_at FROM team_freezes f
                JOIN teams t ON t.id = f.team_id AND t.removed_at IS NULL
            UNION ALL SELECT 1, u.handle, f.began_at, f.ends_at FROM user_freezes f
                JOIN users u ON u.id = f.user_id ORDER BY place, handle
            """
        ).map { row throws(StoreFailure) in
            let (place, id): (Int64, String) = try (row["place"], row["handle"])
            return (place == 0 ? .team(id) : .user(id), try Freeze(row: row))
        }
    }

    /// Whether the team of an app is frozen.
    package func isTeamFrozen(ofApp clientID: String) throws(StoreFailure) -> Bool {
        try events.database.row(
            """
            SELECT 1 AS found FROM apps a JOIN app_groups g ON g.id = a.group_id
            JOIN team_freezes f ON f.team_id = g.team_id WHERE a.client_id = \(clientID)
            """) != nil
    }

    /// Ends the freezes whose time is over. Returns the number.
    package func endDue(now: Int64) throws(StoreFailure) -> Int {
        let due = try all().filter { entry in entry.freeze.endsAt.map { $0 <= now } ?? false }
        for entry in due {
            do { try end(entry.target, Change(actor: "serve", now: now)) } catch
                where error.code == .refused(.notFound)
            { continue }
        }
        return due.count
    }
}

extension AccountFreeze {
    /// The column of a query about an account `a`: 0 if nothing is frozen, otherwise a case.
    static let column: SQL = """
        CASE WHEN EXISTS (SELECT 1 FROM team_freezes f WHERE f.team_id = a.team_id) THEN 2
            WHEN EXISTS (SELECT 1 FROM user_freezes f WHERE f.user_id = a.user_id) THEN 1 ELSE 0 END AS frozen
        """

    static func of(_ row: SQLRow) throws(StoreFailure) -> AccountFreeze? {
        AccountFreeze(rawValue: try row["frozen"])
    }
}

extension DatabaseConnection {
    /// Throws `frozen` if an account's user or team is frozen.
    func checkFreeze(account: Int64) throws(StoreFailure) {
        let row = try row("SELECT \(AccountFreeze.column) FROM accounts a WHERE a.id = \(account)")
        switch try row.flatMap(AccountFreeze.of) {
        case nil: return
        case .user?: throw .refused(.frozen, "the user is frozen by the operator")
        case .team?: throw .refused(.frozen, "the team is frozen by the operator")
        }
    }
}
