// Refresh tokens in the form in which clients get them.

import Accounts
import Database
import Support

/// A refresh token: `pr_` and 32 characters. A public app's token has 32 more. All tokens of one
/// sign-in begin with the same 32, their family. Each of them serves once (RFC 9700 section
/// 4.14.2): a second use of an earlier token ends the family.
struct RefreshToken: Sendable {
    /// Seconds in which the last token still serves, for a client that lost the answer or sent the
    /// request twice. It gives the same next token again.
    static let patience: Int64 = 60
    private static let prefix = "pr_"
    private static let part = 32

    let text: String

    init(_ text: String) { self.text = text }

    /// A new refresh token.
    init(isPublic: Bool) throws(StoreFailure) {
        let first = try SecretHash.newToken()
        text = Self.prefix + first + (isPublic ? try SecretHash.newToken() : "")
    }

    /// The beginning that all tokens of one sign-in share; nil for an app that is not public.
    private var family: String? {
        let octets = text.utf8
        guard octets.count == Self.prefix.utf8.count + 2 * Self.part else { return nil }
        return String(decoding: octets.dropLast(Self.part), as: UTF8.self)
    }

    func hash(_ secrets: SecretHash) -> [UInt8] { secrets.hash(.refreshToken, text) }

    func familyHash(_ secrets: SecretHash) -> [UInt8]? {
        family.map { secrets.hash(.refreshToken, $0, context: "family") }
    }

    /// The next token of the family: always the same, and only our secret can compute it. Nil for
    /// an app that is not public.
    func next(_ secrets: SecretHash) -> RefreshToken? {
        family.map {
            RefreshToken(
                $0
                    + Base32.characters(
                        fromRandom: secrets.hash(.refreshToken, text, context: "next")))
        }
    }
}
