// The cookies of the page: the session, the browser, and the last action.

import HTTP
import HTTPTypes
import Languages
import SignIn
import Support

/// The cookies of the page.
struct PortalCookies: Sendable {
    static let session = "postern-session"
    static let browser = "postern-browser"
    static let told = "postern-told"
    /// The sealed address of a person who may become a user with the mailed code. One for each
    /// request of an app.
    static let signUp = "postern-sign-up"
    /// A visit to the operator's own OpenID provider, sealed. One for each visit.
    static let upstream = "postern-upstream"
    /// Identifies the user of the browser; gives no access.
    static let known = "postern-known"
    /// Seconds: the longest that browsers keep a cookie (RFC 6265bis section 5.5).
    static let knownAge: Int64 = 400 * 86_400

    /// The user who was last offered a passkey in this browser, after a code. Another user gets an
    /// offer too.
    static let offered = "postern-offered"
    /// The language that the user chose.
    static let language = Languages.cookie
    /// Seconds.
    static let languageAge: Int64 = 365 * 86_400

    /// Seconds for which a page may still report the action: the next page follows at once.
    static let tellingAge: Int64 = 30

    /// Sent over HTTPS only.
    let isSecure: Bool

    private func fullName(_ name: String) -> String { HostCookie.name(name, isSecure: isSecure) }

    /// A value in the form made here; nil for anything else.
    func value(_ name: String, in headers: HTTPFields) -> String? {
        raw(name, in: headers).flatMap {
            $0.utf8.count == 32 && Base32.isEncoded($0.utf8) ? $0 : nil
        }
    }

    /// A word of this page, possibly with the number of the item concerned; nil for anything else.
    func telling(in headers: HTTPFields) -> (word: String, number: Int64?)? {
        guard let text = raw(Self.told, in: headers), text.utf8.count < 48 else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard let word = parts.first, !word.isEmpty,
            word.utf8.allSatisfy({ (0x61...0x7A).contains($0) }), parts.count <= 2
        else {
            return nil
        }
        return (String(word), parts.count == 2 ? Int64(parts[1]) : nil)
    }

    /// A tag as RFC 5646 has it; nil for anything else.
    func language(in headers: HTTPFields) -> String? {
        guard let text = raw(Self.language, in: headers), (2...35).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") })
        else { return nil }
        return text
    }

    /// The value of the telling cookie that a response sets; nil if it sets none.
    func telling(set headers: HTTPFields) -> String? {
        let start = "\(fullName(Self.told))="
        for field in headers[values: .setCookie] where field.utf8.starts(with: start.utf8) {
            let value = field.utf8.dropFirst(start.utf8.count).prefix { $0 != UInt8(ascii: ";") }
            return value.isEmpty ? nil : String(decoding: value, as: UTF8.self)
        }
        return nil
    }

    private func raw(_ name: String, in headers: HTTPFields) -> String? {
        headers.cookie(fullName(name))
    }

    /// A Set-Cookie field. Lax: a link in a mail program leads to a page that recognizes its user;
    /// forms carry their own token.
    /// - Parameter age: seconds; 0 removes it.
    func set(_ name: String, _ value: String, age: Int64) -> String {
        "\(fullName(name))=\(value); Path=/; Max-Age=\(age); HttpOnly; SameSite=Lax"
            + (isSecure ? "; Secure" : "")
    }

    /// The most sealed values of one kind: some 3 kB in all, which every proxy accepts.
    private static let mostSealed = 3
    /// Octets of the mark that distinguishes the values of tabs.
    private static let markLength = 8

    /// The name of a value that each tab has for itself.
    /// - Parameter mark: base64url that the tab knows; nil for none.
    private func name(_ name: String, of mark: String?) -> String? {
        guard let mark else { return name }
        guard Base64URL.decode(mark.utf8) != nil, mark.utf8.count >= Self.markLength else {
            return nil
        }
        return "\(name)-\(String(decoding: Array(mark.utf8)[..<Self.markLength], as: UTF8.self))"
    }

    /// Sets a sealed value of a tab. If there are too many, it replaces the oldest ones.
    func set(
        _ kind: String, of mark: String?, _ sealed: String?, in headers: HTTPFields
    ) -> [String] {
        guard let sealed, sealed.utf8.count <= 3_500, let name = name(kind, of: mark) else {
            return []
        }
        let others = names(kind, in: headers).filter { !$0.hasSameOctets(as: name) }
        // Browsers send the oldest first (RFC 6265 section 5.4).
        let surplus = others[..<max(0, others.count + 1 - Self.mostSealed)]
        return surplus.map(remove) + [set(name, sealed, age: PageLifetime.link)]
    }

    /// A sealed value of a tab: base64url. It is verified when it is opened.
    func sealed(_ kind: String, of mark: String?, in headers: HTTPFields) -> String? {
        name(kind, of: mark).flatMap { raw($0, in: headers) }.flatMap {
            Base64URL.decode($0.utf8) == nil ? nil : $0
        }
    }

    func remove(_ name: String) -> String { set(name, "", age: 0) }

    /// The fields that remove a browser's sealed values.
    func removeSealed(in headers: HTTPFields) -> [String] {
        [Self.signUp, Self.upstream].flatMap { names($0, in: headers) }.map(remove)
    }

    /// The names of the sealed values of a kind, in the form made here.
    private func names(_ kind: String, in headers: HTTPFields) -> [String] {
        let start = fullName(kind).utf8
        return headers.cookieNames.compactMap { name in
            guard name.utf8.starts(with: start) else { return nil }
            let mark = name.utf8.dropFirst(start.count)
            guard
                mark.isEmpty
                    || mark.count == Self.markLength + 1 && mark.first == UInt8(ascii: "-"),
                mark.allSatisfy({
                    $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-")
                        || $0 == UInt8(ascii: "_")
                })
            else { return nil }
            return kind + String(decoding: mark, as: UTF8.self)
        }
    }
}
