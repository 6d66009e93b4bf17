// What of each table belongs to a user: the list that their download is made from. A new table with something about users joins
// it.

/// One section of the download.
struct UserExportSection: Sendable {
    /// How a column reads.
    enum Kind: Sendable {
        case integer, text, flag, time, day, words, json, counter
        /// In columns `name_key` and `name_sealed`.
        case userName
        /// In columns `address_key` and `address_sealed`; that of a correspondent with `token`.
        case inbox, correspondent
    }

    let name: String
    /// Its columns are named as the fields are.
    let sql: SQL
    let fields: [(name: String, kind: Kind)]

    private init(_ name: String, _ sql: SQL, _ fields: [(name: String, kind: Kind)]) {
        (self.name, self.sql, self.fields) = (name, sql, fields)
    }

    /// All of the user with this number and identifier.
    static func all(user: Int64, id: String) -> [UserExportSection] {
        let ofUser: SQL = """
            JOIN accounts a ON a.id = x.account_id JOIN teams b ON b.id = a.team_id AND b.removed_at IS NULL
            WHERE a.user_id = \(user)
            """
        return [
            UserExportSection(
                "user",
                """
                SELECT handle AS "id", name_key, name_sealed, is_managed AS "is_work_or_school_account", created_at AS "since"
                FROM users WHERE id = \(user)
                """,
                [("id", .text), ("name", .userName), ("is_work_or_school_account", .flag), ("since", .time)]),
            UserExportSection(
                "inboxes",
                """
                SELECT number AS "inbox", address_key, address_sealed, is_default, reply_only AS "is_reply_only",
                    created_at AS "added_at", verified_at, suspended_at AS "forwarding_rests_since",
                    suspended_failures AS "failures_then"
                FROM inboxes WHERE user_id = \(user) ORDER BY number
                """,
                [
                    ("inbox", .integer), ("address", .inbox), ("is_default", .flag), ("is_reply_only", .flag),
                    ("added_at", .time),
                    ("verified_at", .time), ("forwarding_rests_since", .time), ("failures_then", .integer),
                ]),
            UserExportSection(
                "inbox_failures",
                """
                SELECT i.number AS "inbox", x.day, x.count
                FROM inbox_failures x JOIN inboxes i ON i.id = x.inbox_id WHERE i.user_id = \(user) ORDER BY x.day
                """,
                [("inbox", .integer), ("day", .day), ("count", .integer)]),
            UserExportSection(
                "inbox_verifications",
                """
                SELECT i.number AS "inbox", v.created_at AS "begun_at", v.expires_at, v.tries AS "wrong_codes", v.confirmed_at
                FROM inbox_verifications v
                JOIN inboxes i ON i.id = v.inbox_id WHERE i.user_id = \(user) ORDER BY v.id
                """,
                [
                    ("inbox", .integer), ("begun_at", .time), ("expires_at", .time), ("wrong_codes", .integer),
                    ("confirmed_at", .time),
                ]),
            UserExportSection(
                "accounts",
                """
                SELECT a.id AS "account", t.handle AS "team", t.name AS "team_name", a.sub AS "your_id_with_the_team",
                    a.email_kind AS "address_that_the_team_has", a.shares_name AS "team_gets_your_name",
                    (SELECT i.number FROM inboxes i WHERE i.id = a.inbox_id) AS "inbox", a.created_at AS "since"
                FROM accounts a
                JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL WHERE a.user_id = \(user) ORDER BY a.id
                """,
                [
                    ("account", .integer), ("team", .text), ("team_name", .text), ("your_id_with_the_team", .text),
                    ("address_that_the_team_has", .text), ("team_gets_your_name", .flag), ("inbox", .integer), ("since", .time),
                ]),
            UserExportSection(
                "relay_addresses",
                """
                SELECT x.account_id AS "account", x.local_part || '@' || x.domain AS "address", x.is_current,
                    x.forwarding_on AS "forwarding_is_on", x.created_at AS "since", x.retired_at
                FROM relay_addresses x \(ofUser) ORDER BY x.created_at, x.account_id, x.ordinal
                """,
                [
                    ("account", .integer), ("address", .text), ("is_current", .flag), ("forwarding_is_on", .flag),
                    ("since", .time),
                    ("retired_at", .time),
                ]),
            UserExportSection(
                "consents",
                """
                SELECT x.account_id AS "account", p.primary_client_id AS "app", x.state,
                    x.first_authorized_at AS "first_given_at", x.last_authorized_at AS "last_given_at",
                    x.revoked_at AS "taken_back_at", x.real_user_status, x.prior_status AS "earlier_real_user_status",
                    x.signup_check AS "check_at_sign_up", x.first_asked_at, x.last_seen_at, x.transferred_at AS "moved_at"
                FROM grants x JOIN app_groups p ON p.id = x.group_id AND p.removed_from IS NULL \(ofUser) ORDER BY x.id
                """,
                [
                    ("account", .integer), ("app", .text), ("state", .text), ("first_given_at", .time), ("last_given_at", .time),
                    ("taken_back_at", .time), ("real_user_status", .integer), ("earlier_real_user_status", .integer),
                    ("check_at_sign_up", .text), ("first_asked_at", .time), ("last_seen_at", .time), ("moved_at", .time),
                ]),
            UserExportSection(
                "decisions",
                """
                SELECT d.decision_id AS "decision", t.handle AS "team", d.client_id AS "app", d.event,
                    d.claimed_event AS "event_as_claimed", d.decision AS "outcome", d.challenges AS "checks_asked_for",
                    d.reasons, d.wire_reasons AS "reasons_told_to_the_team", d.signals, d.policy_name AS "policy",
                    d.policy_version, d.policy_hash, d.real_user_status, d.credential_state, d.overridden_by,
                    d.degraded AS "was_degraded", d.evaluated_at AS "at", d.label AS "outcome_reported_by_the_team",
                    d.labelled_at AS "reported_at"
                FROM decisions d JOIN grants x ON x.id = d.grant_id JOIN teams t ON t.id = d.team_id \(ofUser) ORDER BY d.id
                """,
                [
                    ("decision", .text), ("team", .text), ("app", .text), ("event", .text), ("event_as_claimed", .text),
                    ("outcome", .text),
                    ("checks_asked_for", .words), ("reasons", .words), ("reasons_told_to_the_team", .words), ("signals", .json),
                    ("policy", .text), ("policy_version", .text), ("policy_hash", .text), ("real_user_status", .integer),
                    ("credential_state", .text), ("overridden_by", .text), ("was_degraded", .flag), ("at", .time),
                    ("outcome_reported_by_the_team", .text), ("reported_at", .time),
                ]),
            UserExportSection(
                "checks",
                """
                SELECT c.decision_id AS "decision", c.challenge AS "check", c.initiated_at AS "begun_at", c.passed_at,
                    c.failed_at
                FROM checks c
                JOIN grants x ON x.id = c.grant_id \(ofUser) ORDER BY c.initiated_at
                """,
                [("decision", .text), ("check", .text), ("begun_at", .time), ("passed_at", .time), ("failed_at", .time)]),
            UserExportSection(
                "identities_elsewhere",
                """
                SELECT x.account_id AS "account", x.issuer, x.subject AS "your_id_there", x.forwarding_on AS "forwarding_is_on",
                    x.created_at AS "since"
                FROM external_identities x \(ofUser)
                """,
                [
                    ("account", .integer), ("issuer", .text), ("your_id_there", .text), ("forwarding_is_on", .flag),
                    ("since", .time),
                ]),
            UserExportSection(
                "sign_ins_under_way",
                """
                SELECT c.client_id AS "app", y.scopes, y.authenticated_at AS "signed_in_at", y.expires_at
                FROM authorization_codes y JOIN apps c ON c.id = y.app_id
                JOIN app_groups p ON p.id = c.group_id AND p.removed_from IS NULL JOIN grants x ON x.id = y.grant_id \(ofUser)
                """,
                [("app", .text), ("scopes", .words), ("signed_in_at", .time), ("expires_at", .time)]),
            UserExportSection(
                "sign_ins",
                """
                SELECT c.client_id AS "app", y.scopes, y.authenticated_at AS "signed_in_at", y.created_at AS "given_at"
                FROM refresh_tokens y JOIN apps c ON c.id = y.app_id
                JOIN app_groups p ON p.id = c.group_id AND p.removed_from IS NULL JOIN grants x ON x.id = y.grant_id \(ofUser) ORDER BY y.id
                """,
                [("app", .text), ("scopes", .words), ("signed_in_at", .time), ("given_at", .time)]),
            UserExportSection(
                "events_to_teams",
                """
                SELECT x.account_id AS "account", x.type AS "event", x.email AS "address", x.created_at AS "at", x.state,
                    x.ended_at
                FROM outbox x \(ofUser) ORDER BY x.id
                """,
                [
                    ("account", .integer), ("event", .text), ("address", .text), ("at", .time), ("state", .text),
                    ("ended_at", .time),
                ]),
            UserExportSection(
                "moves_to_other_teams",
                """
                SELECT x.old_account AS "from_account", x.new_account AS "to_account", x.moved_at,
                    x.ends_at AS "old_address_works_until"
                FROM account_transfers x
                JOIN accounts a ON a.id = x.old_account JOIN teams b ON b.id = a.team_id AND b.removed_at IS NULL WHERE a.user_id = \(user)
                """,
                [("from_account", .integer), ("to_account", .integer), ("moved_at", .time), ("old_address_works_until", .time)]),
            UserExportSection(
                "counts_by_day",
                """
                SELECT x.account_id AS "account", x.day, x.kind AS "what", x.count
                FROM daily_counters x \(ofUser) ORDER BY x.day, x.account_id, x.kind
                """,
                [("account", .integer), ("day", .day), ("what", .counter), ("count", .integer)]),
            UserExportSection(
                "stored_correspondents",
                """
                SELECT x.account_id AS "account", x.purpose, x.address_key, x.address_sealed, x.token,
                    x.created_at AS "stored_at", x.expires_at
                FROM stored_tokens x \(ofUser) ORDER BY x.created_at
                """,
                [
                    ("account", .integer), ("purpose", .text), ("address", .correspondent), ("stored_at", .time),
                    ("expires_at", .time),
                ]),
            UserExportSection(
                "marks_of_what_happened_once",
                """
                SELECT x.account_id AS "account", x.purpose, x.expires_at
                FROM once_marks x \(ofUser)
                """,
                [("account", .integer), ("purpose", .text), ("expires_at", .time)]),
            UserExportSection(
                "messages_from_us",
                "SELECT kind, sent_at FROM notices WHERE user_id = \(user) ORDER BY id",
                [("kind", .text), ("sent_at", .time)]),
            UserExportSection(
                "sessions",
                """
                SELECT i.number AS "signed_in_by_inbox", x.created_at AS "since", x.seen_at, x.expires_at AS "ends_at"
                FROM page_sessions x JOIN inboxes i ON i.id = x.inbox_id
                WHERE x.user_id = \(user) ORDER BY x.id
                """,
                [("signed_in_by_inbox", .integer), ("since", .time), ("seen_at", .time), ("ends_at", .time)]),
            UserExportSection(
                "links_under_way",
                """
                SELECT purpose, created_at AS "sent_at", expires_at
                FROM page_links WHERE user_id = \(user) ORDER BY id
                """,
                [("purpose", .text), ("sent_at", .time), ("expires_at", .time)]),
            UserExportSection(
                "changes",
                """
                SELECT at, actor AS "by", action AS "what", subject AS "of", detail
                FROM audit WHERE subject = \("user:\(id)") OR subject IN
                    (SELECT 'account:' || CAST(a.id AS TEXT) FROM accounts a JOIN teams b ON b.id = a.team_id AND b.removed_at IS NULL
                        WHERE a.user_id = \(user)) ORDER BY id
                """,
                [("at", .time), ("by", .text), ("what", .text), ("of", .text), ("detail", .text)]),
        ]
    }
}
