// Bodies and queries of requests, read strictly.

import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Support

extension Request {
    /// The body, up to the route's limit. Throws `Problem`: 413 for a body that is too large, 415
    /// for any type other than `type`.
    package func collect(
        _ context: some RouteContext, type: String? = nil
    ) async throws -> ByteBuffer {
        if let type { try requireType(type) }
        let limit = context.base.maxUploadSize
        if let length = headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw Problem.tooLarge(limit)
        }
        context.base.askForBody(of: self)
        do {
            return try await body.collect(upTo: limit)
        } catch is NIOTooManyBytesError {
            throw Problem.tooLarge(limit)
        }
    }

    /// The decoded body. Members are in snake_case for properties in camelCase; unknown, missing
    /// and repeated members are refused. Throws `Problem`: 400, 413, 415, 422.
    package func decode<T: Decodable>(
        _ type: T.Type, _ context: some RouteContext
    ) async throws -> T {
        let value = try JSONBody.parse(
            Array(try await collect(context, type: "application/json").readableBytesView))
        do {
            return try StrictDecoder.decode(type, from: value)
        } catch let error as JSONShapeError {
            throw Problem.invalid(error.message, at: error.pointer)
        }
    }

    /// The body as a form. Throws `Problem`: 400, 413, 415.
    /// - Parameter maximum: the most parameters that are accepted.
    package func form(_ context: some RouteContext, maximum: Int) async throws -> FormBody {
        try FormBody(
            try await collect(context, type: "application/x-www-form-urlencoded").readableBytesView,
            maximum: maximum)
    }

    /// Throws `Problem` (415) unless the body is of this type, and in UTF-8 if a charset is given.
    package func requireType(_ type: String) throws {
        let given = (headers[.contentType] ?? "").asciiLowercased.utf8
        let parts = given.split(separator: UInt8(ascii: ";")).compactMap {
            WireText(validating: Array($0))
        }.map {
            WireText($0.trimmed)
        }
        let parameters = parts.dropFirst().filter { !$0.isEmpty }
        guard parts.first == WireText(type),
            parameters.allSatisfy({ ["charset=utf-8", "charset=\"utf-8\""].contains($0) })
        else {
            throw Problem(
                .unsupportedMediaType, "unsupported-type", "The body's media type is not supported",
                detail: "send \(type)")
        }
    }

    /// Whether a browser sends the request, to show a page to a person.
    package var wantsPage: Bool { headers[.accept]?.contains("text/html") == true }

    /// The query's parameters. Throws `Problem` (400) for one that is not in `names`,
    /// occurs twice, or is not UTF-8.
    package func query(_ names: Set<WireText>) throws -> [WireText: WireText] {
        var result: [WireText: WireText] = [:]
        guard let query = uri.query else { return result }
        guard let pairs = FormEncoding.pairs(query.utf8, maximum: 100) else {
            throw Problem.malformed(
                "the query is not percent-encoded UTF-8, has too long a name, or has too many parameters"
            )
        }
        for (name, value) in pairs {
            guard names.contains(name) else {
                throw Problem.malformed(
                    "unknown query parameter; known: \(names.isEmpty ? "none" : names.sorted().map(\.text).joined(separator: ", "))"
                )
            }
            guard result.updateValue(value, forKey: name) == nil else {
                throw Problem.malformed("the query parameter \(name.text) is given twice")
            }
        }
        return result
    }
}
