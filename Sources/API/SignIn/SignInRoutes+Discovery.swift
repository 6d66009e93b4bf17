// GET /auth/keys and /.well-known/openid-configuration: the data that a client needs about the
// provider.

import HTTP
import HTTPTypes
import Hummingbird
import SignIn
import Support

/// Public keys, and the discovery document (OpenID Connect Discovery 1.0 section 3).
extension SignInRoutes {
    /// Both may be cached for an hour: keys are published from a day before they
    /// sign until eight days after.
    private static let caching: HTTPFields = [.cacheControl: "public, max-age=3600"]

    func publishedKeys(_ request: Request, _ context: APIContext) async throws -> Response {
        let keys = ByteBuffer(bytes: try await signer.publishedKeys())
        return Response(type: "application/jwk-set+json", headers: Self.caching, body: keys)
    }

    func discovery(_ request: Request, _ context: APIContext) async throws -> Response {
        .object(Self.document(settings), headers: Self.caching)
    }

    private static func document(_ settings: ProviderSettings) -> JSONObject {
        func list(_ items: String...) -> JSONValue { .array(items.map(JSONValue.string)) }
        func endpoint(_ path: String) -> JSONValue { .string(settings.issuer + path) }
        var document: JSONObject = ["issuer": .string(settings.issuer)]
        let isHere = settings.signInPage != nil
        document["authorization_endpoint"] =
            isHere
            ? endpoint("/auth/authorize") : settings.authorizationEndpoint.map(JSONValue.string)
        document["token_endpoint"] = endpoint("/auth/token")
        document["userinfo_endpoint"] = endpoint("/auth/userinfo")
        document["revocation_endpoint"] = endpoint("/auth/revoke")
        document["introspection_endpoint"] = endpoint("/auth/introspect")
        document["jwks_uri"] = endpoint("/auth/keys")
        document["response_types_supported"] = list("code", "code id_token")
        document["response_modes_supported"] =
            isHere
            ? list("query", "fragment", "form_post", "web_message")
            : list("query", "fragment", "form_post")
        if isHere {
            document["end_session_endpoint"] = endpoint("/auth/end-session")
            document["backchannel_logout_supported"] = .bool(true)
            document["backchannel_logout_session_supported"] = .bool(true)
            document["authorization_response_iss_parameter_supported"] = .bool(true)
            document["prompt_values_supported"] = list("none", "login", "consent", "select_account")
        }
        if settings.isPageBuiltIn {
            document["acr_values_supported"] = .array(
                AuthenticationClass.allCases
                    .filter { $0 != .passkey || settings.hasPasskeys }.map { .string($0.rawValue) })
        }
        document["grant_types_supported"] = list(
            "authorization_code", "refresh_token", "client_credentials")
        document["subject_types_supported"] = list("pairwise")
        document["id_token_signing_alg_values_supported"] = list("ES256", "RS256")
        document["scopes_supported"] = .array(UserScope.all.sorted().map(JSONValue.string))
        document["token_endpoint_auth_methods_supported"] = list(
            "client_secret_post", "client_secret_basic", "private_key_jwt", "none")
        document["revocation_endpoint_auth_methods_supported"] = list(
            "client_secret_post", "client_secret_basic", "private_key_jwt", "none")
        document["introspection_endpoint_auth_methods_supported"] = list(
            "client_secret_post", "client_secret_basic", "private_key_jwt")
        for name in ["token_endpoint", "revocation_endpoint", "introspection_endpoint"] {
            document["\(name)_auth_signing_alg_values_supported"] = list("ES256", "RS256")
        }
        document["code_challenge_methods_supported"] = list("S256")
        document["claims_supported"] = list(
            "iss", "aud", "exp", "iat", "sub", "nonce", "nonce_supported", "c_hash", "at_hash",
            "auth_time", "amr", "acr", "name",
            "given_name", "family_name", "email", "email_verified", "is_private_email",
            "real_user_status",
            "transfer_sub", "org_id", "sid")
        document["claims_parameter_supported"] = .bool(false)
        document["request_parameter_supported"] = .bool(false)
        document["request_uri_parameter_supported"] = .bool(false)
        return document
    }
}
