// One HTTP request over its own socket, for tests of the running service.

import Foundation

package enum HTTPClient {
    /// The body of an answer on 127.0.0.1.
    package static func get(port: UInt16, path: String, bearer: String) throws -> String {
        try ask("GET", port: port, path: path, bearer: bearer, body: nil, timeout: 120).body
    }

    /// Status and body of an answer to a request without a key.
    package static func get(
        port: UInt16, path: String, timeout: Int
    ) throws -> (status: Int, body: String) {
        try ask("GET", port: port, path: path, bearer: "", body: nil, timeout: timeout)
    }

    /// Posts JSON to 127.0.0.1; status and body of the answer.
    /// - Parameter timeout: seconds to wait for each part of it.
    package static func post(
        port: UInt16, path: String, bearer: String, body: String, timeout: Int
    ) throws -> (status: Int, body: String) {
        try ask("POST", port: port, path: path, bearer: bearer, body: body, timeout: timeout)
    }

    private static func ask(
        _ method: String, port: UInt16, path: String, bearer: String, body: String?, timeout: Int
    ) throws -> (status: Int, body: String) {
        let socket = try Socket.connect(port: port, timeout: timeout)
        let bearer = bearer.isEmpty ? "" : "Authorization: Bearer \(bearer)\r\n"
        let content =
            body.map { "Content-Type: application/json\r\nContent-Length: \($0.utf8.count)\r\n" }
            ?? ""
        let head =
            "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(bearer)\(content)Connection: close\r\n\r\n"
        guard socket.send(Array((head + (body ?? "")).utf8)) else {
            throw HarnessError("cannot send the request for \(path)")
        }
        var received: [UInt8] = []
        while let octets = socket.receive(), !octets.isEmpty { received += octets }
        let text = String(decoding: received, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else {
            throw HarnessError("no answer to \(path): \(text)")
        }
        return (
            text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0,
            String(text[end.upperBound...])
        )
    }
}
