// API keys: their owners and their permissions for the HTTP API.

import Database
import MailCrypto
import Support

/// A permission of a key. A request that needs a scope which its key lacks is refused with 403.
package struct Scope: RawRepresentable, Sendable, Hashable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    /// The owners whose keys may have a scope.
    package enum Owner: Sendable, Hashable { case team, `operator` }

    package static let decisionsWrite = Scope(rawValue: "decisions:write")
    package static let decisionsRead = Scope(rawValue: "decisions:read")
    package static let accountsRead = Scope(rawValue: "accounts:read")
    package static let accountsWrite = Scope(rawValue: "accounts:write")
    package static let addressesRead = Scope(rawValue: "addresses:read")
    package static let sourcesRead = Scope(rawValue: "sources:read")
    package static let sourcesWrite = Scope(rawValue: "sources:write")
    package static let appsRead = Scope(rawValue: "apps:read")
    package static let appsWrite = Scope(rawValue: "apps:write")
    package static let endpointsRead = Scope(rawValue: "endpoints:read")
    package static let endpointsWrite = Scope(rawValue: "endpoints:write")
    package static let keysRead = Scope(rawValue: "keys:read")
    package static let keysWrite = Scope(rawValue: "keys:write")
    package static let rejectionsRead = Scope(rawValue: "rejections:read")
    package static let eventsRead = Scope(rawValue: "events:read")
    package static let eventsWrite = Scope(rawValue: "events:write")
    package static let streamsRead = Scope(rawValue: "ssf.read")
    /// Also allows what `streamsRead` allows.
    package static let streamsManage = Scope(rawValue: "ssf.manage")
    package static let listsRead = Scope(rawValue: "lists:read")
    package static let listsWrite = Scope(rawValue: "lists:write")
    package static let usersRead = Scope(rawValue: "users:read")
    package static let usersWrite = Scope(rawValue: "users:write")
    package static let authorizationsWrite = Scope(rawValue: "authorizations:write")
    package static let metricsRead = Scope(rawValue: "metrics:read")

    /// Whether this scope includes what another one allows.
    package func grants(_ other: Scope) -> Bool {
        self == other || self == .streamsManage && other == .streamsRead
    }

    /// Every scope, with its owners and its purpose: the only place that lists them.
    package static let all: [(scope: Scope, owners: Set<Owner>, purpose: String)] = [
        (.decisionsWrite, [.team], "request decisions, and report their outcomes"),
        (.decisionsRead, [.team], "read the team's decisions"),
        (.accountsRead, [.team, .operator], "list and show accounts"),
        (.accountsWrite, [.team, .operator], "revoke consent, and delete accounts"),
        (.addressesRead, [.team], "look up relay addresses"),
        (.sourcesRead, [.team], "read outbound sources and what their DNS records lack"),
        (
            .sourcesWrite, [.team],
            "add domains, which a TXT record has to prove, and remove sources"
        ),
        (.appsRead, [.team], "read the team's apps, redirect URIs and client keys"),
        (.appsWrite, [.team], "change redirect URIs, client secrets and client keys"),
        (.endpointsRead, [.team], "read where events go, and their state"),
        (.endpointsWrite, [.team], "change where events go"),
        (.keysRead, [.team], "list the team's API keys"),
        (.keysWrite, [.team], "issue API keys with fewer scopes, and revoke those"),
        (.rejectionsRead, [.team], "read why mail was refused"),
        (.eventsRead, [.team, .operator], "read the event outbox"),
        (.eventsWrite, [.team, .operator], "retry events"),
        (.streamsRead, [.team], "read streams of the Shared Signals Framework, and poll them"),
        (
            .streamsManage, [.team],
            "make and change streams of the Shared Signals Framework, and what ssf.read allows"
        ),
        (.listsRead, [.team], "read the team's lists"),
        (.listsWrite, [.team], "make and change the team's lists"),
        (.usersRead, [.operator], "list and show users"),
        (.usersWrite, [.operator], "create, change and delete users, inboxes and addresses"),
        (
            .authorizationsWrite, [.operator],
            "authorize a user at an app: for the operator's own sign-in page"
        ),
        (.metricsRead, [.operator], "read /metrics"),
    ]

    /// The scopes that an owner's key may have.
    package static func available(to owner: Owner) -> [Scope] {
        all.filter { $0.owners.contains(owner) }.map(\.scope)
    }
}

/// A key as administration sees it. The key itself is shown once and never stored.
package struct APIKey: Sendable, Hashable {
    /// Eight base32 characters: its name in commands, logs and the audit.
    package let id: String
    /// Nil for the operator's.
    package let team: TeamName?
    package let scopes: Set<Scope>
    /// For people.
    package let note: String
    /// Seconds since 1970.
    package let createdAt: Int64
    package let expiresAt: Int64?
    package let revokedAt: Int64?
    /// Days since 1970.
    package let lastUsedDay: Int64?
    /// The key that replaces this one.
    package let rotatedTo: String?
    /// The team's key that issued it; nil if an administrator did.
    package let issuedBy: String?

    /// A team by identifier and number.
    package struct TeamName: Sendable, Hashable {
        package let id: String
        package let number: Int64

        package init(id: String, number: Int64) { (self.id, self.number) = (id, number) }
    }

    package enum State: String, Sendable { case active, expired, revoked }

    package func state(now: Int64) -> State {
        if revokedAt != nil { return .revoked }
        if let expiresAt, expiresAt <= now { return .expired }
        return .active
    }
}

/// A key in clear text: `pk_<id>_<secret>`. The secret is 32 base32 characters (160 bits), followed
/// by 6 characters of checksum over everything before them. With the checksum a secret scanner
/// recognizes real keys, and a mistyped key needs no lookup.
package struct APIKeyText: Sendable {
    package let id: String
    /// The whole key. Show it once; never log it.
    package let revealed: String

    static let prefix = "pk_"
    private static let idLength = 8
    private static let secretLength = 32
    private static let checksumLength = 6

    /// A new key.
    package static func random() throws(StoreFailure) -> APIKeyText {
        let id = Base32.characters(fromRandom: try SecureRandom.octets(idLength))
        let secret = Base32.characters(fromRandom: try SecureRandom.octets(secretLength))
        let body = prefix + id + "_" + secret
        return APIKeyText(id: id, revealed: body + checksum(body))
    }

    private init(id: String, revealed: String) {
        self.id = id
        self.revealed = revealed
    }

    /// Parses a key; nil if the text does not have the form of a key.
    package init?(_ text: String) {
        let octets = Array(text.utf8)
        guard
            octets.count == Self.prefix.utf8.count + Self.idLength + 1 + Self.secretLength
                + Self.checksumLength,
            text.hasPrefix(Self.prefix)
        else { return nil }
        let parts = octets.dropFirst(Self.prefix.utf8.count).split(
            separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].count == Self.idLength, parts.allSatisfy(Base32.isEncoded)
        else { return nil }
        let body = String(decoding: octets.dropLast(Self.checksumLength), as: UTF8.self)
        guard text == body + Self.checksum(body) else { return nil }
        id = String(decoding: parts[0], as: UTF8.self)
        revealed = text
    }

    /// The stored form. The secret has 160 random bits, so a plain hash is enough.
    package var hash: [UInt8] { SHA256.hash(Array("postern api key 1 \(revealed)".utf8)) }

    private static func checksum(_ body: String) -> String {
        String(
            decoding: Base32.encode(SHA256.hash(Array(body.utf8))).prefix(checksumLength),
            as: UTF8.self)
    }
}

extension APIKeyText: CustomStringConvertible, CustomReflectable {
    package var description: String { "<api key \(id)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
