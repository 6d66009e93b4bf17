// The answer as a team sees it. It is always built from the logged decision, so that a repeated answer is the same.

import Support
import MailCrypto

/// Writes answers. They contain no rule ids, nothing waived or missing, and one common code for reasons that span teams.
package enum DecisionResponse {
    /// The answer as one line of JSON, members in a fixed order.
    package static func json(_ record: DecisionRecord) -> String {
        var writer = JSONObjectWriter()
        write(record, &writer)
        return writer.end()
    }

    /// The answer with the reports made since: for `GET /v1/decisions/{id}`.
    package static func json(_ decision: LoggedDecision, now: Int64) -> String {
        var writer = JSONObjectWriter()
        write(decision.record, &writer)
        if !decision.checks.isEmpty {
            writer.name("outcomes")
            writer.raw("[")
            for (index, check) in decision.checks.enumerated() {
                if index > 0 { writer.raw(",") }
                writer.raw("{\"challenge\":")
                writer.value(check.challenge)
                writer.raw(",\"outcome\":")
                let outcome: CheckOutcome =
                    check.passedAt != nil ? .passed : check.failure(now: now) != nil ? .failed : .initiated
                writer.value(outcome.rawValue)
                writer.raw("}")
            }
            writer.raw("]")
        }
        if let label = decision.label { writer.member("label", label.rawValue) }
        return writer.end()
    }

    private static func write(_ record: DecisionRecord, _ writer: inout JSONObjectWriter) {
        writer.member("decision_id", record.id)
        writer.member("event", record.event)
        writer.member("decision", record.decision)
        writer.name("challenges")
        writer.list(record.challenges)
        writer.name("reasons")
        writer.raw("[")
        for (index, code) in record.wireReasons.enumerated() {
            writer.raw(index > 0 ? ",{\"code\":" : "{\"code\":")
            writer.value(code)
            writer.raw("}")
        }
        writer.raw("]")
        writer.name("degraded")
        writer.raw(record.isDegraded ? "true" : "false")
        let troubles = record.contextTroubles
        if !troubles.ignored.isEmpty {
            writer.name(ContextTrouble.ignored.rawValue)
            writer.list(troubles.ignored)
        }
        if !troubles.unusable.isEmpty {
            writer.name(ContextTrouble.invalid.rawValue)
            writer.list(troubles.unusable.map(\.name))
        }
        if let status = record.realUserStatus {
            writer.name("real_user_status")
            writer.raw("\(status)")
        }
        if record.credentialState != GrantView.unknownCredential { writer.member("credential_state", record.credentialState) }
        if let result = record.upgradeResult { writer.member("upgrade_result", result) }
        writer.name("policy")
        writer.raw("{\"name\":")
        writer.value(record.policyName)
        writer.raw(",\"version\":")
        writer.value(record.policyVersion)
        writer.raw(",\"hash\":")
        writer.value(record.policyHash)
        writer.raw("}")
        writer.member("evaluated_at", UTCTime.text(record.evaluatedAt))
        writer.member("expires_at", UTCTime.text(record.expiresAt))
    }
}
