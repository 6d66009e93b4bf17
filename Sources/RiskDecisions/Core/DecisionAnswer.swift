// The answer as a team sees it: from a logged decision, always the same way, so that every telling of it is equal.

import JSON
import MailCrypto
import PosternStore

/// Writes answers. No rule id, nothing of what was waived or missing, one code for whatever spans teams.
package enum DecisionAnswer {
    /// The answer as one line of JSON, members in a fixed order.
    package static func json(_ record: DecisionRecord) -> String {
        var writer = JSONObjectWriter()
        write(record, &writer)
        return writer.end()
    }

    /// The answer with what was reported since: for `GET /v1/decisions/{id}`.
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

/// Times as `2026-11-20T21:14:03Z`, without a formatter: several stand in every answer.
package enum UTCTime {
    /// Of seconds since 1970; years 0000 to 9999.
    package static func text(_ seconds: Int64) -> String {
        let bounded = min(max(seconds, -62_167_219_200), 253_402_300_799)
        let days = bounded >= 0 ? bounded / 86_400 : (bounded - 86_399) / 86_400
        let time = bounded - days * 86_400
        // Civil from days, Howard Hinnant's chrono algorithms: years begin in March, eras of 400 years.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        var octets: [UInt8] = []
        octets.reserveCapacity(20)
        func append(_ number: Int64, _ digits: Int) {
            var divisor: Int64 = digits == 4 ? 1_000 : 10
            while divisor > 0 {
                octets.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
                divisor /= 10
            }
        }
        append(year, 4)
        octets.append(UInt8(ascii: "-"))
        append(month, 2)
        octets.append(UInt8(ascii: "-"))
        append(day, 2)
        octets.append(UInt8(ascii: "T"))
        append(time / 3_600, 2)
        octets.append(UInt8(ascii: ":"))
        append(time / 60 % 60, 2)
        octets.append(UInt8(ascii: ":"))
        append(time % 60, 2)
        octets.append(UInt8(ascii: "Z"))
        return String(decoding: octets, as: UTF8.self)
    }
}
