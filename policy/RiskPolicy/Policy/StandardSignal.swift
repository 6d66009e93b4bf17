// The signals that Postern supplies, each declared once; docs/POLICY-REFERENCE.md has them as
// tables. Operators define their own under `context.`.

import CEL

/// A signal that Postern supplies. The raw value is its name in policies.
package enum StandardSignal: String, Sendable, Hashable, CaseIterable {
    case event
    case tokenAge = "token.age_s"
    case signInMethods = "session.amr"
    case sinceSignIn = "session.age_s"
    case realUserStatus = "account.real_user_status"
    case priorStatus = "account.prior_status"
    case rejoins = "account.rejoins_30d"
    case age = "account.age_hours"
    case state = "account.state"
    case hasEmail = "account.has_email"
    case forwardingOn = "account.forwarding_on"
    case managed = "account.managed"
    case sinceSeen = "account.hours_since_seen"
    case visit = "account.visit_hours"
    case sinceTransfer = "account.hours_since_transfer"
    case bounces = "account.bounces_7d"
    case replies = "account.user_replies_30d"
    case toggles = "account.forwarding_toggles_7d"
    case riskEvents = "account.risk_events_30d"
    case lastRiskEvent = "account.last_risk_event"
    case inboxAge = "inbox.age_hours"
    case inboxSignUps = "inbox.signups_24h"
    case inboxDeletions = "inbox.deletions_30d"
    case inboxBounces = "inbox.bounces_7d"
    case inboxDomainClass = "inbox.domain_class"
    case failedChecks = "checks.failed_24h"
    case failedChecksOfMonth = "checks.failed_30d"
    case passedChecks = "checks.passed_90d"
    case sinceHumanCheck = "checks.hours_since_human_check"
    case sinceEmailCode = "checks.hours_since_email_code"
    case sinceReauthenticate = "checks.hours_since_reauthenticate"
    case observedChecks = "checks.observed_90d"
    case sinceObserved = "checks.hours_since_observed"
    case sinceProofOfWork = "checks.hours_since_proof_of_work"
    case deviceAttested = "device.attested"
    case deviceAssertions = "device.assertions"
    case deviceAccounts = "device.accounts"
    case appSignUps = "app.signups_1h"
    case appBaseline = "app.signups_1h_baseline"
    case signInMethod = "sign_in.method"
    case signInVerified = "sign_in.user_verified"
    case passkeyAge = "sign_in.passkey_age_hours"
    case passkeySynced = "sign_in.passkey_synced"
    case passkeyAttested = "sign_in.passkey_attested"
    case userAge = "user.age_hours"
    case userManaged = "user.is_managed"
    case userTeams = "user.teams"
    case newTeams = "user.teams_24h"
    case userReplies = "user.replies_30d"
    case legitimateOutcomes = "outcomes.legitimate"
    case fraudulentOutcomes = "outcomes.fraudulent"

    /// The source of a value, which determines when the value is missing.
    package enum Origin: Sendable, Hashable {
        /// The request, its token, or the user's sign-in.
        case question
        /// The store: missing while it is unavailable.
        case history
        /// The store, over all teams: teams get only a common code for rules that read it.
        case inboxHistory
    }

    /// The fixed facts about a signal.
    package struct Facts: Sendable {
        /// In the notation of policy files.
        package let type: String
        package let origin: Origin
        /// Its meaning in policies for decisions and in those for the status, in Markdown; nil if
        /// it is not supplied.
        package let forDecisions: String?
        package let forStatus: String?

        fileprivate init(
            _ type: String, _ origin: Origin, decisions: String? = nil, status: String? = nil
        ) {
            self.type = type
            self.origin = origin
            forDecisions = decisions
            forStatus = status
        }
    }

    package var facts: Facts {
        switch self {
        case .event:
            Facts(
                "string", .question,
                decisions: "`sign_up`, `sign_in`, `upgrade` or `sensitive_action`")
        case .tokenAge:
            Facts("int?", .question, decisions: "seconds since the identity token was issued")
        case .signInMethods:
            Facts(
                "list(string)?", .question,
                decisions:
                    "how the user signed in for the identity token (`amr`, RFC 8176), as in `'mfa' in session.amr`; missing "
                    + "if there is no token, or the token does not say",
                status: "how the user signed in (RFC 8176)")
        case .sinceSignIn:
            Facts(
                "int?", .question,
                decisions:
                    "seconds since that sign-in (`auth_time`); a token that was refreshed is younger than its sign-in"
            )
        case .realUserStatus:
            Facts(
                "int?", .question,
                decisions:
                    "0 unsupported, 1 unknown, 2 likely real: the first status that a verified token gave"
            )
        case .priorStatus:
            Facts(
                "int?", .history,
                decisions:
                    "the status in an earlier grant (consent to a group of apps) of the same account",
                status: "the status in an earlier grant of this app's own account")
        case .rejoins:
            Facts(
                "int?", .history, decisions: "returns after a revocation",
                status: "returns to this app after a revocation")
        case .age:
            Facts("int?", .history, decisions: "hours since the account was first authorized")
        case .state:
            Facts(
                "string?", .history,
                decisions:
                    "`new`, `pending` (asked at sign-up, not passed yet), `active`, `consent_revoked`"
            )
        case .hasEmail:
            Facts("bool?", .history, decisions: "whether the app has an address of the user")
        case .forwardingOn:
            Facts(
                "bool?", .history, decisions: "whether mail to the relay address reaches the user")
        case .managed: Facts("bool?", .history, decisions: "a work or school account")
        case .sinceSeen:
            Facts(
                "int?", .history,
                decisions:
                    "hours since the account was last seen before this visit (a visit lasts a day). An account is seen when "
                    + "it signs in to the app with Postern, when a request lets it through, or when a check is passed"
            )
        case .visit:
            Facts(
                "int?", .history,
                decisions:
                    "hours since this visit of the account began: it begins when the account is seen (as above) and lasts a day. "
                    + "Missing if no visit began within the last day")
        case .sinceTransfer:
            Facts("int?", .history, decisions: "hours since the app moved to another team")
        case .bounces:
            Facts(
                "int?", .history, decisions: "permanent failures of the inbox, counted by the relay"
            )
        case .replies:
            Facts("int?", .history, decisions: "answers of the user to mail, counted by the relay")
        case .toggles:
            Facts(
                "int?", .history,
                decisions: "how often the user switched forwarding, counted by the relay")
        case .riskEvents:
            Facts(
                "int?", .history,
                decisions:
                    "events that the account's identity provider reported of it by shared signals "
                    + "([SHARED_SIGNALS.md](SHARED_SIGNALS.md#signals-in))")
        case .lastRiskEvent:
            Facts(
                "string?", .history,
                decisions:
                    "the last of these events within 30 days: `session-revoked`, `credential-compromise`, "
                    + "`credential-change`, `account-disabled`, `device-compliance-change`; `none`")
        case .inboxAge: Facts("int?", .inboxHistory, status: "of the inbox to which mail will go")
        case .inboxSignUps:
            Facts(
                "int?", .inboxHistory,
                decisions: "verified sign-ups with the inbox, over all teams",
                status: "verified sign-ups with the inbox")
        case .inboxDeletions:
            Facts(
                "int?", .inboxHistory, decisions: "deleted accounts of the inbox, over all teams",
                status: "deleted accounts of the inbox")
        case .inboxBounces:
            Facts(
                "int?", .inboxHistory,
                decisions: "messages to the inbox that bounced permanently, over all teams",
                status: "messages to the inbox that bounced permanently")
        case .inboxDomainClass:
            Facts(
                "string?", .inboxHistory,
                decisions: "where the inbox is: `provider`, `relay`, `disposable` or `own`; see "
                    + "[Domains of inboxes](#domains-of-inboxes)",
                status: "where the inbox is: `provider`, `relay`, `disposable` or `own`")
        case .failedChecks:
            Facts(
                "int?", .history,
                decisions: "failed checks, reported by this team or carried out for it by Postern")
        case .failedChecksOfMonth: Facts("int?", .history, status: "failed checks of all teams")
        case .passedChecks:
            Facts(
                "int?", .history,
                decisions:
                    "passed checks, reported by this team or carried out for it by Postern; no proofs of work",
                status: "passed checks of all teams")
        case .sinceHumanCheck:
            Facts("int?", .history, decisions: "hours since it was passed; missing if it never was")
        case .sinceEmailCode: Facts("int?", .history, decisions: "the same")
        case .sinceReauthenticate: Facts("int?", .history, decisions: "the same")
        case .observedChecks:
            Facts(
                "int?", .history,
                decisions:
                    "of the passed checks, those that Postern carried out itself for this team")
        case .sinceObserved:
            Facts("int?", .history, decisions: "hours since Postern last saw a check passed itself")
        case .sinceProofOfWork:
            Facts(
                "int?", .history,
                decisions:
                    "hours since a proof of work was last accepted: a price, and no proof of a person"
            )
        case .deviceAttested:
            Facts(
                "bool?", .history,
                decisions:
                    "whether the `device` of the request attested the app (docs/DECISIONS.md, \"Devices\"); missing if "
                    + "none is named")
        case .deviceAssertions:
            Facts("int?", .history, decisions: "assertions of the device that were accepted")
        case .deviceAccounts:
            Facts(
                "int?", .history,
                decisions:
                    "accounts of the app that were named with the device within 90 days, this one included; missing if "
                    + "it is not attested")
        case .appSignUps: Facts("int?", .history, decisions: "sign-ups of the app")
        case .appBaseline:
            Facts(
                "double?", .history, decisions: "the usual number of sign-ups of the app in an hour"
            )
        case .signInMethod:
            Facts(
                "string?", .question,
                status:
                    "`mail`, `passkey` or `upstream` (your OpenID provider); missing at your own sign-in page"
            )
        case .signInVerified:
            Facts(
                "bool?", .question,
                status:
                    "the device or the provider verified the person, by `amr`; missing if that is not known"
            )
        case .passkeyAge: Facts("int?", .question, status: "of the passkey of this sign-in")
        case .passkeySynced: Facts("bool?", .question, status: "of the passkey of this sign-in")
        case .passkeyAttested:
            Facts(
                "bool?", .question,
                status:
                    "whether the maker of the device vouched for that passkey, by a certificate that leads to one in "
                    + "`sign_in.passkey_roots`")
        case .userAge: Facts("int?", .history, status: "of the user")
        case .userManaged: Facts("bool?", .history, status: "a work or school account")
        case .userTeams: Facts("int?", .history, status: "teams with the user's consent")
        case .newTeams:
            Facts("int?", .history, status: "teams that got the user's consent for the first time")
        case .userReplies: Facts("int?", .history, status: "answers to mail")
        case .legitimateOutcomes:
            Facts("int?", .history, status: "decisions that teams labelled legitimate")
        case .fraudulentOutcomes:
            Facts("int?", .history, status: "decisions that teams labelled fraudulent")
        }
    }

    /// The signals of policies for decisions.
    package static let ofDecisions = allCases.filter { $0.facts.forDecisions != nil }
    /// The signals of policies for the status. Those that include other teams are missing
    /// for fewer than three teams.
    package static let ofStatus = allCases.filter { $0.facts.forStatus != nil }
}
