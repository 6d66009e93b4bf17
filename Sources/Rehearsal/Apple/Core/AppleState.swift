// All data of a sandbox, as a value. Requests change it; nothing is kept when the sandbox ends.

import MailCrypto
import SignIn
import Support

/// A user's consent to a client.
struct AppleConsent: Sendable {
    /// Grows with each consent: codes and tokens of an earlier consent are no longer valid.
    let number: Int
    /// The address that the client gets; nil if it never requested one.
    var email: String?
    var isPrivate: Bool
}

/// How a consent ended.
enum AppleConsentEnd: Sendable { case byUser, byClient, accountDeleted }

/// An authorization code.
struct AppleCode: Sendable {
    let clientID: String
    let userID: String
    let consent: Int
    /// Nil for a native app.
    let redirectURI: String?
    let nonce: String?
    /// SHA-256 of the code_verifier (RFC 7636); nil if there was none.
    let challenge: String?
    let issuedAt: Int64
    /// Whether the token contains `real_user_status`: at the first authorization of a native app.
    let saysRealUserStatus: Bool
    var usedAt: Int64?
}

/// A refresh token or an access token.
struct AppleGrant: Sendable {
    let clientID: String
    /// Nil for the access token of a team that migrates users.
    let userID: String?
    let consent: Int
    /// Seconds since 1970; nil for a refresh token, which does not expire.
    let expiresAt: Int64?
}

/// An app that moved to another team.
struct AppleTransfer: Sendable {
    let from: String
    let to: String
    let at: Int64
}

/// Settings that can change while a sandbox runs.
package struct AppleSettings: Sendable {
    /// The user who signs in without the page; if nil, the page asks the user.
    package var auto: AutoAnswer?
    package var booleans: AppleBooleans
    /// Seconds.
    package var identityTokenLifetime: Int64

    package enum AutoAnswer: Sendable, Hashable {
        case user(String)
        /// Every request is cancelled.
        case cancel
    }
}

/// The state of a sandbox.
package struct AppleState: Sendable {
    /// Seconds until a code expires.
    package static let codeLifetime: Int64 = 300
    /// Seconds until an access token expires.
    package static let accessTokenLifetime: Int64 = 3_600
    /// Seconds after a transfer during which tokens have `transfer_sub` and
    /// users can be moved: 60 days.
    package static let transferWindow: Int64 = 60 * 86_400
    /// The most codes and tokens of each kind that are kept: far more than a test suite
    /// makes between two resets.
    static let maximumGrants = 10_000
    /// The number of keys published at one time.
    package static let publishedKeys = 3
    /// The most seconds by which the clock can be set, forward or back: ten years.
    package static let maximumClockOffset: Int64 = 3_650 * 86_400

    package let seed: AppleSeed
    private let secret: [UInt8]
    /// `http://127.0.0.1:PORT`, once it listens.
    package var address = "http://127.0.0.1"
    package var settings: AppleSettings
    /// Seconds by which the clock is ahead.
    package private(set) var clockOffset: Int64 = 0
    package var journal = AppleJournal()
    package var failures = AppleFailures()

    /// The oldest first.
    package private(set) var keys: [AppleSigningKey]
    /// The key for wrong signatures; never published.
    let strayKey: AppleSigningKey
    private var serial = 0

    var codes = BoundedTable<AppleCode>(limit: maximumGrants)
    var refreshTokens = BoundedTable<AppleGrant>(limit: maximumGrants)
    var accessTokens = BoundedTable<AppleGrant>(limit: maximumGrants)
    var consents: [ClientUser: AppleConsent] = [:]
    /// By the number of the consent.
    var consentEnds = BoundedTable<AppleConsentEnd>(limit: maximumGrants)
    package internal(set) var deletedUsers: Set<String> = []
    var transfers: [String: AppleTransfer] = [:]
    var transferSubjects: [String: AppleTransferSubject] = [:]
    /// The last identity token and the last event of each client, for a replay.
    var lastTokens: [String: String] = [:]
    var lastEvents: [String: AppleNotification] = [:]

    struct ClientUser: Hashable, Sendable {
        let clientID: String
        let userID: String
    }

    /// - Parameters:
    ///   - secret: 32 random octets, from which codes and tokens are made.
    ///   - keys: the published keys.
    ///   - auto: whether the first user signs in without the page.
    package init(
        seed: AppleSeed, secret: [UInt8], keys: [AppleSigningKey], strayKey: AppleSigningKey,
        auto: Bool
    ) {
        self.seed = seed
        self.secret = secret
        self.keys = keys
        self.strayKey = strayKey
        settings = AppleSettings(
            auto: auto ? seed.users.first.map { .user($0.id) } : nil, booleans: seed.booleans,
            identityTokenLifetime: seed.identityTokenLifetime)
    }

    /// Back to the initial state, with the same address and keys, and `auto` as at the
    /// start. The journal continues.
    package mutating func reset(auto: Bool) {
        var fresh = AppleState(
            seed: seed, secret: secret, keys: keys, strayKey: strayKey, auto: auto)
        fresh.address = address
        fresh.journal = journal
        // Numbers continue, so that no earlier code is issued a second time.
        fresh.serial = serial
        self = fresh
    }

    /// Sets the clock; false beyond `maximumClockOffset`.
    package mutating func setClock(offset: Int64) -> Bool {
        guard offset.magnitude <= Self.maximumClockOffset else { return false }
        clockOffset = offset
        return true
    }

    /// `iss` of tokens.
    package var issuer: String { seed.issuer ?? address }

    // MARK: Teams and users

    /// The team that has a client now.
    package func team(of client: AppleClient) -> AppleTeam? {
        seed.team(transfers[client.id]?.to ?? client.team)
    }

    /// Users who can sign in.
    package var users: [AppleUser] { seed.users.filter { !deletedUsers.contains($0.id) } }

    /// `sub` of a user at a team: the same in every run, so that tests can contain it.
    package static func subject(_ userID: String, team: String) -> String {
        let hash = SHA256.hash("sub \(team.utf8.count) \(team) \(userID)".utf8)
        let number = { (octets: ArraySlice<UInt8>) in
            octets.reduce(0) { ($0 << 8 | Int($1)) % 1_000_000 }
        }
        func padded(_ number: Int, _ width: Int) -> String {
            String(repeating: "0", count: max(0, width - "\(number)".count)) + "\(number)"
        }
        let minutes = number(hash[3..<5]) % 1_440
        return padded(number(hash[0..<3]) % 3_000, 6) + "." + Hex.encode(hash[8..<24]) + "."
            + padded(minutes / 60 * 100 + minutes % 60, 4)
    }

    /// The address that hides the user's own address from a team: the same in every run.
    package static func privateEmail(_ userID: String, team: String) -> String {
        let hash = SHA256.hash("email \(team.utf8.count) \(team) \(userID)".utf8)
        return Base32.characters(fromRandom: Array(hash.prefix(10))) + "@privaterelay.appleid.com"
    }

    // MARK: Issued values

    /// A value that was never issued and that no one can guess.
    mutating func unique(_ prefix: String) -> String {
        serial += 1
        let code = HMACSHA256.authenticationCode(
            for: Array("\(prefix) \(serial)".utf8), key: secret)
        return prefix + Hex.encode(code.prefix(16)) + ".0." + Base64URL.encode(code.dropFirst(16))
    }

    mutating func nextNumber() -> Int {
        serial += 1
        return serial
    }

    /// Signs with the published keys in turn, because no client may rely on the first. Applies
    /// `failure` to the claims and the signature.
    mutating func sign(_ claims: JSONObject, failure: AppleFailure?) throws -> String {
        var claims = claims
        failure?.spoil(&claims)
        let key = keys[nextNumber() % keys.count]
        return switch failure {
        case .wrongSignature: try strayKey.sign(claims, keyID: key.id)
        case .unknownKid: try strayKey.sign(claims)
        default: try key.sign(claims)
        }
    }

    /// The key set; empty if `failure` requires it.
    package func keySet(failure: AppleFailure?) -> [UInt8] {
        PublishedKeys.document(failure == .noKeys ? [] : keys.map(\.jwk))
    }

    /// Replaces the oldest keys with new ones; their number stays the same.
    package mutating func rotate(_ new: [AppleSigningKey]) {
        guard !new.isEmpty else { return }
        keys = Array((keys + new).suffix(keys.count))
    }
}

/// The user and teams that a `transfer_sub` was made for.
struct AppleTransferSubject: Sendable {
    let userID: String
    let from: String
    let to: String
}
