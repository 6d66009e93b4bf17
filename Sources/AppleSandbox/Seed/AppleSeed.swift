// What a sandbox begins with: teams with their keys and clients, test users, and how tokens are written.

import SignIn
import Support

/// A developer team, as Apple's membership has it.
package struct AppleTeam: Sendable {
    /// Ten characters at Apple; 1 to 64 here.
    package let id: String
    package let keys: [AppleClientKey]
}

/// A key that a team signs its client secrets with.
package struct AppleClientKey: Sendable {
    /// `kid` of the client secret.
    package let id: String
    package let verificationKey: VerificationKey
    /// PKCS#8 PEM, as in the `.p8` file of Apple; nil where the seed has the public part alone.
    package let privatePEM: String?
}

/// An app: a Services ID or a bundle id.
package struct AppleClient: Sendable {
    package let id: String
    /// The team that it began with; a transfer gives it another.
    package let team: String
    /// Nil: any address of this machine.
    package let redirectURIs: [String]?
    /// Where server-to-server notifications go: an address of this machine; nil for none.
    package let notifications: String?
    package let dialect: AppleEventDialect
}

/// A person with an Apple Account.
package struct AppleUser: Sendable {
    package let id: String
    package let email: String
    package let firstName: String
    package let lastName: String
    /// Whether the page has "hide my email" chosen, and what `--auto` chooses.
    package let hidesEmail: Bool
    /// 0 to 2; in tokens of native apps at the first authorization.
    package let realUserStatus: Int
}

/// How tokens write `email_verified` and `is_private_email`. Apple has sent both.
package enum AppleBooleans: String, Sendable, Decodable, CaseIterable { case boolean, string }

/// The two forms in which notifications were seen.
package enum AppleEventDialect: String, Sendable, Decodable, CaseIterable {
    /// As captured: `events` is a JSON string, `event_time` in milliseconds.
    case wire
    /// As Apple's documentation shows it: `events` is an object, `event_time` in seconds.
    case documentation
}

/// A seed that was checked.
package struct AppleSeed: Sendable {
    /// `iss` of tokens and `aud` of client secrets; nil: the sandbox's own address.
    package let issuer: String?
    package let booleans: AppleBooleans
    /// Seconds from `iat` to `exp` of identity tokens.
    package let identityTokenLifetime: Int64
    package let teams: [AppleTeam]
    package let clients: [AppleClient]
    package let users: [AppleUser]

    /// What libraries have built in.
    package static let standardIssuer = "https://appleid.apple.com"
    /// A day, as tokens of 2021 have it.
    package static let standardLifetime: Int64 = 86_400

    package func client(_ id: String) -> AppleClient? { clients.first { $0.id.hasSameOctets(as: id) } }
    package func team(_ id: String) -> AppleTeam? { teams.first { $0.id.hasSameOctets(as: id) } }
    package func user(_ id: String) -> AppleUser? { users.first { $0.id.hasSameOctets(as: id) } }
}
