// Refresh tokens as their holders have them.

import Accounts
import Database
import Support

/// A refresh token: `pr_` and 32 characters; of a public app 32 more. Those of one sign-in begin with the same 32, its family,
/// and each serves once (RFC 9700 section 4.14.2): whoever uses an earlier one ends them all.
struct RefreshToken: Sendable {
    /// Seconds in which the last token still serves, for who did not get the answer, or asked twice at once. It gives the same
    /// next token again.
    static let patience: Int64 = 60
    private static let prefix = "pr_"
    private static let part = 32

    let text: String

    init(_ text: String) { self.text = text }

    /// A new one.
    init(isPublic: Bool) throws(StoreFailure) {
        let first = try SecretHash.newToken()
        text = Self.prefix + first + (isPublic ? try SecretHash.newToken() : "")
    }

    /// What all tokens of its sign-in begin with; nil for an app that is not public.
    private var family: String? {
        let octets = text.utf8
        guard octets.count == Self.prefix.utf8.count + 2 * Self.part else { return nil }
        return String(decoding: octets.dropLast(Self.part), as: UTF8.self)
    }

    func hash(_ secrets: SecretHash) -> [UInt8] { secrets.hash(.refreshToken, text) }

    func familyHash(_ secrets: SecretHash) -> [UInt8]? { family.map { secrets.hash(.refreshToken, $0, context: "family") } }

    /// The one that follows: always the same, and only we can tell it. Nil for an app that is not public.
    func next(_ secrets: SecretHash) -> RefreshToken? {
        family.map { RefreshToken($0 + Base32.characters(fromRandom: secrets.hash(.refreshToken, text, context: "next"))) }
    }
}
