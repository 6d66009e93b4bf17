// The data in each table that belongs to a user, from which the user's download is made. A new
// table with user data must be added here.

import Accounts
import Database

/// One section of the download.
struct UserExportSection: Sendable {
    /// The format of a column.
    enum Kind: Sendable {
        case integer, text, flag, time, day, words, json, counter, refusal, cause
        /// In columns `name_key` and `name_sealed`.
        case userName
        /// In `GivenName.columns`.
        case teamName
        case passkeyName
        /// In columns `name_key`, `name_sealed` and so on, with `account_id`.
        case accountName, accountNote
        /// In columns `address_key` and `address_sealed`; for a correspondent also `token`.
        case inbox, correspondent
        /// In columns `sender_key` and `sender_sealed`, with `account`.
        case lastSender
    }

    package let name: String
    let fields: [(name: String, kind: Kind, column: SQL)]
    /// Its columns have the names of the fields.
    let sql: SQL

    /// - Parameter rows: `FROM` and the rest of the query.
    private init(_ name: String, _ fields: [(name: String, kind: Kind, column: SQL)], _ rows: SQL) {
        (self.name, self.fields) = (name, fields)
        let columns = fields.map { field -> SQL in
            switch field.kind {
            case .userName, .teamName, .passkeyName, .accountName, .accountNote, .inbox,
                .correspondent, .lastSender:
                field.column
            default: "\(field.column) AS \(raw: "\"\(field.name)\"")"
            }
        }
        sql = "SELECT \(columns.dropFirst().reduce(columns[0]) { "\($0), \($1)" }) \(rows)"
    }

    /// All sections of the user with this number and identifier.
    /// - Parameter oldest: the earliest time (seconds since 1970) that the retention of a kind
    ///   allows, if a confidential hold keeps data of the user. Older rows would show that there is
    ///   a hold.
    static func all(
        user: Int64, id: String, oldest: ((DataClass) -> Int64)? = nil
    ) -> [UserExportSection] {
        func since(_ column: String, _ data: DataClass) -> SQL {
            oldest.map { "AND \(raw: column) >= \($0(data))" } ?? ""
        }
        func sinceDay(_ column: String, _ data: DataClass) -> SQL {
            oldest.map { "AND \(raw: column) >= \(Day.number($0(data)))" } ?? ""
        }
        let ofUser: SQL = """
            JOIN accounts a ON a.id = x.account_id JOIN teams b ON b.id = a.team_id AND b.removed_at IS NULL
            WHERE a.user_id = \(user)
            """
        let totals: SQL =
            oldest.map {
                """
                (SELECT y.account_id, y.kind, CAST(SUM(y.count) AS BIGINT) AS count, MAX(y.last_day) AS last_day
                FROM (SELECT account_id, kind, count, last_day FROM counter_totals
                    UNION ALL SELECT account_id, kind, count, day FROM daily_counters
                        WHERE day < \(Day.number($0(.counters)))) y
                GROUP BY y.account_id, y.kind)
                """
            } ?? "counter_totals"
        // A look that an order demands would tell the user of the order.
        let looks: SQL = "action IN \(list: RevealAction.allCases.map(\.rawValue))"
        let isOfAnOrder: SQL = oldest == nil ? "(1 = 0)" : "(\(looks))"
        return [
            UserExportSection(
                "user",
                [
                    ("id", .text, "handle"), ("name", .userName, "name_key, name_sealed"),
                    ("is_work_or_school_account", .flag, "is_managed"),
                    ("since", .time, "created_at"),
                    ("times_signed_out_everywhere", .integer, "browser_generation"),
                    ("language", .text, "language"),
                    ("everything_is_deleted_at", .time, "deletes_at"),
                    ("is_told_of_refused_mail", .flag, "wants_refusals"),
                    ("needs_two_factors", .flag, "two_factor"),
                    ("was_told_of_refused_mail_at", .time, "refusals_told_at"),
                ],
                "FROM users WHERE id = \(user)"),
            UserExportSection(
                "inboxes",
                [
                    ("inbox", .integer, "number"),
                    ("address", .inbox, "address_key, address_sealed"),
                    ("is_default", .flag, "is_default"), ("is_reply_only", .flag, "reply_only"),
                    ("added_at", .time, "created_at"),
                    ("verified_at", .time, "verified_at"),
                    ("forwarding_rests_since", .time, "suspended_at"),
                    ("failures_then", .integer, "suspended_failures"),
                ],
                "FROM inboxes WHERE user_id = \(user) ORDER BY number"),
            UserExportSection(
                "inbox_failures",
                [
                    ("inbox", .integer, "i.number"), ("day", .day, "x.day"),
                    ("count", .integer, "x.count"),
                ],
                "FROM inbox_failures x JOIN inboxes i ON i.id = x.inbox_id WHERE i.user_id = \(user) ORDER BY x.day"
            ),
            UserExportSection(
                "inbox_verifications",
                [
                    ("inbox", .integer, "i.number"), ("begun_at", .time, "v.created_at"),
                    ("expires_at", .time, "v.expires_at"),
                    ("wrong_codes", .integer, "v.tries"), ("confirmed_at", .time, "v.confirmed_at"),
                    ("answered_at", .time, "v.answered_at"),
                ],
                "FROM inbox_verifications v JOIN inboxes i ON i.id = v.inbox_id WHERE i.user_id = \(user) ORDER BY v.id"
            ),
            UserExportSection(
                "accounts",
                [
                    ("account", .integer, "a.id"), ("team", .text, "t.handle"),
                    ("team_name", .text, "t.name"),
                    ("your_id_with_the_team", .text, "a.sub"),
                    ("address_that_the_team_has", .text, "a.email_kind"),
                    ("your_name_there", .teamName, GivenName.columns),
                    ("inbox", .integer, "(SELECT i.number FROM inboxes i WHERE i.id = a.inbox_id)"),
                    ("since", .time, "a.created_at"),
                ],
                """
                FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL JOIN users u ON u.id = a.user_id
                \(GivenName.join) WHERE a.user_id = \(user) ORDER BY a.id
                """),
            UserExportSection(
                "account_notes",
                [
                    ("account", .integer, "x.account_id"),
                    ("your_name_for_it", .accountName, "x.account_id, x.name_key, x.name_sealed"),
                    ("your_note", .accountNote, "x.note_key, x.note_sealed"),
                ],
                "FROM account_notes x \(ofUser) ORDER BY x.account_id"),
            UserExportSection(
                "relay_addresses",
                [
                    ("account", .integer, "x.account_id"),
                    ("address", .text, "x.local_part || '@' || x.domain"),
                    ("is_current", .flag, "x.is_current"),
                    ("forwarding_is_on", .flag, "x.forwarding_on"),
                    ("forwarding_switches_at", .time, "x.switches_at"),
                    ("forwarding_ends_at_count", .integer, "x.ends_at_count"),
                    ("forwarding_switched_at", .time, "x.switched_at"),
                    ("forwarding_switched_by", .cause, "x.switched_by"),
                    ("since", .time, "x.created_at"), ("retired_at", .time, "x.retired_at"),
                ],
                "FROM relay_addresses x \(ofUser) ORDER BY x.created_at, x.account_id, x.ordinal"),
            UserExportSection(
                "consents",
                [
                    ("account", .integer, "x.account_id"), ("app", .text, "p.primary_client_id"),
                    ("state", .text, "x.state"),
                    ("first_given_at", .time, "x.first_authorized_at"),
                    ("last_given_at", .time, "x.last_authorized_at"),
                    ("taken_back_at", .time, "x.revoked_at"),
                    ("real_user_status", .integer, "x.real_user_status"),
                    ("earlier_real_user_status", .integer, "x.prior_status"),
                    ("check_at_sign_up", .text, "x.signup_check"),
                    ("first_asked_at", .time, "x.first_asked_at"),
                    ("last_seen_at", .time, "x.last_seen_at"),
                    ("visit_began_at", .time, "x.visit_at"),
                    ("seen_before_at", .time, "x.earlier_seen_at"),
                    ("moved_at", .time, "x.transferred_at"),
                ],
                "FROM grants x JOIN app_groups p ON p.id = x.group_id AND p.removed_from IS NULL \(ofUser) ORDER BY x.id"
            ),
            UserExportSection(
                "decisions",
                [
                    ("decision", .text, "d.decision_id"), ("team", .text, "t.handle"),
                    ("app", .text, "d.client_id"),
                    ("event", .text, "d.event"), ("event_as_claimed", .text, "d.claimed_event"),
                    ("outcome", .text, "d.decision"),
                    ("checks_asked_for", .words, "d.challenges"), ("reasons", .words, "d.reasons"),
                    ("reasons_told_to_the_team", .words, "d.wire_reasons"),
                    ("signals", .json, "d.signals"),
                    ("policy", .text, "d.policy_name"),
                    ("policy_version", .text, "d.policy_version"),
                    ("policy_hash", .text, "d.policy_hash"),
                    ("real_user_status", .integer, "d.real_user_status"),
                    ("credential_state", .text, "d.credential_state"),
                    ("overridden_by", .text, "d.overridden_by"),
                    ("was_degraded", .flag, "d.degraded"), ("at", .time, "d.evaluated_at"),
                    ("outcome_reported_by_the_team", .text, "d.label"),
                    ("reported_at", .time, "d.labelled_at"),
                ],
                "FROM decisions d JOIN grants x ON x.id = d.grant_id JOIN teams t ON t.id = d.team_id \(ofUser) \(since("d.evaluated_at", .decisions)) ORDER BY d.id"
            ),
            UserExportSection(
                "status_decisions",
                [
                    ("account", .integer, "x.account_id"), ("app", .text, "p.primary_client_id"),
                    ("status", .integer, "s.status"),
                    ("reasons", .words, "s.reasons"), ("signals", .json, "s.signals"),
                    ("policy", .text, "s.policy_name"),
                    ("policy_version", .text, "s.policy_version"),
                    ("policy_hash", .text, "s.policy_hash"),
                    ("at", .time, "s.decided_at"),
                ],
                """
                FROM status_decisions s JOIN grants x ON x.id = s.grant_id
                JOIN app_groups p ON p.id = x.group_id AND p.removed_from IS NULL \(ofUser)
                \(since("s.decided_at", .decisions)) ORDER BY s.id
                """),
            UserExportSection(
                "checks",
                [
                    ("decision", .text, "c.decision_id"), ("check", .text, "c.challenge"),
                    ("begun_at", .time, "c.initiated_at"),
                    ("carried_out_by_page", .text, "c.method"),
                    ("passed_at", .time, "c.passed_at"), ("failed_at", .time, "c.failed_at"),
                ],
                "FROM checks c JOIN grants x ON x.id = c.grant_id \(ofUser) \(since("c.initiated_at", .checks)) ORDER BY c.initiated_at"
            ),
            UserExportSection(
                "objections",
                [
                    ("account", .integer, "x.account_id"), ("decision", .text, "x.decision_id"),
                    ("your_words", .text, "x.words"),
                    ("at", .time, "x.created_at"),
                ],
                "FROM decision_objections x \(ofUser) ORDER BY x.created_at"),
            UserExportSection(
                "review_notes",
                [
                    ("decision", .text, "n.decision_id"), ("note", .text, "n.text"),
                    ("at", .time, "n.created_at"),
                ],
                """
                FROM review_notes n JOIN decisions d ON d.decision_id = n.decision_id
                JOIN grants x ON x.id = d.grant_id \(ofUser) ORDER BY n.id
                """),
            UserExportSection(
                "rule_snoozes",
                [
                    ("account", .integer, "x.account_id"), ("policy", .text, "s.policy_name"),
                    ("rule", .text, "s.rule"),
                    ("reason", .text, "s.reason"), ("since", .time, "s.created_at"),
                    ("until", .time, "s.expires_at"),
                ],
                "FROM rule_snoozes s JOIN grants x ON x.id = s.grant_id \(ofUser) ORDER BY x.account_id, s.policy_name, s.rule"
            ),
            UserExportSection(
                "identities_elsewhere",
                [
                    ("account", .integer, "x.account_id"), ("issuer", .text, "x.issuer"),
                    ("your_id_there", .text, "x.subject"),
                    ("forwarding_is_on", .flag, "x.forwarding_on"),
                    ("risk_event", .text, "x.risk_event"),
                    ("risk_event_at", .time, "x.risk_event_at"), ("since", .time, "x.created_at"),
                ],
                "FROM external_identities x \(ofUser)"),
            UserExportSection(
                "sign_ins_under_way",
                [
                    ("app", .text, "c.client_id"), ("scopes", .words, "y.scopes"),
                    ("signed_in_at", .time, "y.authenticated_at"),
                    ("amr", .words, "y.amr"), ("acr", .text, "y.acr"),
                    ("expires_at", .time, "y.expires_at"),
                ],
                """
                FROM authorization_codes y JOIN apps c ON c.id = y.app_id
                JOIN app_groups p ON p.id = c.group_id AND p.removed_from IS NULL JOIN grants x ON x.id = y.grant_id \(ofUser)
                """),
            UserExportSection(
                "sign_ins",
                [
                    ("app", .text, "c.client_id"), ("scopes", .words, "y.scopes"),
                    ("signed_in_at", .time, "y.authenticated_at"),
                    ("amr", .words, "y.amr"), ("acr", .text, "y.acr"),
                    ("given_at", .time, "y.created_at"),
                ],
                """
                FROM refresh_tokens y JOIN apps c ON c.id = y.app_id
                JOIN app_groups p ON p.id = c.group_id AND p.removed_from IS NULL JOIN grants x ON x.id = y.grant_id \(ofUser)
                ORDER BY y.id
                """),
            UserExportSection(
                "events_to_teams",
                [
                    ("account", .integer, "x.account_id"), ("event", .text, "x.type"),
                    ("address", .text, "x.email"),
                    ("decision", .text, "x.decision_id"), ("detail", .text, "x.detail"),
                    ("at", .time, "x.created_at"),
                    ("state", .text, "x.state"),
                    ("ended_at", .time, "x.ended_at"),
                ],
                "FROM outbox x \(ofUser) ORDER BY x.id"),
            // Event streams of teams that exclude this account.
            UserExportSection(
                "stream_exclusions",
                [("account", .integer, "x.account_id"), ("app", .text, "e.audience")],
                "FROM stream_exclusions x JOIN event_endpoints e ON e.id = x.endpoint_id \(ofUser) ORDER BY x.account_id, x.endpoint_id"
            ),
            UserExportSection(
                "moves_to_other_teams",
                [
                    ("from_account", .integer, "x.old_account"),
                    ("to_account", .integer, "x.new_account"),
                    ("moved_at", .time, "x.moved_at"),
                    ("old_address_works_until", .time, "x.ends_at"),
                ],
                """
                FROM account_transfers x JOIN accounts a ON a.id = x.old_account
                JOIN teams b ON b.id = a.team_id AND b.removed_at IS NULL WHERE a.user_id = \(user)
                """),
            UserExportSection(
                "counts_by_day",
                [
                    ("account", .integer, "x.account_id"), ("day", .day, "x.day"),
                    ("what", .counter, "x.kind"),
                    ("count", .integer, "x.count"),
                ],
                "FROM daily_counters x \(ofUser) \(sinceDay("x.day", .counters)) ORDER BY x.day, x.account_id, x.kind"
            ),
            UserExportSection(
                "counts_before",
                [
                    ("account", .integer, "x.account_id"), ("until", .day, "x.last_day"),
                    ("what", .counter, "x.kind"),
                    ("count", .integer, "x.count"),
                ],
                "FROM \(totals) x \(ofUser) ORDER BY x.account_id, x.kind"),
            UserExportSection(
                "refusals_by_day",
                [
                    ("account", .integer, "x.account_id"), ("day", .day, "x.day"),
                    ("why", .refusal, "x.kind"),
                    ("sender_as_claimed", .text, "x.domain"), ("count", .integer, "x.count"),
                    ("last_at", .time, "x.last_at"),
                ],
                "FROM account_refusals x \(ofUser) ORDER BY x.day, x.account_id, x.kind, x.domain"),
            UserExportSection(
                "uses_by_others",
                [
                    ("account", .integer, "x.account_id"),
                    ("address", .text, "r.local_part || '@' || r.domain"),
                    ("day", .day, "x.day"), ("signing_domain", .text, "x.domain"),
                    ("selector", .text, "x.selector"), ("count", .integer, "x.count"),
                    ("first_at", .time, "x.first_at"),
                    ("team_was_told", .flag, "CASE WHEN x.told = 1 THEN 1 ELSE 0 END"),
                ],
                """
                FROM uses_by_others x JOIN relay_addresses r ON r.account_id = x.account_id AND r.ordinal = x.ordinal
                \(ofUser) \(sinceDay("x.day", .usesByOthers)) ORDER BY x.day, x.account_id, x.ordinal, x.domain
                """),
            UserExportSection(
                "mail_your_provider_objected_to",
                [
                    ("account", .integer, "x.account_id"), ("day", .day, "x.day"),
                    ("provider", .text, "x.provider"), ("what", .text, "x.what"),
                ],
                "FROM delivery_marks x \(ofUser) \(sinceDay("x.day", .deliveries)) ORDER BY x.day, x.account_id, x.provider, x.what"
            ),
            UserExportSection(
                "mail_your_provider_objected_to_before",
                [
                    ("team", .text, "t.handle"), ("day", .day, "x.day"),
                    ("provider", .text, "x.provider"), ("what", .text, "x.what"),
                ],
                """
                FROM delivery_marks_left x JOIN teams t ON t.id = x.team_id
                WHERE x.user_id = \(user) ORDER BY x.day, x.team_id, x.provider, x.what
                """),
            UserExportSection(
                "refusals_you_were_told_of",
                [
                    ("account", .integer, "x.account_id"), ("why", .refusal, "x.kind"),
                    ("told_at", .time, "x.told_at"),
                ],
                "FROM account_refusals_told x \(ofUser) ORDER BY x.account_id, x.kind"),
            UserExportSection(
                "last_messages",
                [
                    ("account", .integer, "x.account_id"), ("at", .time, "x.at"),
                    ("sender", .lastSender, "x.sender_key, x.sender_sealed"),
                ],
                "FROM last_mail x \(ofUser) ORDER BY x.account_id"),
            UserExportSection(
                "blocked_senders",
                [
                    ("account", .integer, "x.account_id"), ("sender", .text, "x.value"),
                    ("since", .time, "x.created_at"),
                ],
                "FROM account_blocks x \(ofUser) ORDER BY x.account_id, x.value"),
            UserExportSection(
                "stored_correspondents",
                [
                    ("account", .integer, "x.account_id"), ("purpose", .text, "x.purpose"),
                    ("address", .correspondent, "x.address_key, x.address_sealed, x.token"),
                    ("stored_at", .time, "x.created_at"),
                    ("expires_at", .time, "x.expires_at"),
                ],
                "FROM stored_tokens x \(ofUser) ORDER BY x.created_at"),
            UserExportSection(
                "marks_of_what_happened_once",
                [
                    ("account", .integer, "x.account_id"), ("purpose", .text, "x.purpose"),
                    ("expires_at", .time, "x.expires_at"),
                ],
                "FROM once_marks x \(ofUser)"),
            UserExportSection(
                "messages_from_us",
                [("kind", .text, "kind"), ("sent_at", .time, "sent_at")],
                "FROM notices WHERE user_id = \(user) ORDER BY id"),
            UserExportSection(
                "sessions",
                [
                    ("signed_in_by", .text, "x.method"),
                    ("signed_in_by_inbox", .integer, "i.number"),
                    ("browser", .text, "x.browser"),
                    ("signed_in_there_at", .time, "x.authenticated_at"), ("amr", .words, "x.amr"),
                    ("since", .time, "x.created_at"),
                    ("seen_at", .time, "x.seen_at"), ("ends_at", .time, "x.expires_at"),
                ],
                "FROM page_sessions x JOIN inboxes i ON i.id = x.inbox_id WHERE x.user_id = \(user) ORDER BY x.id"
            ),
            UserExportSection(
                "apps_of_sessions",
                [
                    ("app", .text, "a.client_id"), ("session_since", .time, "p.created_at"),
                    ("sid", .text, "x.sid"),
                ],
                """
                FROM app_sessions x JOIN page_sessions p ON p.id = x.session_id JOIN apps a ON a.id = x.app_id
                WHERE p.user_id = \(user) ORDER BY x.session_id, x.app_id
                """),
            // Not those that an order forbids to tell of, and not those on teams.
            UserExportSection(
                "holds",
                [
                    ("number", .integer, "h.id"), ("kept_data", .text, "k.data"),
                    ("since", .time, "h.created_at"), ("ends_at", .time, "h.ends_at"),
                ],
                """
                FROM holds h JOIN hold_data k ON k.hold_id = h.id WHERE h.ended_at IS NULL AND h.is_confidential = 0
                    AND ((h.scope = 'user' AND h.target = \(user))
                    OR (h.scope = 'address' AND h.target IN (SELECT a.id FROM accounts a WHERE a.user_id = \(user))))
                ORDER BY h.id, k.data
                """),
            UserExportSection(
                "upstream_identities",
                [
                    ("issuer", .text, "issuer"), ("your_id_there", .text, "subject"),
                    ("since", .time, "created_at"),
                    ("used_at", .time, "last_used_at"),
                ],
                "FROM upstream_identities WHERE user_id = \(user) ORDER BY id"),
            UserExportSection(
                "recent_sign_ins",
                [("at", .time, "at"), ("signed_in_by", .text, "method")],
                "FROM page_sign_ins WHERE user_id = \(user) ORDER BY id"),
            UserExportSection(
                "passkeys",
                [
                    ("name", .passkeyName, "name_key, name_sealed"), ("since", .time, "created_at"),
                    ("used_at", .time, "last_used_at"), ("is_backed_up", .flag, "backed_up"),
                    ("is_attested", .flag, "is_attested"),
                ],
                "FROM passkeys WHERE user_id = \(user) ORDER BY id"),
            UserExportSection(
                "authenticator_app",
                [
                    ("since", .time, "created_at"), ("used_at", .time, "last_used_at"),
                    ("wrong_codes", .integer, "wrong"),
                ],
                "FROM authenticators WHERE user_id = \(user)"),
            UserExportSection(
                "recovery_codes", [("made_at", .time, "created_at")],
                "FROM recovery_codes WHERE user_id = \(user) ORDER BY code_hash"),
            UserExportSection(
                "sign_in_without_second_factor",
                [("requested_at", .time, "begun_at"), ("possible_from", .time, "ends_at")],
                "FROM recovery_waits WHERE user_id = \(user)"),
            UserExportSection(
                "frozen", [("since", .time, "began_at"), ("ends_at", .time, "ends_at")],
                "FROM user_freezes WHERE user_id = \(user)"),
            UserExportSection(
                "links_under_way",
                [
                    ("purpose", .text, "purpose"), ("sent_at", .time, "created_at"),
                    ("expires_at", .time, "expires_at"),
                ],
                "FROM page_links WHERE user_id = \(user) ORDER BY id"),
            UserExportSection(
                "sign_in_codes",
                [
                    ("sent_at", .time, "created_at"), ("expires_at", .time, "expires_at"),
                    ("tries", .integer, "tries"),
                ],
                "FROM page_codes WHERE user_id = \(user) ORDER BY id"),
            UserExportSection(
                "codes_of_checks",
                [
                    ("decision", .text, "decision_id"), ("sent_at", .time, "sent_at"),
                    ("messages", .integer, "sent"), ("tries", .integer, "tries"),
                ],
                "FROM check_codes WHERE user_id = \(user) ORDER BY id"),
            UserExportSection(
                "changes",
                [
                    ("at", .time, "at"), ("by", .text, "actor"), ("what", .text, "action"),
                    ("of", .text, "subject"),
                    ("detail", .text, "detail"),
                ],
                """
                FROM audit WHERE subject IN (SELECT CAST(\("user:\(id)") AS TEXT) UNION ALL SELECT 'account:' || CAST(a.id AS TEXT)
                    FROM accounts a JOIN teams b ON b.id = a.team_id AND b.removed_at IS NULL
                WHERE a.user_id = \(user)) AND NOT \(isOfAnOrder) ORDER BY id
                """),
        ]
    }
}
