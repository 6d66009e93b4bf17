// Behind Caddy, set up as docs/INTEGRATION.md says: no one can pass for another by what they write into X-Forwarded-For.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct CaddyTests {
    private static let caddy = "/usr/bin/caddy"

    /// Caddy in its own folder, without certificates.
    private final class Proxy {
        let port: UInt16
        private let process: ManagedProcess
        private let folder: URL

        init(to service: UInt16) throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent("postern-caddy-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
                "../../../docs/INTEGRATION.md")
            let documented = try #require(
                try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```caddy\n").dropFirst().first?
                    .components(separatedBy: "```").first)
            try #require(documented.contains("127.0.0.1:8890") && documented.contains("relay.example {"))
            port = try FreePort.next()
            let site = documented.replacing("127.0.0.1:8890", with: "127.0.0.1:\(service)")
                .replacing("relay.example {", with: "http://:\(port) {\n    bind 127.0.0.1")
            let file = folder.appendingPathComponent("Caddyfile")
            try Data("{\n    admin off\n    auto_https off\n}\n\(site)".utf8).write(to: file)
            process = try ManagedProcess(
                CaddyTests.caddy, ["run", "--adapter", "caddyfile", "--config", file.path],
                environment: ["HOME": folder.path, "XDG_DATA_HOME": folder.path, "XDG_CONFIG_HOME": folder.path])
            try process.waitForLine(containing: "serving initial configuration")
        }

        deinit {
            process.end()
            try? FileManager.default.removeItem(at: folder)
        }

        func ask(_ request: String) throws -> String {
            let wire = try Wire(port)
            wire.send(request)
            return wire.rest()
        }
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: caddy), "skipped: caddy is not installed (make test-tools)"))
    func nobodyBehindCaddyPassesForAnother() throws {
        let service = try LiveService(["http.public_url": "https://id.example"])
        let proxy = try Proxy(to: service.port)
        let page = try proxy.ask("GET /me/sign-in HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\n\r\n")
        let cookie = try #require(page.firstMatch(of: /[Ss]et-[Cc]ookie: ([^;]+);/)?.1)
        let token = try #require(page.firstMatch(of: /name="csrf" value="([a-z2-7]+)"/)?.1)
        let body = "email=nobody%40home.example&csrf=\(token)"
        let statuses = try (0..<12).map { number in
            try proxy.ask(
                "POST /me/sign-in HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\nCookie: \(cookie)\r\n"
                    + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.utf8.count)\r\n"
                    + "X-Forwarded-For: 203.0.113.\(number)\r\n\r\n" + body
            ).split(separator: " ").dropFirst().first.flatMap { Int($0) }
        }
        #expect(statuses.first == 303 && statuses.last == 429, "\(statuses)")
    }
}
