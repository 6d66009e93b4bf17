// The cookie that binds an app's request to its browser.

import HTTPTypes
import Support

/// The cookie of the browser that made the request. No other browser gets the response.
package struct AuthorizationCookie: Sendable {
    private let name: String
    private let isSecure: Bool

    package init(issuer: String) {
        isSecure = issuer.hasPrefix("https://")
        name = HostCookie.name("postern-authorization", isSecure: isSecure)
    }

    /// A value in the form made here; nil for anything else.
    package func value(in headers: HTTPFields) -> String? {
        headers.cookie(name).flatMap { $0.utf8.count == 32 && Base32.isEncoded($0.utf8) ? $0 : nil }
    }

    /// Lax: the page may be on another site that leads back here.
    /// - Parameter age: seconds.
    package func set(_ value: String, age: Int64) -> String {
        "\(name)=\(value); Path=/; Max-Age=\(age); HttpOnly; SameSite=Lax"
            + (isSecure ? "; Secure" : "")
    }
}
