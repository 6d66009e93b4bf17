// Recognises Postern's own copies. Postfix's smtpd for copies lets every user of this machine state
// which client the mail comes from, and SPF is then checked for that client. So the process that
// hands over a copy logs in to its session with a login that only the keys can produce.

import InternetMessage
import Support

/// Makes and reads logins for sessions that hand over copies: `copies.<end>.<nonce>.<key id><MAC>`.
/// Postfix logs them, so each is valid for one session (`UsedCopyLogins` in RelayMilter). If the
/// process that saw the login has ended, the login is still valid for a few minutes.
package struct CopyLogin {
    /// Seconds for which a login is valid. A session sends copies for four minutes, and each copy
    /// takes less than that.
    package static let lifetime: Int64 = 600
    /// Octets that distinguish two sessions for one client within the same second.
    private static let nonceOctets = 10
    /// 130 bits.
    private static let macDigits = 26

    let keys: TokenKeys

    /// - Parameters:
    ///   - address: of the client whose mail the session hands over; nil if it has none.
    ///   - randomness: returns the requested number of octets.
    ///   - now: seconds since 1970.
    func make(for address: String?, randomness: (Int) -> [UInt8], now: Int64) -> String {
        let end =
            "\(now + Self.lifetime)."
            + String(decoding: Base32.encode(randomness(Self.nonceOctets)), as: UTF8.self)
        return "copies.\(end)." + keys.seal(Self.label(end, address), digits: Self.macDigits)
    }

    /// Whether a login was made with one of our keys, for this client, and has not expired.
    func isOurs(_ login: String, for address: String?, now: Int64) -> Bool {
        let parts = login.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "copies", let end = Int64(parts[1]), end >= now,
            end - now <= Self.lifetime
        else { return false }
        return keys.isSeal(
            parts[3].utf8, of: Self.label("\(parts[1]).\(parts[2])", address),
            digits: Self.macDigits)
    }

    private static func label(_ end: String, _ address: String?) -> String {
        "postern copy login 2\n\(end)\n\(address ?? "")"
    }
}

extension CopyLogin {
    /// For a command that hands over a message while the relay runs.
    /// - Parameter randomness: this many octets that no one can guess.
    package static func make(
        keys: TokenKeys, for address: String?, randomness: (Int) -> [UInt8], now: Int64
    ) -> String {
        CopyLogin(keys: keys).make(for: address, randomness: randomness, now: now)
    }
}

extension RelayEngine {
    /// The login of a session that hands over copies for a client, by the client's address.
    package func copyLogin(for address: String?, now: Int64) -> String {
        CopyLogin(keys: keys).make(for: address, randomness: randomness, now: now)
    }

    /// Whether a session at the smtpd for copies is ours, by its login and the address of its
    /// client.
    package func isCopyLogin(_ login: String, for address: String?, now: Int64) -> Bool {
        CopyLogin(keys: keys).isOurs(login, for: address, now: now)
    }
}
