// Behind nginx, set up as docs/OPERATING.md says: users count one by one, and none can count as another.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct ReverseProxyTests {
    private static let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].first { FileManager.default.isExecutableFile(atPath: $0) }

    /// nginx in its own folder. The PROXY protocol in front stands for users that come from elsewhere than this machine.
    private final class Proxy {
        let port: UInt16
        private let process: ManagedProcess
        private let folder: URL

        init(_ program: String, to service: UInt16) throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent("postern-nginx-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
                "../../../docs/OPERATING.md")
            let documented = try #require(
                try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```nginx\n").dropFirst().first?
                    .components(separatedBy: "```").first)
            try #require(documented.contains("127.0.0.1:8890"))
            port = try FreePort.next()
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \($0);" }.joined(
                separator: " ")
            let configuration = """
                daemon off; master_process off; pid nginx.pid; error_log stderr notice;
                events {}
                http {
                    access_log off; \(temporary)
                    server {
                        listen 127.0.0.1:\(port) proxy_protocol;
                        set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;
                        \(documented.replacing("127.0.0.1:8890", with: "127.0.0.1:\(service)"))
                    }
                }
                """
            try Data(configuration.utf8).write(to: folder.appendingPathComponent("nginx.conf"))
            process = try ManagedProcess(program, ["-p", folder.path, "-c", "nginx.conf"])
            // Said once the sockets are open.
            try process.waitForLine(containing: "event method")
        }

        deinit {
            process.end()
            try? FileManager.default.removeItem(at: folder)
        }

        private func ask(from client: String, _ request: String) throws -> String {
            let wire = try Wire(port)
            let family = client.contains(":") ? "TCP6 \(client) ::1" : "TCP4 \(client) 127.0.0.1"
            wire.send("PROXY \(family) 40000 \(port)\r\n" + request)
            return wire.rest()
        }

        /// A sign-in form as a browser fetches it: its cookie and its token.
        func form() throws -> (cookie: String, token: String) {
            let page = try ask(from: "192.0.2.1", "GET /me/sign-in HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\n\r\n")
            let cookie = try #require(page.firstMatch(of: /[Ss]et-[Cc]ookie: ([^;]+);/)?.1)
            let token = try #require(page.firstMatch(of: /name="csrf" value="([a-z2-7]+)"/)?.1)
            return (String(cookie), String(token))
        }

        /// The status of a form that `client` sends, who says in X-Forwarded-For what they like.
        func signIn(_ form: (cookie: String, token: String), from client: String, saying forwarded: String? = nil) throws -> Int?
        {
            let body = "email=nobody%40home.example&csrf=\(form.token)"
            let answer = try ask(
                from: client,
                "POST /me/sign-in HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\nCookie: \(form.cookie)\r\n"
                    + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.utf8.count)\r\n"
                    + (forwarded.map { "X-Forwarded-For: \($0)\r\n" } ?? "") + "\r\n" + body)
            return answer.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        }
    }

    @Test(.enabled(if: nginx != nil, "skipped: nginx is not installed (make test-tools)"))
    func usersBehindNginxDoNotShareOneBucketAndNoneTakesAnothers() throws {
        let nginx = try #require(Self.nginx)
        let service = try LiveService(["http.public_url": "https://id.example"])
        let proxy = try Proxy(nginx, to: service.port)
        let form = try proxy.form()
        // One user asks until it is too much, whoever they say that they are.
        var statuses: [Int?] = []
        for number in 0..<12 { statuses.append(try proxy.signIn(form, from: "198.51.100.7", saying: "203.0.113.\(number)")) }
        #expect(statuses.first == 303 && statuses.last == 429, "\(statuses)")
        // Everyone else goes on, the one they pretended to be too; over IPv6 a /64 is one user.
        for client in ["198.51.100.8", "203.0.113.11", "2001:db8:1::1"] {
            #expect(try proxy.signIn(form, from: client) == 303, "\(client)")
        }
        #expect(try proxy.signIn(form, from: "198.51.100.7") == 429)
    }
}
