// Responses with tokens, or with a JSON object whose members stay unchanged.

import HTTP
import HTTPTypes
import Hummingbird
import Support

extension HTTPFields {
    /// The fields, with those that a response with a token requires (RFC 6749 section 5.1).
    var notStored: HTTPFields {
        var fields = self
        fields[.cacheControl] = "no-store"
        if let name = HTTPField.Name("Pragma") { fields[name] = "no-cache" }
        return fields
    }
}

extension Response {
    /// A JSON object as `Identity` writes it: members unchanged.
    static func object(
        _ object: JSONObject, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) -> Response {
        Response(
            status: status, type: "application/json", headers: headers,
            body: ByteBuffer(bytes: JSONValue.object(object).octets))
    }

    /// A JSON object that no cache may keep.
    static func unstored(_ object: JSONObject) -> Response {
        .object(object, headers: HTTPFields().notStored)
    }
}
