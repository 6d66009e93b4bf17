// Behind nginx, Caddy and Apache, set up as the documents say: users count one by one, no user can
// count as another, and the longest request passes.

import Foundation
import InternetMessage
import PasskeyTesting
import PostfixHarness
import Support
import TestSupport
import Testing
import WebAuthn

/// A reverse proxy of the documents.
enum ReverseProxy: String, CaseIterable, CustomTestStringConvertible {
    case nginx, caddy, apache

    var testDescription: String { rawValue }

    var program: String {
        switch self {
        case .nginx: "/usr/sbin/nginx"
        case .caddy: "/usr/bin/caddy"
        case .apache: "/usr/sbin/apache2"
        }
    }

    static let installed = allCases.filter {
        FileManager.default.isExecutableFile(atPath: $0.program)
    }

    /// The page that has its lines.
    private var page: String { self == .nginx ? "OPERATING-HTTP" : "INTEGRATION" }

    /// Its lines in the documents, with the port of this service.
    func documented(service: UInt16) throws -> String {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent(
                "../../../docs/\(page).md")
        let lines = try #require(
            try String(contentsOf: page, encoding: .utf8).components(
                separatedBy: "```\(rawValue)\n"
            ).dropFirst().first?
            .components(separatedBy: "```").first)
        try #require(lines.contains("127.0.0.1:8890"))
        return lines.replacing("127.0.0.1:8890", with: "127.0.0.1:\(service)")
    }
}

/// A proxy in its own folder. The PROXY protocol in front of nginx and Apache simulates users from
/// other machines.
private final class RunningProxy {
    let kind: ReverseProxy
    let port: UInt16
    private let process: ManagedProcess
    private let folder: URL

    init(_ kind: ReverseProxy, to service: UInt16) throws {
        self.kind = kind
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-\(kind)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        port = try FreePort.next()
        let documented = try kind.documented(service: service)
        let file = folder.appendingPathComponent("proxy.conf")
        switch kind {
        case .nginx:
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
                "\($0)_temp_path \($0);"
            }.joined(
                separator: " ")
            try Data(
                """
                daemon off; master_process off; pid nginx.pid; error_log stderr notice;
                events {}
                http {
                    access_log off; \(temporary)
                    server {
                        listen 127.0.0.1:\(port) proxy_protocol;
                        set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;
                        \(documented)
                    }
                }
                """.utf8
            ).write(to: file)
            process = try ManagedProcess(kind.program, ["-p", folder.path, "-c", "proxy.conf"])
            // Logged when the sockets are open.
            try process.waitForLine(containing: "event method")
        case .caddy:
            try #require(documented.contains("relay.example {"))
            let site = documented.replacing(
                "relay.example {", with: "http://:\(port) {\n    bind 127.0.0.1")
            try Data("{\n    admin off\n    auto_https off\n}\n\(site)".utf8).write(to: file)
            process = try ManagedProcess(
                kind.program, ["run", "--adapter", "caddyfile", "--config", file.path],
                environment: [
                    "HOME": folder.path, "XDG_DATA_HOME": folder.path,
                    "XDG_CONFIG_HOME": folder.path,
                ])
            try process.waitForLine(containing: "serving initial configuration")
        case .apache:
            let modules = ["mpm_event", "authz_core", "proxy", "proxy_http", "remoteip"].map {
                "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so"
            }
            let user = geteuid() == 0 ? "User www-data\nGroup www-data" : ""
            try Data(
                """
                ServerRoot "\(folder.path)"
                DefaultRuntimeDir "\(folder.path)"
                PidFile "\(folder.path)/apache.pid"
                Mutex file:\(folder.path) default
                ErrorLog /dev/stderr
                ServerName 127.0.0.1
                \(user)
                \(modules.joined(separator: "\n"))
                Listen 127.0.0.1:\(port)
                <VirtualHost 127.0.0.1:\(port)>
                RemoteIPProxyProtocol On
                \(documented)
                </VirtualHost>

                """.utf8
            ).write(to: file)
            process = try ManagedProcess(
                kind.program, ["-d", folder.path, "-f", file.path, "-DFOREGROUND"])
            try process.waitForLine(containing: "resuming normal operations")
        }
    }

    deinit {
        process.end()
        try? FileManager.default.removeItem(at: folder)
    }

    /// - Parameter client: the user's address, if the proxy is not Caddy.
    func ask(from client: String = "192.0.2.1", _ request: String) throws -> String {
        let wire = try Wire(port)
        let family = client.contains(":") ? "TCP6 \(client) ::1" : "TCP4 \(client) 127.0.0.1"
        wire.send((kind != .caddy ? "PROXY \(family) 40000 \(port)\r\n" : "") + request)
        return wire.rest()
    }

    func get(_ path: String, cookie: String = "") throws -> String {
        try ask(
            "GET \(path) HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\nCookie: \(cookie)\r\n\r\n"
        )
    }

    func post(
        _ path: String, _ body: String, from client: String = "192.0.2.1", cookie: String = "",
        saying forwarded: String? = nil
    ) throws -> String {
        try ask(
            from: client,
            "POST \(path) HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\nCookie: \(cookie)\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.utf8.count)\r\n"
                + (forwarded.map { "X-Forwarded-For: \($0)\r\n" } ?? "") + "\r\n" + body)
    }

    /// A sign-in form as a browser fetches it: its cookie and its token.
    func form() throws -> (cookie: String, token: String) {
        let page = try get("/me/sign-in")
        return (try #require(RunningProxy.cookies(page).first), try RunningProxy.token(page))
    }

    static func cookies(_ answer: String) -> [String] {
        answer.matches(of: /[Ss]et-[Cc]ookie: ([^;]+);/).map { String($0.1) }
    }
    static func token(_ page: String) throws -> String {
        String(try #require(page.firstMatch(of: /name="csrf" value="([a-z2-7]+)"/)?.1, "\(page)"))
    }
    static func status(_ answer: String) -> Int? {
        answer.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }
    static func location(_ answer: String) -> String? {
        answer.firstMatch(of: /\r\n[Ll]ocation: ([^\r]+)\r\n/).map { String($0.1) }
    }
}

/// A person's browser behind a proxy: keeps cookies, and follows the service's redirects to a page
/// or another site.
private final class ProxyBrowser {
    private static let site = "https://id.example"
    private let proxy: RunningProxy
    private var cookies: [String: String] = [:]
    /// The last answer, with its head.
    private(set) var answer = ""

    init(_ proxy: RunningProxy) { self.proxy = proxy }

    private var cookie: String { cookies.map { "\($0)=\($1)" }.joined(separator: "; ") }

    func get(_ path: String) throws { try follow(proxy.get(path, cookie: cookie)) }

    /// Sends a form with the token, and the app's request, of the page that is open.
    func post(_ path: String, _ fields: [String: String], asIs: Bool = false) throws {
        var fields = fields
        if !asIs {
            fields["csrf"] = try RunningProxy.token(answer)
            fields["request"] = answer.firstMatch(of: /name="request" value="([A-Za-z0-9_-]+)"/).map
            { String($0.1) }
        }
        try follow(
            proxy.post(path, FormEncoding.encode(fields.map { ($0.key, $0.value) }), cookie: cookie)
        )
    }

    private func follow(_ answer: String) throws {
        self.answer = answer
        for given in RunningProxy.cookies(answer) {
            let parts = given.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map(String.init)
            cookies[parts[0]] = parts[1].isEmpty ? nil : parts[1]
        }
        let refresh = answer.firstMatch(of: /\r\n[Rr]efresh: 0; url=([^\r]+)\r\n/).map {
            String($0.1)
        }
        guard let next = (RunningProxy.location(answer) ?? refresh)?.replacing(Self.site, with: ""),
            next.hasPrefix("/")
        else {
            return
        }
        try get(next)
    }

    /// The challenge of the page that is open.
    func challenge() throws -> [UInt8] {
        let text = try #require(
            answer.firstMatch(of: /data-challenge="([A-Za-z0-9_-]+)"/)?.1, "\(answer)")
        return try #require(Base64URL.decode(text.utf8))
    }
}

@Suite(.blocking) struct ReverseProxyTests {
    private static let installed = ReverseProxy.installed

    /// The status of a form of `client`, with any X-Forwarded-For.
    private func signIn(
        _ proxy: RunningProxy, _ form: (cookie: String, token: String), from client: String,
        saying forwarded: String? = nil
    ) throws -> Int? {
        RunningProxy.status(
            try proxy.post(
                "/me/sign-in", "email=nobody%40home.example&csrf=\(form.token)", from: client,
                cookie: form.cookie,
                saying: forwarded))
    }

    @Test(
        .enabled(
            if: !installed.isEmpty,
            "skipped: no nginx, caddy or apache2 is installed (make test-tools)"),
        arguments: installed)
    func signInLimit_behindAProxy_countsEachUserAlone(_ kind: ReverseProxy) throws {
        let service = try LiveService([
            "http.public_url": "https://id.example", "sign_in.messages_per_network": "10",
        ])
        let proxy = try RunningProxy(kind, to: service.port)
        let form = try proxy.form()
        // One user sends requests up to the limit, under several false addresses.
        var statuses: [Int?] = []
        for number in 0..<12 {
            statuses.append(
                try signIn(proxy, form, from: "198.51.100.7", saying: "203.0.113.\(number)"))
        }
        #expect(statuses.first == 303 && statuses.last == 429, "\(statuses)")
        guard kind != .caddy else { return }
        // All other users continue, also the one whose address was used; over IPv6 a /64 is one
        // user.
        for client in ["198.51.100.8", "203.0.113.11", "2001:db8:1::1"] {
            #expect(try signIn(proxy, form, from: client) == 303, "\(client)")
        }
        #expect(try signIn(proxy, form, from: "198.51.100.7") == 429)
    }

    /// The state must fit into addresses and cookies for which proxies have room.
    @Test(
        .enabled(
            if: !installed.isEmpty,
            "skipped: no nginx, caddy or apache2 is installed (make test-tools)"),
        arguments: installed)
    func longestRequest_behindAProxy_isAnswered(_ kind: ReverseProxy) throws {
        let service = try LiveService([
            "http.public_url": "https://id.example", "sign_in.page": "built-in",
        ])
        try service.run("team", "add", "juice", "--name", "Juice")
        try service.run("app", "add", "juice", "com.juice")
        try service.run("app", "redirect", "add", "juice", "com.juice", "https://juice.example/in")
        let proxy = try RunningProxy(kind, to: service.port)
        let state = String(repeating: "%C3%A9", count: 2_048)
        var answer = try proxy.post(
            "/auth/authorize",
            "client_id=com.juice&redirect_uri=https%3A%2F%2Fjuice.example%2Fin&response_type=code&scope=openid&state=\(state)"
        )
        var cookies: [String] = []
        while let location = RunningProxy.location(answer),
            location.hasPrefix("https://id.example") || location.hasPrefix("/")
        {
            cookies += RunningProxy.cookies(answer)
            answer = try proxy.get(
                location.replacing("https://id.example", with: ""),
                cookie: cookies.joined(separator: "; "))
        }
        cookies += RunningProxy.cookies(answer)
        #expect(RunningProxy.status(answer) == 200)
        let request = try #require(
            answer.firstMatch(of: /name="request" value="([A-Za-z0-9_-]+)"/)?.1)
        answer = try proxy.post(
            "/sign-in", "decision=cancel&request=\(request)&csrf=\(try RunningProxy.token(answer))",
            cookie: cookies.joined(separator: "; "))
        #expect(RunningProxy.status(answer) == 200)
        #expect(answer.contains("state=\(state)") && answer.contains("error=access_denied"))
    }

    enum Way: String, CaseIterable, CustomTestStringConvertible {
        case code, link, passkey

        var testDescription: String { rawValue }
    }

    /// Jane, who reads her mail.
    private struct Jane {
        static let inbox = "jane.private@home.example"
        let sink: SMTPSink
        private var letters = 0

        init(_ sink: SMTPSink) { self.sink = sink }

        /// The code and the path of the link from the open sign-in page.
        mutating func ask(_ browser: ProxyBrowser) throws -> (code: String, link: String) {
            try browser.post("/me/sign-in", ["email": Self.inbox])
            letters += 1
            let message = try sink.wait(for: letters) { $0.recipients == ["<\(Self.inbox)>"] }[
                letters - 1]
            let part = message.text.components(separatedBy: "Content-Type: text/html")[0]
            let text = String(
                decoding: QuotedPrintable.decode(Array(part.utf8)[...]).bytes, as: UTF8.self)
            return (
                String(try #require(text.firstMatch(of: /[0-9]{3} [0-9]{3}/)).output),
                String(
                    try #require(
                        text.firstMatch(of: /https:\/\/id\.example(\/me\/sign-in\/[a-z2-7]{32})/)
                    ).output.1)
            )
        }

        /// Adds a passkey, in a separate browser.
        mutating func passkey(_ browser: ProxyBrowser) throws -> TestAuthenticator {
            try browser.get("/me/sign-in")
            try browser.post("/me/sent", ["code": try ask(browser).code])
            try browser.get("/me/security")
            var authenticator = try TestAuthenticator(.create)
            let challenge = try browser.challenge()
            authenticator.clientData = TestAuthenticator.clientData(.create, challenge: challenge)
            try browser.post(
                "/me/passkeys",
                [
                    "challenge": Base64URL.encode(challenge), "name": "Phone",
                    "client_data": Base64URL.encode(Array(authenticator.clientData.utf8)),
                    "attestation": Base64URL.encode(try authenticator.attestationObject()),
                ])
            #expect(browser.answer.contains("The passkey is added."))
            return authenticator
        }
    }

    @Test(
        .enabled(
            if: !installed.isEmpty,
            "skipped: no nginx, caddy or apache2 is installed (make test-tools)"),
        arguments: installed, Way.allCases)
    func longestRequest_signInBehindAProxy_reachesTheApp(_ kind: ReverseProxy, _ way: Way) throws {
        var jane = Jane(try SMTPSink())
        defer { jane.sink.stop() }
        let service = try LiveService([
            "http.public_url": "https://id.example", "sign_in.page": "built-in",
            "mail.submission": "127.0.0.1:\(jane.sink.port)",
        ])
        try service.run("team", "add", "juice", "--name", "Juice")
        try service.run("app", "add", "juice", "com.juice")
        try service.run("app", "redirect", "add", "juice", "com.juice", "https://juice.example/in")
        let secret = try #require(
            try service.run("app", "secret", "issue", "juice", "com.juice").split(
                whereSeparator: \.isNewline
            ).first {
                $0.hasPrefix("ps_")
            }.map(String.init))
        try service.run("user", "add", "jane", "--inbox", Jane.inbox, "--verified")
        let proxy = try RunningProxy(kind, to: service.port)
        var passkey = way == .passkey ? try jane.passkey(ProxyBrowser(proxy)) : nil

        let browser = ProxyBrowser(proxy)
        let state = String(repeating: "\u{E9}", count: 2_048)
        let request = [
            "client_id": "com.juice", "redirect_uri": "https://juice.example/in",
            "response_type": "code",
            "scope": "openid email", "state": state,
        ]
        try browser.post("/auth/authorize", request, asIs: true)
        switch way {
        case .code: try browser.post("/me/sent", ["code": try jane.ask(browser).code])
        case .link:
            let link = try jane.ask(browser).link
            try browser.get(link)
            try browser.post(link, [:])
        case .passkey:
            let challenge = try browser.challenge()
            passkey?.clientData = TestAuthenticator.clientData(.get, challenge: challenge)
            let passkey = try #require(passkey)
            try browser.post(
                "/me/passkey",
                [
                    "challenge": Base64URL.encode(challenge),
                    "credential": Base64URL.encode(passkey.credentialID),
                    "client_data": Base64URL.encode(Array(passkey.clientData.utf8)),
                    "authenticator_data": Base64URL.encode(
                        passkey.authenticatorData(withCredential: false)),
                    "signature": Base64URL.encode(try passkey.signature()), "user_handle": "",
                ])
        }
        #expect(browser.answer.contains("<h1>Continue to Juice</h1>"), "\(browser.answer)")
        try browser.post("/sign-in", ["decision": "continue", "email": "hide"])
        let encoded = String(repeating: "%C3%A9", count: 2_048)
        let code = try #require(
            browser.answer.firstMatch(
                of: /https:\/\/juice\.example\/in\?code=(pc_[A-Za-z0-9_-]+)&/)?.1,
            "\(browser.answer)")
        #expect(
            RunningProxy.status(browser.answer) == 200
                && browser.answer.contains("state=\(encoded)&"))
        let tokens = try proxy.post(
            "/auth/token",
            FormEncoding.encode([
                ("grant_type", "authorization_code"), ("code", String(code)),
                ("redirect_uri", "https://juice.example/in"),
                ("client_id", "com.juice"), ("client_secret", secret),
            ]))
        #expect(RunningProxy.status(tokens) == 200 && tokens.contains("id_token"), "\(tokens)")
    }
}
