// The configuration of teams, in one form for files and for the store, so that they can be
// compared. It contains no secret, key or inbox.

/// A statement of a file about something that may exist once.
package enum Declared<Value: Sendable & Hashable>: Sendable, Hashable {
    /// Not stated: it stays unchanged.
    case unsaid
    /// It must not exist.
    case none
    case some(Value)

    package var value: Value? { if case .some(let value) = self { value } else { nil } }
}

/// Teams, lists and policies. Nil means not stated: it stays unchanged.
package struct Declaration: Sendable, Hashable {
    /// By identifier.
    package var teams: [String: DeclaredTeam]?
    /// The installation's own, by name.
    package var lists: [String: DeclaredList]?
    /// By name.
    package var policies: [String: DeclaredPolicy]?

    package init(
        teams: [String: DeclaredTeam]? = nil, lists: [String: DeclaredList]? = nil,
        policies: [String: DeclaredPolicy]? = nil
    ) {
        (self.teams, self.lists, self.policies) = (teams, lists, policies)
    }
}

/// A team. Nil means not stated: it stays unchanged.
package struct DeclaredTeam: Sendable, Hashable {
    /// For people; a new team needs one.
    package var name: String?
    package var sources: Set<DeclaredSource>?
    /// How surely users must have signed in: `any`, `two_factor` or `passkey`.
    package var signInLevel: String?
    /// The apps by client_id.
    package var apps: [String: DeclaredApp]?
    /// By name.
    package var lists: [String: DeclaredList]?
    /// For the consents without a named app.
    package var endpoint: Declared<DeclaredEndpoint>
    /// The name of the policy that decides for its apps.
    package var policy: Declared<String>

    package init(
        name: String? = nil, sources: Set<DeclaredSource>? = nil, signInLevel: String? = nil,
        apps: [String: DeclaredApp]? = nil,
        lists: [String: DeclaredList]? = nil, endpoint: Declared<DeclaredEndpoint> = .unsaid,
        policy: Declared<String> = .unsaid
    ) {
        (self.name, self.sources, self.apps) = (name, sources, apps)
        self.signInLevel = signInLevel
        (self.lists, self.endpoint, self.policy) = (lists, endpoint, policy)
    }
}

/// A domain or address that a team sends from, perhaps paired with an envelope domain.
package struct DeclaredSource: Sendable, Hashable, Comparable {
    package var source: String
    package var envelope: String?

    package init(_ source: String, envelope: String? = nil) {
        (self.source, self.envelope) = (source, envelope)
    }

    package static func < (one: Self, other: Self) -> Bool {
        (one.source, one.envelope ?? "") < (other.source, other.envelope ?? "")
    }
}

/// An app. Nil means not stated: it stays unchanged; a new app has the default
/// of `postern app add`.
package struct DeclaredApp: Sendable, Hashable {
    /// For people.
    package var name: Declared<String>
    /// client_id of the primary app of its group; nil for a primary app.
    package var group: String?
    package var isPublic: Bool?
    /// `ES256` or `RS256`.
    package var algorithm: String?
    /// How surely users must have signed in: `any`, `two_factor` or `passkey`.
    package var signInLevel: String?
    /// `raw` or `sha256_hex`.
    package var nonceForm: String?
    package var isNonceRequired: Bool?
    package var redirectURIs: Set<String>?
    package var logoutURIs: Set<String>?
    /// The URL that is notified when a session ends.
    package var backchannelLogoutURI: Declared<String>
    /// The endpoint of its group; only for a primary app.
    package var endpoint: Declared<DeclaredEndpoint>
    /// The name of the policy that decides for it; it takes precedence over its team's.
    package var policy: Declared<String>

    package init(
        name: Declared<String> = .unsaid, group: String? = nil, isPublic: Bool? = nil,
        algorithm: String? = nil,
        signInLevel: String? = nil, nonceForm: String? = nil, isNonceRequired: Bool? = nil,
        redirectURIs: Set<String>? = nil,
        logoutURIs: Set<String>? = nil, backchannelLogoutURI: Declared<String> = .unsaid,
        endpoint: Declared<DeclaredEndpoint> = .unsaid, policy: Declared<String> = .unsaid
    ) {
        (self.name, self.group, self.isPublic, self.algorithm) = (name, group, isPublic, algorithm)
        self.signInLevel = signInLevel
        (self.nonceForm, self.isNonceRequired) = (nonceForm, isNonceRequired)
        (self.redirectURIs, self.logoutURIs) = (redirectURIs, logoutURIs)
        self.backchannelLogoutURI = backchannelLogoutURI
        (self.endpoint, self.policy) = (endpoint, policy)
    }
}

/// The URL to which events go.
package struct DeclaredEndpoint: Sendable, Hashable {
    package var url: String
    /// Whether http is accepted too.
    package var allowsHTTP: Bool
    /// Whether addresses that are not globally reachable are accepted.
    package var allowsPrivate: Bool
    /// The form of its notifications: `apple` or `apple-2025`.
    package var dialect: String

    package init(
        url: String, allowsHTTP: Bool = false, allowsPrivate: Bool = false,
        dialect: String = dialects[0]
    ) {
        (self.url, self.allowsHTTP, self.allowsPrivate, self.dialect) = (
            url, allowsHTTP, allowsPrivate, dialect
        )
    }

    /// The first is the default.
    package static let dialects = ["apple", "apple-2025"]
}

/// A list that policies read. Its entries are data and change between two runs, so they are not
/// part of a declaration.
package struct DeclaredList: Sendable, Hashable {
    /// `text`, `domain`, `range` or `personal`.
    package var kind: String

    package init(kind: String) { self.kind = kind }
}

/// The policy that a name refers to.
package struct DeclaredPolicy: Sendable, Hashable {
    /// `sha256:` and 64 hexadecimal digits; empty for the policy of a folder that was not read yet.
    package var hash: String
    /// The folder with its files, as written; nil if the policy comes from the store.
    package var folder: String?
    /// Whether it decides for every app or team without a policy; false means not stated.
    package var isDefault: Bool

    package init(hash: String, folder: String? = nil, isDefault: Bool = false) {
        (self.hash, self.folder, self.isDefault) = (hash, folder, isDefault)
    }
}

/// One item of a declaration: the subject of a line of a plan, and of a position in a file.
package enum DeclaredItem: Sendable, Hashable, CustomStringConvertible {
    case list(team: String?, String)
    case policy(String)
    case team(String)
    case source(team: String, DeclaredSource)
    case app(team: String, String)
    case redirectURI(team: String, app: String, String)
    case logoutURI(team: String, app: String, String)
    /// Of an app's group; of only the team's mail if `app` is nil.
    case endpoint(team: String, app: String?)
    case binding(team: String, app: String?)

    /// For example `team juice: app com.example.juice: endpoint`.
    package var description: String {
        switch self {
        case .list(nil, let name): "list \(name)"
        case .list(let team?, let name): "team \(team): list \(name)"
        case .policy(let name): "policy \(name)"
        case .team(let id): "team \(id)"
        case .source(let team, let source):
            "team \(team): source \(source.source)"
                + (source.envelope.map { " with envelope \($0)" } ?? "")
        case .app(let team, let app): Self.owner(team, app)
        case .redirectURI(let team, let app, let uri):
            "\(Self.owner(team, app)): redirect URI \(uri)"
        case .logoutURI(let team, let app, let uri):
            "\(Self.owner(team, app)): post-logout redirect URI \(uri)"
        case .endpoint(let team, let app): "\(Self.owner(team, app)): endpoint"
        case .binding(let team, let app): "\(Self.owner(team, app)): policy"
        }
    }

    private static func owner(_ team: String, _ app: String?) -> String {
        "team \(team)" + (app.map { ": app \($0)" } ?? "")
    }
}

extension Declaration {
    /// The declaration without empty sections of teams, for people.
    package var withoutEmptySections: Declaration {
        var result = self
        for (id, team) in teams ?? [:] {
            if team.lists?.isEmpty == true { result.teams?[id]?.lists = nil }
            if team.apps?.isEmpty == true { result.teams?[id]?.apps = nil }
            if team.sources?.isEmpty == true { result.teams?[id]?.sources = nil }
        }
        if lists?.isEmpty == true { result.lists = nil }
        if policies?.isEmpty == true { result.policies = nil }
        return result
    }
}
