// Apps' users at the built-in sign-in page, in a real browser: the complete process, and the look
// and text of each page.

import Foundation
import InternetMessage
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix, Browser.isThere) struct RelaySignInTests {
    @Test(
        .enabled(
            if: Axe.script != nil, "skipped: no Python with Authlib and axe-core (make test-tools)")
    )
    func signInDemo_automaticRun_succeeds() throws {
        // The demonstration, which is a separate program: `AUTO=1 make demo-sign-in`.
        let demo = try ManagedProcess(
            try ManagedProcess.builtProduct("sign-in-demo"), [],
            environment: ["AUTO": "1", "NO_COLOR": "1"])
        #expect(try demo.waitForExit() == 0, "\(demo.output)")
        #expect(demo.output.contains("All steps came out right."), "\(demo.output)")
    }

    private struct Pages {
        let browser: Browser
        let fixture: RelayFixture
        let url: String
        private var letters = 0

        init(_ browser: Browser, _ fixture: RelayFixture, _ url: String) {
            (self.browser, self.fixture, self.url) = (browser, fixture, url)
        }

        func authorize(_ language: String, _ more: String = "") throws {
            try browser.open(
                "\(url)/auth/authorize?client_id=com.example.juice&redirect_uri=https://juice.example/back&response_type=code"
                    + "&scope=openid%20email%20name&state=1&ui_locales=\(language)\(more)")
        }

        /// Requests a code, and stays on the page for it. Returns the code.
        mutating func code() throws -> String {
            try browser.type("anna@home.example", into: "#email")
            try browser.click("form[action='/me/sign-in'] button")
            letters += 1
            let message = try fixture.arrival(for: "anna@home.example", number: letters)
            let part = message.text.components(separatedBy: "Content-Type: text/html")[0]
            let text = String(
                decoding: QuotedPrintable.decode(Array(part.utf8)[...]).bytes, as: UTF8.self)
            _ = try browser.shows("#code", "")
            return String(try #require(text.firstMatch(of: /[0-9]{3}[ \u{A0}][0-9]{3}/)).output)
        }
    }

    /// Checks the open page.
    private func look(_ browser: Browser, _ name: String, _ language: String) throws {
        let findings = try PageLook(browser).findings("sign-in-\(name)", language)
        #expect(findings == [], "\(findings.joined(separator: "\n"))")
    }

    @Test func signInPage_everyStateAndLanguage_hasNoFindings() throws {
        let (fixture, url) = try home(host: "localhost") { options in
            options.settings["sign_in.page"] = "built-in"
            options.settings["sign_in.sign_up"] = "open"
            options.settings["verification.per_inbox"] = "50"
        }
        defer { fixture.stop() }
        try fixture.addUser(
            "anna",
            inboxes: ["anna@home.example", "a.considerably.longer.name.than.most@home.example"])
        try fixture.run([
            "app", "add", "juice", "com.example.juice", "--redirect-uri",
            "https://juice.example/back",
        ])
        let browser = try Browser()
        defer { browser.quit() }
        var pages = Pages(browser, fixture, url)
        for language in ["en", "de", "ja", "ar"] {
            // Within one second, the sign-in before would answer this request.
            if language != "en" { try browser.forgetCookies() }
            try pages.authorize(language, "&prompt=login")
            try look(browser, "door", language)
            let code = try pages.code()
            try look(browser, "sent", language)
            try browser.type("000 000", into: "#code")
            try browser.click("form[action='/me/sent'] button")
            _ = try browser.shows("#problem", "")
            try look(browser, "wrong-code", language)
            try browser.type(code, into: "#code")
            try browser.click("form[action='/me/sent'] button")
            _ = try browser.shows(".choices", "")
            try look(browser, "sheet", language)
            try browser.type("Anna", into: "#first_name")
            try browser.open("\(url)/sign-in?request=AAAA")
            _ = try browser.shows(".door", "")
        }
        try browser.open("\(url)/auth/end-session?client_id=com.example.juice")
        #expect(try browser.shows("h1", "Sign out?"))
        try look(browser, "sign-out", "en")
        #expect(
            try browser.complaints().filter { !$0.contains("410") && !$0.contains("422") } == [])
        #expect(try browser.hostsAsked() == [String(url.dropFirst("http://".count))])
        #expect(try !fixture.process.output.contains("home.example"))
    }

    @Test func signInPage_keyboardOnly_signsIn() throws {
        let (fixture, url) = try home(host: "localhost") {
            $0.settings["sign_in.page"] = "built-in"
        }
        defer { fixture.stop() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        let back = "http://127.0.0.1:\(try FreePort.next())/back"
        try fixture.run(["app", "add", "juice", "com.example.juice", "--redirect-uri", back])
        let browser = try Browser()
        defer { browser.quit() }
        // Everything works without a script.
        try browser.forbidScripts()
        try browser.open(
            "\(url)/auth/authorize?client_id=com.example.juice&redirect_uri=\(back)&response_type=code&scope=openid%20email&state=1"
        )
        // Typing works at once, and also for the code.
        try browser.press("anna@home.example" + Browser.Key.enter)
        #expect(try browser.shows("h1", "Check your inbox"))
        let message = try fixture.arrival(for: "anna@home.example")
        let code = try #require(message.value("Subject")?.firstMatch(of: /[0-9]{3} [0-9]{3}/))
            .output
        try browser.press(code + Browser.Key.enter)
        #expect(try browser.shows("h1", "Continue to The Juice Company"))
        // Skip the head; then the choice, by an arrow; then the button.
        try browser.press(
            Browser.Key.tab + Browser.Key.enter + Browser.Key.tab + "\u{E015}" + Browser.Key.tab)
        #expect(try browser.focusedText == "Continue")
        #expect(
            try browser.value("return document.querySelector('[value=share]').checked") as? Bool
                == true)
        try browser.press(Browser.Key.enter)
        #expect(try browser.leads(to: back + "?code=pc_"))
    }

    /// An app with a callback that redirects over two other origins, as many do: Chromium applies
    /// `form-action` to all redirects after a form.
    private static func app() throws -> (process: ManagedProcess, ports: [String]) {
        let process = try ManagedProcess(
            "/usr/bin/python3",
            [
                "-c",
                """
                import http.server, sys, threading
                class Handler(http.server.BaseHTTPRequestHandler):
                    def answer(self):
                        self.rfile.read(int(self.headers.get('Content-Length') or 0))
                        at = ports.index(self.server.server_port)
                        self.send_response(200 if at == 2 else 303)
                        if at < 2: self.send_header('Location', f'http://127.0.0.1:{ports[at + 1]}/{"on" if at == 0 else "end"}')
                        self.send_header('Content-Type', 'text/html')
                        self.end_headers()
                        self.wfile.write(b'<h1>Signed in</h1>')
                    do_GET = do_POST = answer
                    def log_message(self, *arguments): pass
                servers = [http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) for _ in range(3)]
                ports = [server.server_port for server in servers]
                for server in servers: threading.Thread(target=server.serve_forever, daemon=True).start()
                print('ports', *ports, flush=True)
                sys.stdin.read()
                """,
            ])
        let line = try process.waitForLine(containing: "ports ")
        return (process, line.split(separator: " ").dropFirst().map(String.init))
    }

    @Test func signIn_appThatLeadsOnOverOtherOrigins_arrivesInEachMode() throws {
        let (fixture, url) = try home(host: "localhost") {
            $0.settings["sign_in.page"] = "built-in"
        }
        defer { fixture.stop() }
        let (app, ports) = try Self.app()
        defer { app.end() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        let (back, end) = ("http://127.0.0.1:\(ports[0])/back", "http://127.0.0.1:\(ports[2])/end")
        try fixture.run(["app", "add", "juice", "com.example.juice", "--redirect-uri", back])
        let browser = try Browser()
        defer { browser.quit() }
        var pages = Pages(browser, fixture, url)
        for (mode, button) in [
            ("query", "continue"), ("form_post", "continue"), ("fragment", "continue"),
            ("query", "cancel"),
        ] {
            // Cookies are deleted for the open page, which is the app's. A sign-in of this second
            // would be accepted.
            try browser.open(url + "/me/goodbye")
            try browser.forgetCookies()
            try browser.open(
                "\(url)/auth/authorize?client_id=com.example.juice&redirect_uri=\(back)&response_type=code&scope=openid"
                    + "&state=1&prompt=login&response_mode=\(mode)")
            let code = try pages.code()
            try browser.type(code, into: "#code")
            try browser.click("form[action='/me/sent'] button")
            #expect(try browser.shows("h1", "Continue to The Juice Company"))
            try browser.click("button[value='\(button)']")
            #expect(try browser.leads(to: end), "\(mode) \(button)")
        }
        #expect(try browser.complaints() == [])
    }

    @Test func signIn_byPasskey_arrivesAtAnAppThatLeadsOn() throws {
        let (fixture, url) = try home(host: "localhost") {
            $0.settings["sign_in.page"] = "built-in"
        }
        defer { fixture.stop() }
        let (app, ports) = try Self.app()
        defer { app.end() }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        let (back, end) = ("http://127.0.0.1:\(ports[0])/back", "http://127.0.0.1:\(ports[2])/end")
        try fixture.run(["app", "add", "juice", "com.example.juice", "--redirect-uri", back])
        let browser = try Browser()
        defer { browser.quit() }
        let authenticator = try browser.addAuthenticator()
        var pages = Pages(browser, fixture, url)
        func authorize(_ mode: String) throws {
            try browser.open(
                "\(url)/auth/authorize?client_id=com.example.juice&redirect_uri=\(back)&response_type=code&scope=openid"
                    + "&state=1&prompt=login&response_mode=\(mode)")
        }
        try browser.open(url + "/me/sign-in")
        try browser.type(try pages.code(), into: "#code")
        try browser.click("form[action='/me/sent'] button")
        #expect(try browser.arrives(at: url + "/me/offer"))
        try browser.click("#passkey-add button")
        #expect(try browser.shows("[role=status]", "The passkey is added."))
        // Without typing: the browser offers the passkey in the address field. Then with the
        // button.
        for (mode, isOffered) in [("query", true), ("form_post", false)] {
            try browser.open(url + "/me/goodbye")
            try browser.forgetCookies()
            try browser.setUserVerified(isOffered, authenticator)
            try authorize(mode)
            if !isOffered {
                _ = try browser.shows("#passkey-sign-in button", "")
                try browser.setUserVerified(true, authenticator)
                try browser.click("#passkey-sign-in button")
            }
            #expect(try browser.shows("h1", "Continue to The Juice Company"), "\(mode)")
            try browser.click("button[value='continue']")
            #expect(try browser.leads(to: end), "\(mode)")
        }
        #expect(try browser.complaints() == [])
        #expect(try browser.passkeys(authenticator).first?["signCount"] as? Int ?? 0 >= 3)
    }
}
