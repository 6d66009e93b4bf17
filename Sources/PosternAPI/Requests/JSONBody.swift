// JSON as the API writes it: members in snake_case, in a fixed order, times in ISO 8601.

import Foundation
import HTTPTypes
import Hummingbird
import Support

package enum JSONBody {
    /// Members sorted, camelCase as snake_case, slashes as they are. Nil members are left out.
    package static func encode(_ value: some Encodable) throws -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return ByteBuffer(bytes: try encoder.encode(value))
    }
}

/// A time in a response: `2026-11-21T07:02:28Z`.
package struct Timestamp: Encodable, Sendable, Hashable {
    /// Since 1970.
    package let seconds: Int64
    /// Nil where whole seconds are all that is known.
    private var milliseconds: Int64?

    package init(_ seconds: Int64) { self.seconds = seconds }

    package init(milliseconds: Int64) {
        seconds = milliseconds / 1000
        self.milliseconds = milliseconds % 1000
    }

    package init?(_ seconds: Int64?) {
        guard let seconds else { return nil }
        self.seconds = seconds
    }

    package var text: String {
        let text = UTCTime.text(seconds)
        guard let milliseconds else { return text }
        return text.dropLast() + ".\(String(milliseconds + 1000).dropFirst())Z"
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

extension Response {
    /// A JSON body.
    package static func json(
        _ value: some Encodable, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) throws -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        return Response(status: status, headers: headers, body: .init(byteBuffer: try JSONBody.encode(value)))
    }

    /// 204.
    package static var empty: Response { Response(status: .noContent) }
}
