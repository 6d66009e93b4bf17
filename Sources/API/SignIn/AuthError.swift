// Errors under /auth: RFC 6749 section 5.2.

import HTTP
import HTTPTypes
import Hummingbird
import SignIn

/// An error in the form of OAuth.
struct AuthError: Error, Sendable {
    let status: HTTPResponse.Status
    /// A registered code, such as `invalid_grant`.
    let code: String
    /// For people. Printable ASCII without `"` and `\`; repeats no input.
    let detail: String
    var headers: HTTPFields = [:]

    static func invalidRequest(_ detail: String) -> AuthError {
        AuthError(status: .badRequest, code: "invalid_request", detail: detail)
    }
    static func invalidGrant(_ detail: String) -> AuthError {
        AuthError(status: .badRequest, code: "invalid_grant", detail: detail)
    }
    static func unauthorizedClient(_ detail: String) -> AuthError {
        AuthError(status: .badRequest, code: "unauthorized_client", detail: detail)
    }
    static func invalidScope(_ detail: String) -> AuthError {
        AuthError(status: .badRequest, code: "invalid_scope", detail: detail)
    }
    static func unsupportedGrantType() -> AuthError {
        AuthError(
            status: .badRequest, code: "unsupported_grant_type",
            detail: "grant_type must be authorization_code, refresh_token or client_credentials")
    }
    /// 401 with a challenge if the client sent an Authorization field, as section 5.2
    /// requires; otherwise 400.
    static func invalidClient(_ detail: String, byHeader: Bool) -> AuthError {
        guard byHeader else {
            return AuthError(status: .badRequest, code: "invalid_client", detail: detail)
        }
        return AuthError(
            status: .unauthorized, code: "invalid_client", detail: detail,
            headers: [.wwwAuthenticate: "Basic realm=\"postern\", charset=\"UTF-8\""])
    }
    /// RFC 6750 section 3.1.
    static func invalidToken() -> AuthError {
        AuthError(
            status: .unauthorized, code: "invalid_token",
            detail:
                "the Authorization field must hold an access token of this client with scope user.migration",
            headers: [.wwwAuthenticate: "Bearer realm=\"postern\", error=\"invalid_token\""])
    }
    /// RFC 6750 section 3: without a token, the challenge names no error.
    static func missingToken(isByHeader: Bool) -> AuthError {
        AuthError(
            status: isByHeader ? .badRequest : .unauthorized, code: "invalid_request",
            detail: "send the access token as Authorization: Bearer",
            headers: [
                .wwwAuthenticate: "Bearer realm=\"postern\""
                    + (isByHeader ? ", error=\"invalid_request\"" : "")
            ])
    }
    static func unknownToken() -> AuthError {
        AuthError(
            status: .unauthorized, code: "invalid_token",
            detail: "the access token is unknown, expired or revoked",
            headers: [.wwwAuthenticate: "Bearer realm=\"postern\", error=\"invalid_token\""])
    }
    static func tooMany(retryAfter seconds: Int64) -> AuthError {
        AuthError(
            status: .tooManyRequests, code: "slow_down",
            detail: "this refresh token was used too often today",
            headers: [.retryAfter: "\(max(1, seconds))"])
    }

    /// Converts any error. Reveals nothing internal.
    init(_ error: any Error) {
        switch error {
        case let error as AuthError: self = error
        case let problem as Problem where problem.status.kind == .clientError:
            self = .invalidRequest(problem.detail ?? problem.title)
        case _ where Problem(error).status == .requestTimeout:
            self.init(
                status: .requestTimeout, code: "invalid_request",
                detail: "the request did not arrive in time")
        case _ where Problem(error).status == .serviceUnavailable:
            self.init(
                status: .serviceUnavailable, code: "temporarily_unavailable", detail: "try again",
                headers: [.retryAfter: "5"])
        default:
            self.init(
                status: .internalServerError, code: "server_error",
                detail: "the log has details under the request id")
        }
    }

    private init(
        status: HTTPResponse.Status, code: String, detail: String, headers: HTTPFields = [:]
    ) {
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
    }

    var response: Response {
        let plain = detail.unicodeScalars.map { scalar in
            (0x20...0x7E).contains(scalar.value) && scalar != "\"" && scalar != "\\"
                ? String(scalar) : "'"
        }.joined()
        return .object(
            ["error": .string(code), "error_description": .string(plain)], status: status,
            headers: headers.notStored)
    }
}

/// Converts errors of routes to this form.
struct AuthErrors: RouterMiddleware {
    func handle(
        _ request: Request, context: APIContext,
        next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch {
            let shown = AuthError(error)
            if shown.status.code >= 500 { context.logger.requestFailed(error) }
            return shown.response
        }
    }
}
