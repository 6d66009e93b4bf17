// The answer as a team sees it. It is always built from the logged decision, so that a
// repeated answer is the same.

import MailCrypto
import Support

/// Writes answers. They contain no rule ids, nothing about waived or missing rules, and one common
/// code for reasons that span teams.
package enum DecisionResponse {
    /// The answer as one line of JSON, members in a fixed order.
    /// - Parameter challengeURL: the page that carries out the check; nil if it does not.
    package static func json(_ record: DecisionRecord, challengeURL: String? = nil) -> String {
        var writer = JSONWriter()
        writer.object { write(record, challengeURL: challengeURL, &$0) }
        return writer.text
    }

    /// The answer with the reports made since: for `GET /v1/decisions/{id}`.
    package static func json(_ decision: LoggedDecision, now: Int64) -> String {
        var writer = JSONWriter()
        writer.object { writer in
            write(decision.record, &writer)
            if !decision.checks.isEmpty {
                writer.name("outcomes")
                writer.array { for check in decision.checks { write(check, now: now, &$0) } }
            }
            if let label = decision.label { writer.member("label", label.rawValue) }
        }
        return writer.text
    }

    private static func write(_ check: CheckRecord, now: Int64, _ writer: inout JSONWriter) {
        let outcome: CheckOutcome =
            check.passedAt != nil ? .passed : check.failure(now: now) != nil ? .failed : .initiated
        writer.object {
            $0.member("challenge", check.challenge)
            $0.member("outcome", outcome.rawValue)
            $0.member("source", check.source.rawValue)
            if let method = check.method {
                $0.member("method", method.rawValue)
                $0.member("strength", method.strength.rawValue)
            }
        }
    }

    /// Writes the members that each answer has.
    private static func write(
        _ record: DecisionRecord, challengeURL: String? = nil, _ writer: inout JSONWriter
    ) {
        writer.member("decision_id", record.id)
        writer.member("event", record.event)
        writer.member("decision", record.decision)
        writer.member("challenges", record.challenges)
        if let challengeURL { writer.member("challenge_url", challengeURL) }
        writer.name("reasons")
        writer.array { for code in record.wireReasons { $0.object { $0.member("code", code) } } }
        writer.name("degraded")
        writer.value(record.isDegraded)
        let troubles = record.contextTroubles
        if !troubles.ignored.isEmpty {
            writer.member(ContextTrouble.ignored.rawValue, troubles.ignored)
        }
        if !troubles.unusable.isEmpty {
            writer.member(ContextTrouble.invalid.rawValue, troubles.unusable.map(\.name))
        }
        if let status = record.realUserStatus {
            writer.name("real_user_status")
            writer.value(status)
        }
        if record.credentialState != GrantView.unknownCredential {
            writer.member("credential_state", record.credentialState)
        }
        if let result = record.upgradeResult { writer.member("upgrade_result", result) }
        writer.name("policy")
        writer.object {
            $0.member("name", record.policyName)
            $0.member("version", record.policyVersion)
            $0.member("hash", record.policyHash)
        }
        writer.member("evaluated_at", UTCTime.text(record.evaluatedAt))
        writer.member("expires_at", UTCTime.text(record.expiresAt))
    }
}
