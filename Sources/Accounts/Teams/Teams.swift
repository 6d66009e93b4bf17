// Teams, the sources they send from, and their apps.

import Database
import InternetMessage

/// A developer team.
package struct Team: Sendable, Hashable {
    /// The store's own number.
    package let number: Int64
    /// The identifier that the administrator chose.
    package let id: String
    /// For people.
    package let name: String
    /// Seconds since 1970.
    package let createdAt: Int64
}

/// A domain or address that a team registered to send from.
package struct OutboundSource: Sendable, Hashable {
    package enum Kind: String, SQLCodable, Sendable, Hashable { case domain, address }
    package let kind: Kind
    /// Lower case: a domain in A-labels (which includes everything below it), or an
    /// address in envelope form.
    package let value: String
    /// An envelope domain paired with it: SPF for that domain proves mail of
    /// this source. Nil for none.
    package let envelopeDomain: String?
    package let createdAt: Int64

    package init(kind: Kind, value: String, envelopeDomain: String?, createdAt: Int64) {
        self.kind = kind
        self.value = value
        self.envelopeDomain = envelopeDomain
        self.createdAt = createdAt
    }
}

/// Apps that share consent: a primary app and those grouped under it, or mail only.
package struct AppGroup: Sendable, Hashable {
    package let number: Int64
    /// `client_id` of the primary app; nil for the mail-only group of a team without apps.
    package let primaryClientID: String?
    /// For people and the audit.
    package var title: String { primaryClientID ?? "(mail alone)" }
}

/// A client of a team.
package struct App: Sendable, Hashable {
    package let clientID: String
    package let group: AppGroup
    package let createdAt: Int64
    /// For people; nil if they see the `client_id` instead.
    package let name: String?
    package let hasIcon: Bool
    /// Whether its group is named after it.
    package var isPrimary: Bool { group.primaryClientID == clientID }
}

/// How an app's identity tokens carry the nonce that its backend knows.
package enum AppNonceForm: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// The nonce itself.
    case raw
    /// Its SHA-256 in lower-case hexadecimal.
    case sha256Hex = "sha256_hex"
}

/// An app as a decision request needs it.
package struct DecisionApp: Sendable, Hashable {
    /// The store's own number.
    package let number: Int64
    package let clientID: String
    package let groupNumber: Int64
    /// The requesting team: the app's present team, or a former one.
    package private(set) var teamNumber: Int64
    package let teamID: String
    /// Teams that it was transferred from.
    package let formerTeams: [Int64]
    /// Whether the requesting team is one that the app was transferred from.
    package private(set) var isGone = false
    package let nonceForm: AppNonceForm
    /// Whether a request with a token must have a nonce.
    package let isNonceRequired: Bool

    package init(
        number: Int64, clientID: String, groupNumber: Int64, teamNumber: Int64, teamID: String,
        formerTeams: [Int64] = [],
        nonceForm: AppNonceForm, isNonceRequired: Bool
    ) {
        self.number = number
        self.clientID = clientID
        self.groupNumber = groupNumber
        self.teamNumber = teamNumber
        self.teamID = teamID
        self.formerTeams = formerTeams
        self.nonceForm = nonceForm
        self.isNonceRequired = isNonceRequired
    }

    /// The app for a team that may request decisions about it: its present team, or a former one.
    /// Nil for all other teams.
    package func asked(by team: Int64) -> DecisionApp? {
        if team == teamNumber { return self }
        guard formerTeams.contains(team) else { return nil }
        var app = self
        app.teamNumber = team
        app.isGone = true
        return app
    }
}
