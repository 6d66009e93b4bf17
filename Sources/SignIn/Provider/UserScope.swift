// Scopes that a user grants to an app.

/// Words of `scope` (OpenID Connect Core section 5.4). They are stored and returned as the app
/// wrote them.
package enum UserScope {
    package static let openid = "openid"
    package static let email = "email"
    /// Sign in with Apple's word for the name.
    package static let name = "name"
    package static let profile = "profile"

    package static let all: Set<String> = [openid, email, name, profile]

    /// Whether the scopes include the user's name.
    package static func haveName(_ scopes: Set<String>) -> Bool {
        scopes.contains(name) || scopes.contains(profile)
    }
}
