// Sign-in for clients: its endpoints and their dependencies.

import Accounts
import HTTP
import HTTPTypes
import Hummingbird
import InternetMessage
import Languages
import SignIn
import Support

/// The provider as configured.
package struct ProviderSettings: Sendable {
    /// `iss`: the base address of the endpoints, without a final slash.
    package let issuer: String
    /// The operator's own page that receives authorization requests directly; nil if the
    /// discovery document names none.
    package let authorizationEndpoint: String?
    /// The page to which `/auth/authorize` passes checked requests; nil if that endpoint is off.
    package let signInPage: String?
    /// Whether that page is the built-in one, which also tells the user why an app gets no
    /// response.
    package let isPageBuiltIn: Bool
    /// The most refreshes with one token on one day (UTC).
    package let refreshesPerDay: Int
    /// How surely every user must have signed in.
    package let level: SignInLevel
    /// Whether the built-in page takes passkeys.
    package let hasPasskeys: Bool
    /// The operator's name for the service, for buttons.
    package let service: String
    /// The languages of the buttons.
    package let languages: Languages

    package init(
        issuer: String, authorizationEndpoint: String?, signInPage: String? = nil,
        isPageBuiltIn: Bool = false,
        refreshesPerDay: Int, level: SignInLevel = .any, hasPasskeys: Bool = true,
        service: String = "Postern",
        languages: Languages = .english
    ) {
        self.issuer = issuer
        self.level = level
        self.hasPasskeys = hasPasskeys
        self.service = service
        self.languages = languages
        self.signInPage = signInPage
        self.isPageBuiltIn = isPageBuiltIn
        self.authorizationEndpoint = authorizationEndpoint
        self.refreshesPerDay = refreshesPerDay
    }
}

/// The routes of sign-in. Errors under `/auth` are those of RFC 6749 section 5.2.
package struct SignInRoutes: RouteModule {
    let settings: ProviderSettings
    let parts: RouteParts
    let signer: IdentitySigner
    /// Rates how likely users are to be real if the page does not; if nil, 0 is given.
    let statuses: (any StatusSource)?

    package init(
        _ settings: ProviderSettings, _ parts: RouteParts, signer: IdentitySigner,
        statuses: (any StatusSource)? = nil
    ) {
        self.statuses = statuses
        self.settings = settings
        self.parts = parts
        self.signer = signer
    }

    package func addRoutes(to routes: Routes) {
        routes.operator(.authorizationsWrite).post("/v1/authorizations", use: authorize)
        openToApps(routes).add(middleware: routes.failureLimit).add(middleware: AuthErrors()).post(
            "/auth/token", use: token
        )
        .post("/auth/revoke", use: revoke)
        .get("/auth/userinfo", use: userInfo).post("/auth/userinfo", use: userInfo)
        .preflight("/auth/token", "/auth/revoke", "/auth/userinfo", use: CrossOrigin.preflight)
        routes.open.add(middleware: routes.failureLimit).add(middleware: AuthErrors())
            .post("/auth/usermigrationinfo", use: migrationInfo).post(
                "/auth/introspect", use: introspect)
        addAuthorizationRoutes(to: routes)
        addEndSessionRoutes(to: routes)
        addButtonRoutes(to: routes)
        routes.open.add(middleware: CrossOrigin(origins: .all)).get(
            "/auth/keys", use: publishedKeys
        )
        .get("/.well-known/openid-configuration", use: discovery)
        .get("/.well-known/oauth-authorization-server", use: discovery)
        .preflight(
            "/auth/keys", "/.well-known/openid-configuration",
            "/.well-known/oauth-authorization-server",
            use: CrossOrigin.preflight)
    }

    /// The body as a form.
    func form(_ request: Request, _ context: APIContext) async throws -> FormBody {
        // Requests have under ten parameters; more than a hundred are refused.
        try await request.form(context, maximum: 100)
    }
}

/// Scopes that a client may request.
enum ProviderScope {
    /// For the client itself: for `/auth/usermigrationinfo`.
    static let migration = "user.migration"
    /// For the client itself.
    static let client: Set<String> = [
        migration, Scope.streamsRead.rawValue, Scope.streamsManage.rawValue,
    ]
}
