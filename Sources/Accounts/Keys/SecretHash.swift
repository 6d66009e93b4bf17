// Keyed hashes of secrets that users have: codes, links, cookies. A stolen database does not reveal
// the secrets.

import Database
import MailCrypto
import Support

/// Hashes secrets under the key of marks, of which there is exactly one version: issued secrets
/// stay valid when other keys rotate.
package struct SecretHash: Sendable, SecretHolder {
    /// The purpose of a secret. A secret made for one purpose is not valid for another.
    package enum Purpose: String {
        case verificationCode = "verification code"
        case verificationLink = "verification link"
        case pageLink = "page link"
        case signInCode = "sign-in code"
        /// A code for a check that a decision required.
        case checkCode = "check code"
        case signUp = "sign-up"
        case browser
        /// A form that a browser sent a moment ago, so that a repetition has no effect.
        case form
        /// The network that a request comes from: counted, and not stored in clear.
        case network
        /// The domain of an inbox whose owner is not a user yet: counted.
        case inboxDomain = "inbox domain"
        /// The cookie that a browser keeps after a user signed in there.
        case knownBrowser = "known browser"
        case authorizationCode = "authorization code"
        case refreshToken = "refresh token"
        case accessToken = "access token"
        case session
        case passkeyChallenge = "passkey challenge"
        case userHandle = "user handle"
        /// A new authenticator app, until its first code is entered.
        case authenticator
        case recoveryCode = "recovery code"
        case recoveryWait = "recovery wait"
        case attestationChallenge = "attestation challenge"
        case clientSecret = "client secret"
        case clientAssertion = "client assertion"
        case authorizationRequest = "authorization request"
        case endSession = "end session"
        case sourceCode = "source code"
        /// A sign-in at the operator's own OpenID provider.
        case upstream
        /// The key that encrypts the content of an authorization response.
        case authorizationContent = "authorization content"
    }

    private let key: [UInt8]

    init(keys: KeySet) { key = keys.active.secret }

    /// 32 octets.
    /// - Parameter context: a further value that the secret is bound to, without spaces.
    package func hash(_ purpose: Purpose, _ secret: String, context: String = "-") -> [UInt8] {
        HMACSHA256.authenticationCode(
            for: Array("postern \(purpose.rawValue) 1 \(context) \(secret)".utf8), key: key)
    }

    /// 160 random bits in base32, for a link or a cookie.
    package static func newToken() throws(StoreFailure) -> String {
        Base32.characters(fromRandom: try SecureRandom.octets(32))
    }

    /// The prefix of our access tokens; a `newToken` follows.
    package static let accessTokenPrefix = "pa_"

    /// Whether a text has the form of our access tokens.
    package static func isAccessToken(_ text: String) -> Bool {
        text.hasPrefix(accessTokenPrefix) && text.utf8.count == accessTokenPrefix.utf8.count + 32
            && Base32.isEncoded(text.utf8.dropFirst(accessTokenPrefix.utf8.count))
    }

    /// Six digits, each number equally likely.
    package static func newCode() throws(StoreFailure) -> String {
        // 16,000,000 is the largest multiple of a million in 24 bits.
        while true {
            let number = try SecureRandom.octets(3).reduce(0) { $0 << 8 | UInt32($1) }
            guard number < 16_000_000 else { continue }
            let digits = String(number % 1_000_000)
            return String(repeating: "0", count: 6 - digits.count) + digits
        }
    }

    /// 40 random bits.
    static func newNonce() throws(StoreFailure) -> Int64 {
        try SecureRandom.octets(5).reduce(0) { $0 << 8 | Int64($1) }
    }
}

extension SecureRandom {
    /// Octets from the process's generator, at most 65536; its failure is temporary.
    package static func octets(_ count: Int) throws(StoreFailure) -> [UInt8] {
        do { return try bytes(count: count) } catch {
            throw .temporary(.resources, "random octets are unavailable: \(error)")
        }
    }
}
