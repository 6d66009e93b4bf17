// One-time passwords of an authenticator app (RFC 6238). Pure.

import MailCrypto
import Support

/// Codes of six digits that change every 30 seconds, by HMAC-SHA-1: the only kind that every
/// authenticator app makes.
package enum OneTimePassword {
    /// Seconds for which an app shows one code.
    package static let period: Int64 = 30
    /// Octets of a secret: those of the digest (RFC 4226 section 4).
    package static let secretLength = 20
    /// Steps before and after the current one whose codes are accepted, for a phone whose clock is
    /// wrong (RFC 6238 section 5.2).
    private static let tolerance: Int64 = 1

    /// - Parameter time: seconds since 1970.
    package static func step(at time: Int64) -> Int64 { time / period }

    /// Six digits (RFC 4226 section 5.3).
    package static func code(_ secret: [UInt8], step: Int64) -> String {
        let counter = (0..<8).map { UInt8(truncatingIfNeeded: step >> (56 - 8 * $0)) }
        let mac = HMACSHA1.authenticationCode(for: counter, key: secret)
        let start = Int(mac[mac.count - 1] & 0xF)
        let number = mac[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let digits = Array(String(number % 1_000_000).utf8)
        return String(
            decoding: [UInt8](repeating: 0x30, count: 6 - digits.count) + digits, as: UTF8.self)
    }

    /// The step that a code belongs to; nil if it is not valid now.
    /// - Parameters:
    ///   - digits: six digits in ASCII.
    ///   - time: seconds since 1970.
    package static func step(of digits: String, _ secret: [UInt8], at time: Int64) -> Int64? {
        var found: Int64?
        // All are compared, whatever the result: the time does not show
        // how wrong the phone's clock is.
        for step in step(at: time) - tolerance...step(at: time) + tolerance
        where constantTimeEqual(Array(digits.utf8), Array(code(secret, step: step).utf8)) {
            found = step
        }
        return found
    }

    /// What an app reads to set itself up:
    /// `otpauth://totp/SERVICE:ACCOUNT?secret=…&issuer=SERVICE`.
    /// - Parameter account: what the app shows below the service's name.
    package static func setUpURI(_ secret: [UInt8], service: String, account: String) -> String {
        let (service, account) = (FormEncoding.encode(service), FormEncoding.encode(account))
        return "otpauth://totp/\(service):\(account)?secret=\(text(secret))&issuer=\(service)"
    }

    /// A secret as a person types it: base32 in capital letters.
    package static func text(_ secret: [UInt8]) -> String {
        String(decoding: Base32.encode(secret).map { $0 >= 0x61 ? $0 - 0x20 : $0 }, as: UTF8.self)
    }
}
