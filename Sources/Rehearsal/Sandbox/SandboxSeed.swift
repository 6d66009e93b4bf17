// The content of a sandbox at its start: a team with an app, its credentials, and users.

import Accounts
import Decisions
import InternetMessage
import MailCrypto
import SignIn
import Support

/// The data that a developer needs about a running sandbox. Its secrets are valid in this sandbox
/// only.
package struct SandboxFacts: Sendable, Encodable {
    package struct User: Sendable, Encodable {
        package let user: String
        package let inbox: String
        /// Set if the user already uses the app.
        package let sub: String?
        package let address: String?
    }

    /// `http://127.0.0.1:PORT`: also the issuer of identity tokens.
    package let url: String
    /// `127.0.0.1:PORT`.
    package let smtp: String
    package let team: String
    package let clientID: String
    package let clientSecret: String
    /// A public app in the group of the first app: for a page without a backend.
    package let pageClientID: String
    package let pageRedirectURIs: [String]
    /// The team's API key, with every scope of teams.
    package let key: String
    package let redirectURIs: [String]
    /// A domain from which the team may write.
    package let source: String
    package let relayDomain: String
    package let users: [User]
    /// The issuer of the tokens of `/sandbox/token` for a `sub`.
    package let tokenIssuer: String

    private enum CodingKeys: String, CodingKey {
        case url, smtp, team, key, source, relayDomain, users, tokenIssuer
        case clientID = "clientId"
        case clientSecret
        case redirectURIs = "redirectUris"
        case pageClientID = "pageClientId"
        case pageRedirectURIs = "pageRedirectUris"
    }
}

/// Names of a sandbox.
enum SandboxNames {
    static let team = "sandbox"
    static let relayDomain = "relay.sandbox.example"
    static let source = "app.example"
    static let issuer = "https://issuer.sandbox.example"
    static let operatorAddress = "operator@sandbox.example"
    /// Redirect URIs: a loopback address may have any port (RFC 8252 section 7.3).
    static let redirectURIs = [
        "http://127.0.0.1/callback", "http://localhost:3000/callback",
        "http://localhost:5000/callback",
    ]
    static let pageClientID = "com.example.page"
    static let pageRedirectURIs = [
        "http://127.0.0.1/", "http://127.0.0.1/page.html", "http://localhost:3000/",
        "http://localhost:5173/",
    ]
    /// The first user already uses the app; the second has not signed in yet.
    static let users: [(id: String, name: String, inbox: String, usesApp: Bool)] = [
        ("jane", "Jane Doe", "jane@home.example", true),
        ("anna", "Anna Roe", "anna@mail.example", false),
    ]
}

struct SandboxSeed {
    let store: Store
    let zone: SandboxZone
    let settings: Sandbox.Settings
    let url: String
    let smtp: String
    /// Signs the tokens for a `sub`.
    let issuer: SandboxIssuer
    /// Seconds since 1970.
    let now: Int64

    /// Fills an empty installation. Throws the store's errors.
    func plant() throws -> SandboxFacts {
        let change = Change(actor: "sandbox", now: now)
        let (team, clientID) = (SandboxNames.team, settings.clientID)
        _ = try store.teams.add(id: team, name: "Example App", change)
        _ = try store.addApp(
            team: team, clientID: clientID, group: nil,
            redirectURIs: SandboxNames.redirectURIs + settings.redirectURIs,
            name: "Example", change)
        try store.apps.setNonce(
            team: team, clientID: clientID, form: settings.nonceForm,
            isRequired: settings.isNonceRequired, change)
        _ = try store.addApp(
            team: team, clientID: SandboxNames.pageClientID, group: clientID,
            redirectURIs: SandboxNames.pageRedirectURIs,
            name: "Example page", change)
        try store.openIDClients.set(
            ClientSettings(isPublic: true, algorithm: ClientSettings.standardAlgorithm), team: team,
            clientID: SandboxNames.pageClientID, change)
        let secret = try store.openIDClients.issueSecret(team: team, clientID: clientID, change)
            .secret
        let key = try store.apiKeys.issue(
            team: team, scopes: Set(Scope.available(to: .team)), expiresAt: nil, note: "sandbox",
            change)
        try store.sources.add(
            team: team, store.sources.checked(SandboxNames.source, envelopeDomain: nil, now: now),
            change)
        zone.open(SandboxNames.source)
        _ = try store.issuers.add(
            Issuer(
                name: "sandbox", iss: issuer.issuer, source: .inline,
                location: issuer.publishedKeys,
                algorithms: [SignatureAlgorithm.es256.rawValue], nonceForm: NonceForm.raw.rawValue,
                leeway: IssuerConfiguration.defaultLeeway), change)
        if let policy = settings.policy { _ = try store.policies.activate(policy, change) }
        let users = try SandboxNames.users.map { user in
            let inbox = try AddrSpec.typed(user.inbox)
            zone.open(inbox.domain)
            _ = try store.users.add(
                id: user.id, name: user.name, inbox: InboxAddress(inbox), isVerified: true, change)
            let issued =
                user.usesApp
                ? try store.addresses.issue(team: team, user: user.id, app: clientID, change)
                    .address : nil
            return SandboxFacts.User(
                user: user.id, inbox: user.inbox, sub: issued?.account.sub,
                address: issued?.address.wireForm)
        }
        return SandboxFacts(
            url: url, smtp: smtp, team: team, clientID: clientID, clientSecret: secret,
            pageClientID: SandboxNames.pageClientID,
            pageRedirectURIs: SandboxNames.pageRedirectURIs, key: key.text.revealed,
            redirectURIs: SandboxNames.redirectURIs + settings.redirectURIs,
            source: SandboxNames.source,
            relayDomain: SandboxNames.relayDomain, users: users, tokenIssuer: issuer.issuer)
    }
}
