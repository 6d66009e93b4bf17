// JSON as the API writes it: members in snake_case, in a fixed order.

import Foundation
import HTTPTypes
import Hummingbird
import Support

package enum JSONBody {
    /// The value of a body. Throws `Problem` (400) if it is not JSON.
    package static func parse(_ octets: [UInt8]) throws -> JSONValue {
        guard !octets.isEmpty else { throw Problem.malformed("a JSON body is required") }
        do {
            return try StrictJSON.parse(octets, limit: octets.count)
        } catch {
            throw Problem.malformed("the body is not valid JSON: \(error)")
        }
    }

    /// Members sorted, camelCase as snake_case, slashes not escaped. Nil members are left out.
    package static func encode(_ value: some Encodable) throws -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return ByteBuffer(bytes: try encoder.encode(value))
    }
}

extension Response {
    /// A JSON body.
    package static func json(
        _ value: some Encodable, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) throws -> Response {
        Response(
            status: status, type: "application/json", headers: headers,
            body: try JSONBody.encode(value))
    }

    /// A body of a media type.
    package init(
        status: HTTPResponse.Status = .ok, type: String, headers: HTTPFields = [:], body: ByteBuffer
    ) {
        var headers = headers
        headers[.contentType] = type
        self.init(status: status, headers: headers, body: .init(byteBuffer: body))
    }

    /// 204.
    package static var empty: Response { Response(status: .noContent) }
}
