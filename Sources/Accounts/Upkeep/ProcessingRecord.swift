// The record of processing: what is kept about people, for what, how long, and who gets it
// (Article 30 GDPR asks for such a record; other laws have their own words for it).

/// A purpose for which data about people is processed.
package struct ProcessingActivity: Sendable, Hashable {
    /// How long its data is kept.
    package enum Period: Sendable, Hashable {
        /// With the user, the account or the consent that it belongs to.
        case untilDeletion
        /// As set for a kind of data.
        case retention(DataClass)
        /// A time that cannot be set, in words.
        case fixed(String)
    }

    /// Who gets data of it, besides the user and the operator.
    package enum Recipient: String, Sendable, Hashable, CaseIterable {
        case none = "no one"
        case team = "the team that the user consented to"
        case sender = "the servers of the mail's recipients"
        case identityProvider = "the identity provider that the user chose"
    }

    /// In the words of an operator.
    package let data: String
    /// The sections of the user's download that show it.
    package let sections: [String]
    package let purpose: String
    /// The longest comes last.
    package let periods: [Period]
    package let recipients: [Recipient]

    /// Every activity, in the order of the record.
    package static let all: [ProcessingActivity] = [
        ProcessingActivity(
            data: "inboxes and the name, encrypted; language and settings",
            sections: ["user", "inboxes"],
            purpose: "to forward mail and to send the user messages about their account",
            periods: [.untilDeletion], recipients: [.sender, .team]),
        ProcessingActivity(
            data: "accounts, consents and relay addresses; the user's notes and blocked senders",
            sections: [
                "accounts", "account_notes", "relay_addresses", "consents", "blocked_senders",
                "identities_elsewhere", "stream_exclusions", "upstream_identities",
            ],
            purpose: "to know which team may write to the user, and under which address",
            periods: [.untilDeletion], recipients: [.team]),
        ProcessingActivity(
            data: "sign-ins, sessions, passkeys, second factors, codes, links and freezes",
            sections: [
                "inbox_verifications", "sign_ins_under_way", "sign_ins", "sessions",
                "apps_of_sessions", "recent_sign_ins", "passkeys", "authenticator_app",
                "recovery_codes", "sign_in_without_second_factor", "links_under_way",
                "sign_in_codes", "codes_of_checks", "messages_from_us", "frozen",
            ],
            purpose: "to let the user sign in, and no one else",
            periods: [.fixed("codes, links and sessions until they expire"), .untilDeletion],
            recipients: [.team, .identityProvider]),
        ProcessingActivity(
            data: "daily counts of each account, and failures of each inbox",
            sections: ["counts_by_day", "counts_before", "inbox_failures"],
            purpose: "to keep limits, to suspend inboxes that reject mail, and as signals of risk",
            periods: [
                .retention(.counters), .fixed("their sum until the account is deleted"),
            ], recipients: [.none]),
        ProcessingActivity(
            data:
                "risk decisions with their signals, first statuses, objections and notes of reviews",
            sections: [
                "decisions", "status_decisions", "objections", "review_notes", "rule_snoozes",
            ],
            purpose: "to protect teams from fraud, and to explain a decision",
            periods: [.retention(.decisions)], recipients: [.team]),
        ProcessingActivity(
            data: "outcomes of the checks that a decision required", sections: ["checks"],
            purpose: "to know whether the user passed a check",
            periods: [.retention(.checks)], recipients: [.team]),
        ProcessingActivity(
            data: "senders of refused mail, by domain and day",
            sections: ["refusals_by_day", "refusals_you_were_told_of"],
            purpose: "to show the user which mail was refused",
            periods: [.fixed("90 days")], recipients: [.none]),
        ProcessingActivity(
            data: "the domains that wrote to a relay address without being the team's",
            sections: ["uses_by_others"],
            purpose: "to show the user and the team that an address was passed on",
            periods: [.retention(.usesByOthers)], recipients: [.team]),
        ProcessingActivity(
            data: "the author of the last message to each account, encrypted",
            sections: ["last_messages"], purpose: "to show the user what an address is used for",
            periods: [.fixed("30 days")], recipients: [.none]),
        ProcessingActivity(
            data: "accounts whose user complained, or whose provider refused mail, by day",
            sections: ["mail_your_provider_objected_to", "mail_your_provider_objected_to_before"],
            purpose: "to slow mail that providers object to",
            periods: [.retention(.deliveries)], recipients: [.none]),
        ProcessingActivity(
            data:
                "addresses of correspondents that do not fit into an address, encrypted; marks of automatic mail",
            sections: ["stored_correspondents", "marks_of_what_happened_once"],
            purpose: "to deliver replies and reports",
            periods: [.fixed("a year after the last mail")], recipients: [.team]),
        ProcessingActivity(
            data: "events about the user's consents, addresses and account",
            sections: ["events_to_teams", "moves_to_other_teams"],
            purpose: "to tell teams what the user changed",
            periods: [
                .fixed("7 days after they are delivered; longer while a team's endpoint fails")
            ], recipients: [.team]),
        ProcessingActivity(
            data: "administrative changes, sign-ins and the administrators who saw an inbox",
            sections: ["changes"], purpose: "to show who did what",
            periods: [.retention(.audit)], recipients: [.none]),
        ProcessingActivity(
            data: "data of any kind above that a hold keeps", sections: ["holds"],
            purpose: "to keep evidence for a dispute or an order",
            periods: [.fixed("until the hold ends, \(HoldTerms.maximumDays) days at most")],
            recipients: [.none]),
        ProcessingActivity(
            data: "keyed hashes of deleted accounts", sections: ["earlier_accounts"],
            purpose: "to notice that an inbox returns after its deletion",
            periods: [.fixed("30 days")], recipients: [.none]),
    ]

    /// The columns of a printed record.
    package static let header = ["DATA", "PURPOSE", "KEPT", "RECIPIENTS"]

    /// The columns with the days of an installation.
    /// - Parameter retentions: one of each kind of data.
    package func columns(_ retentions: [Retention]) -> [String] {
        let kept = periods.map { period in
            switch period {
            case .untilDeletion: "until it is deleted"
            case .fixed(let words): words
            case .retention(let data):
                "\(retentions.first { $0.dataClass == data }?.days ?? data.standardDays) days (\(data.name))"
            }
        }
        return [
            data, purpose, kept.joined(separator: "; "),
            recipients.map(\.rawValue).joined(separator: "; "),
        ]
    }
}
