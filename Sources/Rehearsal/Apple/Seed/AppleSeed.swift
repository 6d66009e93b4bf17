// The initial data of a sandbox: teams with their keys and clients, test users,
// and the form of tokens.

import SignIn
import Support

/// A developer team, as in Apple's membership.
package struct AppleTeam: Sendable {
    /// Ten characters at Apple; 1 to 64 here.
    package let id: String
    package let keys: [AppleClientKey]
}

/// A key with which a team signs its client secrets.
package struct AppleClientKey: Sendable {
    /// `kid` of the client secret.
    package let id: String
    package let verificationKey: VerificationKey
    /// PKCS#8 PEM, as in Apple's `.p8` file; nil if the seed has only the public part.
    package let privatePEM: String?
}

/// An app: a Services ID or a bundle id.
package struct AppleClient: Sendable {
    package let id: String
    /// Its first team; a transfer changes the team.
    package let team: String
    /// Nil for any address of this machine.
    package let redirectURIs: [String]?
    /// The destination of server-to-server notifications: an address of this machine; nil for none.
    package let notifications: String?
    package let dialect: AppleEventDialect
}

/// A person with an Apple Account.
package struct AppleUser: Sendable {
    package let id: String
    package let email: String
    package let firstName: String
    package let lastName: String
    /// Whether "hide my email" is preselected on the page and used by `--auto`.
    package let hidesEmail: Bool
    /// 0 to 2; part of tokens of native apps at the first authorization.
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

/// A checked seed.
package struct AppleSeed: Sendable {
    /// `iss` of tokens and `aud` of client secrets; nil for the sandbox's own address.
    package let issuer: String?
    package let booleans: AppleBooleans
    /// Seconds from `iat` to `exp` of identity tokens.
    package let identityTokenLifetime: Int64
    package let teams: [AppleTeam]
    package let clients: [AppleClient]
    package let users: [AppleUser]

    /// The issuer that libraries have built in.
    package static let standardIssuer = "https://appleid.apple.com"
    /// A day, as in tokens of 2021.
    package static let standardLifetime: Int64 = 86_400

    package func client(_ id: String) -> AppleClient? {
        clients.first { $0.id.hasSameOctets(as: id) }
    }
    package func team(_ id: String) -> AppleTeam? { teams.first { $0.id.hasSameOctets(as: id) } }
    package func user(_ id: String) -> AppleUser? { users.first { $0.id.hasSameOctets(as: id) } }
}
