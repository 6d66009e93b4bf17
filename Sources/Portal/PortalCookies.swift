// The cookies of the page: the session, the browser, and what was done just now.

import HTTP
import HTTPTypes
import SignIn
import Support

/// The cookies of the page.
struct PortalCookies: Sendable {
    static let session = "postern-session"
    static let browser = "postern-browser"
    static let told = "postern-told"
    /// The request of an app for which a link was mailed.
    static let asked = "postern-request"
    /// Whoever may become a user by the code that was mailed, sealed.
    static let signUp = "postern-sign-up"

    /// A trip to the operator's own OpenID provider, sealed.
    static let upstream = "postern-upstream"
    /// Whose browser it is; opens nothing.
    static let known = "postern-known"
    /// Seconds: as long as browsers keep a cookie at most (RFC 6265bis section 5.5).
    static let knownAge: Int64 = 400 * 86_400

    /// Seconds for which a page may still say what was done: the next one comes at once.
    static let tellingAge: Int64 = 30

    /// Over HTTPS alone. With the prefix a browser takes the cookie from this very host only (RFC 6265bis section 4.1.3.2).
    let isSecure: Bool

    private func fullName(_ name: String) -> String { isSecure ? "__Host-\(name)" : name }

    /// A value as we make them; nil for anything else.
    func value(_ name: String, in headers: HTTPFields) -> String? {
        raw(name, in: headers).flatMap { $0.utf8.count == 32 && Base32.isEncoded($0.utf8) ? $0 : nil }
    }

    /// A word of ours, perhaps with the number of what it is about; nil for anything else.
    func telling(in headers: HTTPFields) -> (word: String, number: Int64?)? {
        guard let text = raw(Self.told, in: headers), text.utf8.count < 48 else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard let word = parts.first, !word.isEmpty, word.utf8.allSatisfy({ (0x61...0x7A).contains($0) }), parts.count <= 2 else {
            return nil
        }
        return (String(word), parts.count == 2 ? Int64(parts[1]) : nil)
    }

    private func raw(_ name: String, in headers: HTTPFields) -> String? { headers.cookie(fullName(name)) }

    /// A Set-Cookie field. Lax: a link in a mail program leads to a page that knows its user; forms carry their own token.
    /// - Parameter age: seconds; 0 removes it.
    func set(_ name: String, _ value: String, age: Int64) -> String {
        "\(fullName(name))=\(value); Path=/; Max-Age=\(age); HttpOnly; SameSite=Lax" + (isSecure ? "; Secure" : "")
    }

    /// Sets a sealed value; nil for none, and for one that is too long for a cookie (RFC 6265 section 6.1).
    func set(_ name: String, _ sealed: String?) -> String? {
        sealed.flatMap { $0.utf8.count <= 3_500 ? set(name, $0, age: PageLifetime.link) : nil }
    }

    /// Base64url; whether it is a sealed value shows when it is opened.
    func sealed(_ name: String, in headers: HTTPFields) -> String? {
        raw(name, in: headers).flatMap { Base64URL.decode($0.utf8) == nil ? nil : $0 }
    }

    func remove(_ name: String) -> String { set(name, "", age: 0) }

    /// What takes away the sealed values that a browser has.
    func removeSealed(in headers: HTTPFields) -> [String] {
        [Self.asked, Self.signUp, Self.upstream].filter { raw($0, in: headers) != nil }.map(remove)
    }
}
