// The cookies of the page: the session, the browser, and the last action.

import HTTP
import HTTPTypes
import SignIn
import Support

/// The cookies of the page.
struct PortalCookies: Sendable {
    static let session = "postern-session"
    static let browser = "postern-browser"
    static let told = "postern-told"
    /// The app's request for which a link was mailed.
    static let asked = "postern-request"
    /// The person who may become a user with the mailed code, sealed.
    static let signUp = "postern-sign-up"

    /// A visit to the operator's own OpenID provider, sealed.
    static let upstream = "postern-upstream"
    /// Identifies the user of the browser; gives no access.
    static let known = "postern-known"
    /// Seconds: the longest that browsers keep a cookie (RFC 6265bis section 5.5).
    static let knownAge: Int64 = 400 * 86_400

    /// Seconds for which a page may still report the action: the next page follows at once.
    static let tellingAge: Int64 = 30

    /// Sent over HTTPS only. With the prefix a browser accepts the cookie only from this host (RFC 6265bis section 4.1.3.2).
    let isSecure: Bool

    private func fullName(_ name: String) -> String { isSecure ? "__Host-\(name)" : name }

    /// A value in the form made here; nil for anything else.
    func value(_ name: String, in headers: HTTPFields) -> String? {
        raw(name, in: headers).flatMap { $0.utf8.count == 32 && Base32.isEncoded($0.utf8) ? $0 : nil }
    }

    /// A word of this page, possibly with the number of the item concerned; nil for anything else.
    func telling(in headers: HTTPFields) -> (word: String, number: Int64?)? {
        guard let text = raw(Self.told, in: headers), text.utf8.count < 48 else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard let word = parts.first, !word.isEmpty, word.utf8.allSatisfy({ (0x61...0x7A).contains($0) }), parts.count <= 2 else {
            return nil
        }
        return (String(word), parts.count == 2 ? Int64(parts[1]) : nil)
    }

    private func raw(_ name: String, in headers: HTTPFields) -> String? { headers.cookie(fullName(name)) }

    /// A Set-Cookie field. Lax: a link in a mail program leads to a page that recognizes its user; forms carry their own token.
    /// - Parameter age: seconds; 0 removes it.
    func set(_ name: String, _ value: String, age: Int64) -> String {
        "\(fullName(name))=\(value); Path=/; Max-Age=\(age); HttpOnly; SameSite=Lax" + (isSecure ? "; Secure" : "")
    }

    /// Sets a sealed value; nil if there is none, or it is too long for a cookie (RFC 6265 section 6.1).
    func set(_ name: String, _ sealed: String?) -> String? {
        sealed.flatMap { $0.utf8.count <= 3_500 ? set(name, $0, age: PageLifetime.link) : nil }
    }

    /// Base64url. The value is verified when it is opened.
    func sealed(_ name: String, in headers: HTTPFields) -> String? {
        raw(name, in: headers).flatMap { Base64URL.decode($0.utf8) == nil ? nil : $0 }
    }

    func remove(_ name: String) -> String { set(name, "", age: 0) }

    /// The fields that remove a browser's sealed values.
    func removeSealed(in headers: HTTPFields) -> [String] {
        [Self.asked, Self.signUp, Self.upstream].filter { raw($0, in: headers) != nil }.map(remove)
    }
}
