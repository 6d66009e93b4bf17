// One HTTP request over a socket of its own, for tests of the running service.

import Foundation

package enum HTTPClient {
    /// The body of an answer on 127.0.0.1.
    package static func get(port: UInt16, path: String, bearer: String) throws -> String {
        let socket = try Socket.connect(port: port, timeout: 120)
        let head = "GET \(path) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(bearer)\r\nConnection: close\r\n\r\n"
        guard socket.send(Array(head.utf8)) else { throw HarnessError("nobody takes the request for \(path)") }
        var received: [UInt8] = []
        while let octets = socket.receive(), !octets.isEmpty { received += octets }
        let text = String(decoding: received, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { throw HarnessError("no answer to \(path): \(text)") }
        return String(text[end.upperBound...])
    }
}
