// How surely a user has to sign in: of an installation, a team, an app, and a user.

import Accounts
import Database
import Support

/// How surely someone signed in, or has to: each level includes those before it.
package enum SignInLevel: String, SQLCodable, Sendable, CaseIterable, Comparable {
    /// By a mailed code or link, or as the operator's provider decides.
    case any
    /// By two factors: a passkey, or a first factor and a code of an authenticator app.
    case twoFactor = "two_factor"
    /// By a passkey, which no other site can ask for (phishing-resistant).
    case passkey

    package static func < (lhs: SignInLevel, rhs: SignInLevel) -> Bool { lhs.order < rhs.order }

    private var order: Int {
        switch self {
        case .any: 0
        case .twoFactor: 1
        case .passkey: 2
        }
    }
}

/// Values of `acr` that the built-in page gives, and takes in `acr_values` (OpenID
/// Connect EAP ACR Values).
package enum AuthenticationClass: String, Sendable, CaseIterable {
    /// Phishing-resistant.
    case passkey = "phr"
    /// Two factors.
    case twoFactor = "mfa"

    package var level: SignInLevel {
        switch self {
        case .passkey: .passkey
        case .twoFactor: .twoFactor
        }
    }

    /// The level that a request asks for: that of the weakest class that it names, since each is
    /// enough for it. `any` if it names none of them.
    package static func level(_ classes: [String]) -> SignInLevel {
        classes.compactMap { word in allCases.first { $0.rawValue.hasSameOctets(as: word) }?.level }
            .min() ?? .any
    }
}

/// The levels that teams and apps require.
package struct SignInLevelRepository: Sendable {
    let database: any Database

    /// What an app requires: the higher of its own level and its team's. `any`
    /// if there is no such app.
    package func level(clientID: String) throws(StoreFailure) -> SignInLevel {
        let row = try database.row(
            """
            SELECT a.sign_in_level, t.sign_in_level AS team_level FROM apps a JOIN app_groups g ON g.id = a.group_id
            JOIN teams t ON t.id = g.team_id WHERE a.client_id = \(clientID)
            """)
        return try row.map { row throws(StoreFailure) in
            let (own, teams): (SignInLevel, SignInLevel) = try (
                row["sign_in_level"], row["team_level"]
            )
            return max(own, teams)
        } ?? .any
    }

    /// The highest level that a team or an app requires which the user uses; `any` if none does.
    package func highest(user id: String) throws(StoreFailure) -> SignInLevel {
        try database.read { connection throws(StoreFailure) in
            try connection.highestLevel(user: try connection.userNumber(id))
        }
    }

    /// A team's own level. Throws `notFound`.
    package func level(team id: String) throws(StoreFailure) -> SignInLevel {
        try database.read { connection throws(StoreFailure) in
            let team = try connection.team(id).number
            return try connection.value("SELECT sign_in_level FROM teams WHERE id = \(team)")
                ?? .any
        }
    }

    /// An app's own level. Throws `notFound`.
    package func level(team id: String, clientID: String) throws(StoreFailure) -> SignInLevel {
        try database.read { connection throws(StoreFailure) in
            let app = try connection.app(team: id, clientID: clientID)
            return try connection.value("SELECT sign_in_level FROM apps WHERE id = \(app)") ?? .any
        }
    }

    /// Throws `notFound`.
    package func set(_ level: SignInLevel, team id: String, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id).number
            try connection.run("UPDATE teams SET sign_in_level = \(level) WHERE id = \(team)")
            try connection.audit(change, "team.sign-in", "team:\(id)", level.rawValue)
        }
    }

    /// Throws `notFound`.
    package func set(
        _ level: SignInLevel, team id: String, clientID: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let app = try connection.app(team: id, clientID: clientID)
            try connection.run("UPDATE apps SET sign_in_level = \(level) WHERE id = \(app)")
            try connection.audit(
                change, "app.sign-in", "team:\(id)", "\(clientID) \(level.rawValue)")
        }
    }
}

extension SQLQuerying {
    /// - Parameter user: the store's number.
    func highestLevel(user: Int64) throws(StoreFailure) -> SignInLevel {
        let rows = try rows(
            """
            SELECT DISTINCT t.sign_in_level AS team_level, p.sign_in_level FROM accounts a
            JOIN teams t ON t.id = a.team_id JOIN grants g ON g.account_id = a.id AND g.state = 'authorized'
            JOIN apps p ON p.group_id = g.group_id
            WHERE a.user_id = \(user) AND (t.sign_in_level <> 'any' OR p.sign_in_level <> 'any')
            """)
        var highest = SignInLevel.any
        for row in rows {
            let (team, app): (SignInLevel, SignInLevel) = try (
                row["team_level"], row["sign_in_level"]
            )
            highest = max(highest, team, app)
        }
        return highest
    }
}
