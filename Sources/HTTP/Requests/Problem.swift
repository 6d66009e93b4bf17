// Errors as sent to clients: problem details (RFC 9457).

import Database
import Foundation
import HTTPTypes
import Hummingbird

/// An error that the caller may see. Throw it from any route outside `/auth`.
package struct Problem: Error, Sendable {
    /// An invalid member.
    package struct Detail: Encodable, Sendable, Hashable {
        /// Its place: a JSON pointer (RFC 6901) into the body, or the name of a query parameter.
        package let pointer: String
        package let detail: String

        package init(pointer: String, detail: String) {
            self.pointer = pointer
            self.detail = detail
        }
    }

    package let status: HTTPResponse.Status
    /// The last part of the type URI, which programs evaluate. Documented in openapi.yaml.
    package let name: String
    package let title: String
    /// For people: the problem and its remedy. Contains no inbox and nothing internal.
    package let detail: String?
    package let errors: [Detail]
    package var headers: HTTPFields

    package init(
        _ status: HTTPResponse.Status, _ name: String, _ title: String, detail: String? = nil,
        errors: [Detail] = [],
        headers: HTTPFields = [:]
    ) {
        self.status = status
        self.name = name
        self.title = title
        self.detail = detail
        self.errors = errors
        self.headers = headers
    }

    /// The type URI of a problem.
    package static func type(_ name: String) -> String { "urn:postern:problem:" + name }

    // MARK: Common problems

    package static func notFound(_ detail: String? = nil) -> Problem {
        Problem(.notFound, "not-found", "Not found", detail: detail)
    }
    /// The body is not JSON, or the request is malformed in another way.
    package static func malformed(_ detail: String) -> Problem {
        Problem(.badRequest, "malformed", "The request is malformed", detail: detail)
    }
    /// The request is well-formed, but something in it is not valid.
    package static func invalid(_ detail: String, at pointer: String? = nil) -> Problem {
        Problem(
            .unprocessableContent, "invalid", "The request is not valid", detail: detail,
            errors: pointer.map { [Detail(pointer: $0, detail: detail)] } ?? [])
    }
    package static func conflict(_ detail: String) -> Problem {
        Problem(
            .conflict, "conflict", "The request conflicts with the current state", detail: detail)
    }
    /// The operator froze the user or the team.
    package static func frozen(_ detail: String) -> Problem {
        Problem(.forbidden, "frozen", "The operator has frozen this", detail: detail)
    }
    package static func unauthorized(_ detail: String) -> Problem {
        Problem(
            .unauthorized, "unauthorized", "A valid API key is required", detail: detail,
            headers: [.wwwAuthenticate: "Bearer realm=\"postern\""])
    }
    package static func forbidden(_ detail: String) -> Problem {
        Problem(.forbidden, "forbidden", "The API key does not allow this", detail: detail)
    }
    package static func tooManyRequests(_ detail: String, retryAfter seconds: Int) -> Problem {
        Problem(
            .tooManyRequests, "too-many-requests", "Too many requests", detail: detail,
            headers: [.retryAfter: "\(max(1, seconds))"])
    }
    package static func tooLarge(_ limit: Int) -> Problem {
        Problem(
            .contentTooLarge, "too-large", "The body is too large",
            detail: "at most \(limit) octets are accepted")
    }
    static let tooSlow = Problem(.requestTimeout, "too-slow", "The request took too long to arrive")
    package static func unavailable() -> Problem {
        Problem(
            .serviceUnavailable, "unavailable", "The service is unavailable", detail: "try again",
            headers: [.retryAfter: "5"])
    }
    /// A message that a user waits for was not sent.
    package static let mailUnavailable = Problem(
        .serviceUnavailable, "mail-unavailable", "The message could not be sent",
        detail: "the mail server did not accept it",
        headers: [.retryAfter: "60"])
    /// An internal error; the log has the details under the request id.
    package static func fault() -> Problem {
        Problem(
            .internalServerError, "fault", "The service failed",
            detail: "the log has details under this request id")
    }

    /// Converts any error to a problem. Reveals nothing internal.
    package init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let failure as StoreFailure: self = Problem(failure)
        case is ConnectionGuard.GivenUp: self = .tooSlow
        case is CancellationError: self = .unavailable()
        case let error as any HTTPResponseError: self = Problem(status: error.status)
        default: self = .fault()
        }
    }

    private init(_ failure: StoreFailure) {
        switch failure.code {
        case .temporary: self = .unavailable()
        case .permanent: self = .fault()
        case .refused(.notFound): self = .notFound(failure.publicMessage)
        case .refused(.exists), .refused(.unmet), .refused(.overtaken), .refused(.limit):
            self = .conflict(failure.publicMessage)
        case .refused(.frozen): self = .frozen(failure.publicMessage)
        case .refused(.invalid): self = .invalid(failure.publicMessage)
        }
    }

    private init(status: HTTPResponse.Status) {
        switch status {
        case .notFound: self = .notFound()
        case .contentTooLarge:
            self = Problem(.contentTooLarge, "too-large", "The body is too large")
        case .internalServerError: self = .fault()
        default:
            self =
                status.kind == .clientError
                ? Problem(
                    status, "malformed",
                    status.reasonPhrase.isEmpty ? "The request is malformed" : status.reasonPhrase)
                : .fault()
        }
    }

    private struct Body: Encodable {
        let type: String
        let title: String
        let status: Int
        let detail: String?
        let errors: [Detail]?
        let requestId: String?
    }

    /// The body as JSON.
    package func body(requestID: String?) -> ByteBuffer {
        let body = Body(
            type: Self.type(name), title: title, status: status.code, detail: detail,
            errors: errors.isEmpty ? nil : errors,
            requestId: requestID)
        return (try? JSONBody.encode(body))
            ?? ByteBuffer(string: "{\"type\":\"about:blank\",\"status\":\(status.code)}")
    }

    package func response(requestID: String?) -> Response {
        Response(
            status: status, type: "application/problem+json", headers: headers,
            body: body(requestID: requestID))
    }
}

extension Problem: HTTPResponseError {
    package func response(from request: Request, context: some RequestContext) throws -> Response {
        response(requestID: (context as? any RouteContext)?.base.requestID)
    }
}

extension StoreFailure {
    /// The message of a refusal without the command at its end, which is for
    /// administrators at the machine.
    package var publicMessage: String {
        message.range(of: ": see postern ").map { String(message[..<$0.lowerBound]) } ?? message
    }
}
