// A running `postern sandbox`: mail, orders, and the files that remain.

import Foundation
import PostfixHarness
import Support
import TestSupport
import Testing

/// All of Postern on free ports. It ends with the object.
final class RunningPostern {
    let process: ManagedProcess
    let facts: [String: String]

    init(folder: URL? = nil) throws {
        let environment = folder.map { ["TMPDIR": $0.path] }
        process = try ManagedProcess(
            try ManagedProcess.builtProduct("postern"), ["sandbox", "--port", "0"],
            environment: environment ?? [:])
        var facts: [String: String] = [:]
        for name in ["URL", "KEY", "CLIENT_ID", "CLIENT_SECRET", "SUB", "ADDRESS", "SMTP"] {
            let line = try process.waitForLine(containing: "  \(name)=")
            facts[name] = String(line.drop { $0 != "=" }.dropFirst())
        }
        self.facts = facts
    }

    deinit {
        process.signal(SIGTERM)
        _ = try? process.waitForExit()
    }

    func fact(_ name: String) throws -> String { try #require(facts[name]) }

    /// Status and body.
    @discardableResult
    func curl(_ path: String, _ arguments: [String] = []) throws -> (status: Int, body: String) {
        let run = try ManagedProcess.run(
            "/usr/bin/curl", ["-sS", "-w", "\n%{http_code}", try fact("URL") + path] + arguments)
        let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false)
        return (Int(lines.last ?? "") ?? 0, lines.dropLast().joined(separator: "\n"))
    }

    func post(
        _ path: String, _ body: String, asTeam: Bool = false
    ) throws -> (status: Int, body: String) {
        let key = asTeam ? ["-H", "Authorization: Bearer \(try fact("KEY"))"] : []
        return try curl(path, ["-H", "Content-Type: application/json", "-d", body] + key)
    }

    func object(_ answer: (status: Int, body: String)) throws -> JSONObject {
        try StrictJSON.parseObject(Array(answer.body.utf8), limit: 1_000_000)
    }

    /// Gives an order that succeeds.
    @discardableResult
    func order(_ path: String, _ body: String) throws -> JSONObject {
        let answer = try post("/sandbox/\(path)", body)
        try #require((200..<300).contains(answer.status), "\(path) \(body): \(answer)")
        return answer.body.isEmpty ? [:] : try object(answer)
    }

    /// The newest mail of a mailbox, as soon as there is one after a number.
    func mail(to address: String, after number: Int64 = 0) throws -> JSONObject {
        let answer = try object(curl("/sandbox/mails?to=\(address)&after=\(number)&wait=60"))
        return try #require(answer["items"]?.array?.last?.object)
    }

    /// The SMTP reply to a message by curl; empty if it was accepted.
    func smtp(
        from sender: String, to recipient: String, _ message: String
    ) throws -> (status: Int32, output: String) {
        let file = FileManager.default.temporaryDirectory.appending(
            path: "letter-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(message.replacing("\n", with: "\r\n").utf8).write(to: file)
        let run = try ManagedProcess.run(
            "/usr/bin/curl",
            [
                "-sSv", "smtp://\(try fact("SMTP"))", "--mail-from", sender, "--mail-rcpt",
                recipient, "-T", file.path,
            ])
        return (run.status, run.output)
    }
}

@Suite(.blocking) struct SandboxTests {
    private static func letter(_ address: String, _ more: String = "") -> String {
        #"{"from": "support@app.example", "to": "\#(address)", "subject": "Hello", "text": "How are you?"\#(more)}"#
    }

    @Test func mail_bothWaysOverSMTP_arrivesWithoutTheInbox() throws {
        let postern = try RunningPostern()
        let address = try postern.fact("ADDRESS")
        let sent = try postern.smtp(
            from: "support@app.example", to: address,
            "From: Support <support@app.example>\nTo: \(address)\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\n\n.Hello\n"
        )
        #expect(sent.status == 0, "\(sent.output)")
        let forward = try postern.mail(to: "jane@home.example")
        #expect(
            forward["subject"]?.string == "Grüße" && forward["text"]?.string == ".Hello\n"
                && forward["side"]?.string == "user")
        let from = try #require(forward["from"]?.string?.firstMatch(of: /<([^>]+)>/)?.output.1)
        let answered = try postern.smtp(
            from: "jane@home.example", to: String(from),
            "From: Jane <jane@home.example>\nTo: \(from)\nSubject: Re\n\nI am jane@home.example.\n")
        #expect(answered.status == 0, "\(answered.output)")
        let reply = try postern.mail(to: "support@app.example")
        #expect(reply["from"]?.string?.contains(address) == true && reply["side"]?.string == "team")
        let raw = try postern.curl("/sandbox/mails/\(reply["number"]?.number?.integer ?? 0)")
        #expect(
            raw.status == 200 && !raw.body.contains("jane@home.example")
                && raw.body.contains("I am \(address)"), "\(raw)")
        #expect(try postern.curl("/sandbox/mails/99").status == 404)
        try postern.process.waitForLine(containing: "mail 1 to jane@home.example: Grüße")
    }

    /// A message, and its refusal.
    @Test(arguments: [
        (#""from": "support@other.example""#, "", "5.7.1"),
        (#""from": "support@app.example""#, #", "client": "192.0.2.7""#, "5.7.23"),
        (#""from": "support@app.example", "to": "nobody@relay.sandbox.example""#, "", "5.1.1"),
    ])
    func mail_unprovedOrUnknown_isRefusedAsBySMTP(
        _ members: String, _ more: String, _ enhanced: String
    ) throws {
        let postern = try RunningPostern()
        let to = members.contains(#""to""#) ? "" : #", "to": "\#(try postern.fact("ADDRESS"))""#
        let answer = try postern.order("mail", "{\(members)\(to)\(more), \"text\": \"x\"}")
        #expect(
            answer["code"]?.number?.integer == 550 && answer["enhanced"]?.string == enhanced,
            "\(answer)")
        #expect(answer["mails"]?.array?.isEmpty == true)
        #expect(try postern.curl("/sandbox/requests").body.contains(enhanced))
        try postern.process.waitForLine(containing: "refused SMTP")
    }

    @Test func mailbox_refusing_isReportedToTheTeamWithoutTheInbox() throws {
        let postern = try RunningPostern()
        let address = try postern.fact("ADDRESS")
        try postern.order(
            "mailboxes", #"{"address": "jane@home.example", "refuse": "550 5.1.1 no such mailbox"}"#
        )
        #expect(try postern.order("mail", Self.letter(address))["code"]?.number?.integer == 250)
        let report = try postern.mail(to: "support@app.example")
        #expect(
            report["envelope_from"]?.string == ""
                && report["text"]?.string?.contains("5.1.1") == true)
        #expect(!JSONValue.object(report).text.contains("jane@home.example"))
        try postern.order("mailboxes", #"{"address": "jane@home.example"}"#)
        #expect(try postern.order("mail", Self.letter(address))["mails"]?.array?.count == 1)
    }

    @Test func mail_toSeveralAccounts_reachesEach() throws {
        let postern = try RunningPostern()
        let bob = try postern.order("users", #"{"user": "bob", "uses_app": true}"#)
        let both = "\(try postern.fact("ADDRESS")), \(try #require(bob["address"]?.string))"
        let sent = try postern.order("mail", Self.letter(both))
        #expect(
            sent["mails"]?.array?.count == 2 && sent["recipients"]?.array?.count == 2, "\(sent)")
        #expect(try postern.mail(to: "bob@home.example")["subject"]?.string == "Hello")
    }

    @Test func source_claimedByItsTeam_isProvedByARecordOfTheSandbox() throws {
        let postern = try RunningPostern()
        let news = Self.letter(try postern.fact("ADDRESS")).replacing(
            "app.example", with: "news.example")
        let claimed = try postern.object(
            postern.post("/v1/sources", #"{"source": "news.example"}"#, asTeam: true))
        let challenge = try #require(claimed["challenge"]?.object)
        #expect(try postern.order("mail", news)["code"]?.number?.integer == 550)
        let record: JSONObject = [
            "name": challenge["name"] ?? .null, "type": .string("TXT"),
            "value": challenge["value"] ?? .null,
        ]
        try postern.order("dns", JSONValue.object(record).text)
        let proved = try postern.post(
            "/v1/sources/verify", #"{"source": "news.example"}"#, asTeam: true)
        #expect(proved.body.contains(#""state":"active""#), "\(proved)")
        try postern.order(
            "dns", #"{"name": "news.example", "type": "TXT", "value": "v=spf1 ip4:127.0.0.1 -all"}"#
        )
        #expect(try postern.order("mail", news)["code"]?.number?.integer == 250)
        try postern.order("dns", #"{"name": "news.example", "failure": "SERVFAIL"}"#)
        #expect(try postern.order("mail", news)["code"]?.number?.integer == 451)
    }

    /// The order for a part, a request to that part, and its status.
    @Test func failure_ordered_happensThereOnceAndIsInTheJournal() throws {
        let postern = try RunningPostern()
        let question = #"{"event": "sign_in", "client_id": "com.example.app", "sub": "test-allow"}"#
        for (part, failure, status, ask) in [
            (
                "decisions", "status-503", 503,
                { try postern.post("/v1/decisions", question, asTeam: true).status }
            ),
            (
                "api", "status-500", 500,
                { try postern.post("/v1/decisions", question, asTeam: true).status }
            ),
            ("keys", "status-503", 503, { try postern.curl("/auth/keys").status }),
            (
                "discovery", "status-500", 500,
                { try postern.curl("/.well-known/openid-configuration").status }
            ),
            ("page", "status-503", 503, { try postern.curl("/me/sign-in").status }),
        ] as [(String, String, Int, () throws -> Int)] {
            try postern.order("failures", #"{"on": "\#(part)", "failure": "\#(failure)"}"#)
            #expect(try ask() == status, "\(part)")
            #expect(try ask() == 200, "\(part) again")
            let journal =
                try postern.object(postern.curl("/sandbox/requests"))["items"]?.array ?? []
            #expect(journal[1].object?["cause"]?.string == "as ordered: \(failure)", "\(part)")
        }
        try postern.order("failures", #"{"on": "mail", "failure": "status-503"}"#)
        let letter = Self.letter(try postern.fact("ADDRESS"))
        #expect(try postern.order("mail", letter)["code"]?.number?.integer == 451)
        #expect(try postern.order("mail", letter)["code"]?.number?.integer == 250)
        // A request that hangs is in the journal at once, and does not prevent the end of the
        // sandbox.
        try postern.order(
            "failures", #"{"on": "decisions", "failure": "timeout", "seconds": 300, "times": 2}"#)
        let waiting = try ManagedProcess(
            "/usr/bin/curl",
            [
                "-sS", "-H", "Authorization: Bearer \(try postern.fact("KEY"))", "-H",
                "Content-Type: application/json", "-d",
                question,
                try postern.fact("URL") + "/v1/decisions",
            ])
        defer { waiting.end() }
        try wait("it is asked", atMost: 60) {
            try postern.curl("/sandbox/requests").body.contains("as ordered: timeout, 300 s")
        }
        #expect(try postern.curl("/sandbox/failures", ["-X", "DELETE"]).status == 204)
        #expect(try postern.post("/v1/decisions", question, asTeam: true).status == 200)
        postern.process.signal(SIGTERM)
        #expect(try postern.process.waitForExit() == 0)
    }

    @Test func orders_wrong_areRefusedWithTheReason() throws {
        let postern = try RunningPostern()
        for (path, body, text) in [
            ("clock", #"{"advance": 1, "offset": 2}"#, "either advance or offset"),
            ("clock", #"{"advance": -1}"#, "only goes forward"),
            ("clock", #"{"offset": 9223372036854775807}"#, "ten years"),
            ("failures", #"{"on": "mail", "failure": "timeout"}"#, "cannot happen at mail"),
            ("failures", #"{"on": "nothing", "failure": "slow"}"#, "must be one of decisions"),
            ("failures", #"{"on": "api", "failure": "slow", "seconds": 301}"#, "1 to 300"),
            ("failures", #"{"on": "api", "failure": "slow", "times": 0}"#, "1 to 1000"),
            ("users", #"{"user": "eve", "real_user_status": 3}"#, "0, 1 or 2"),
            ("users", #"{"user": "e v e", "inbox": "e@home.example"}"#, "identifier"),
            ("users", #"{"user": "eve", "inbox": "jane@relay.sandbox.example"}"#, "relay domain"),
            ("mail", #"{"from": "a@b.example", "text": "x"}"#, "must be an address"),
            ("mail", #"{"to": "a@b.example", "text": "x"}"#, "must be one address"),
            ("mail", #"{"reply_to": 9}"#, "no message"),
            ("mailboxes", #"{"address": "a@b.example", "refuse": "451 4.0.0 later"}"#, "550 5.1.1"),
            ("dns", #"{"name": "a.example", "type": "MX", "value": "x"}"#, "TXT, A or AAAA"),
            ("dns", #"{"name": "a.example", "type": "A", "value": "x"}"#, "must be an IP address"),
            (
                "mail",
                #"{"from": "a@b.example", "to": "a@b.example", "client": "x", "text": "x"}"#,
                "sending machine"
            ),
            ("users", #"{"user": ""}"#, "the name of a user"),
            ("dns", #"{"name": "a.example", "value": "x"}"#, "a type with a value"),
            ("token", #"{"user": "jane", "age": 5}"#, "client_id and nonce only"),
            ("token", #"{"lifetime": 864001}"#, "ten days"),
        ] {
            let answer = try postern.post("/sandbox/\(path)", body)
            #expect(
                answer.status == 422 && answer.body.contains(text), "\(path) \(body): \(answer)")
        }
        #expect(try postern.curl("/sandbox/clock", ["-d", #"{"advance": 1}"#]).status == 415)
        #expect(try postern.post("/sandbox/token", #"{"user": "nobody"}"#).status == 404)
        #expect(try postern.curl("/sandbox/mails?wait=61").status == 400)
    }

    @Test func clock_advanced_movesTheWholeService() throws {
        let postern = try RunningPostern()
        let token = try postern.order("token", #"{"user": "anna", "nonce": "n"}"#)
        let question =
            #"{"event": "sign_in", "client_id": "com.example.app", "nonce": "n", "identity_token": "\#(token["identity_token"]?.string ?? "")"}"#
        #expect(
            try postern.order("clock", #"{"advance": 7200}"#)["offset"]?.number?.integer == 7_200)
        let refused = try postern.post("/v1/decisions", question, asTeam: true)
        #expect(refused.status == 422 && refused.body.contains("expired"), "\(refused)")
        #expect(
            try postern.object(postern.curl("/sandbox/clock"))["offset"]?.number?.integer == 7_200)
    }

    @Test func page_withHostileMail_isEscapedAndFits() throws {
        let postern = try RunningPostern()
        let hostile = #"<script>alert(1)</script> {{name}}"#
        try postern.order(
            "mail",
            #"{"from": "support@app.example", "to": "\#(try postern.fact("ADDRESS"))", "subject": "\#(hostile)", "text": "\#(hostile)"}"#
        )
        #expect(try postern.post("/v1/decisions", "{}", asTeam: true).status == 422)
        let page = try postern.curl("/sandbox", ["-i"])
        #expect(
            page.body.contains(
                "Content-Security-Policy: default-src 'none'; style-src 'self'; base-uri 'none'"))
        #expect(
            !page.body.contains("<script")
                && page.body.contains("&lt;script&gt;alert(1)&lt;/script&gt; {{name}}"))
        let secrets = try ["KEY", "CLIENT_SECRET"].map(postern.fact)
        #expect(!secrets.contains { page.body.contains($0) })
    }

    @Test(.enabled(if: Browser.driver != nil, "skipped: no chromedriver"), .timeLimit(.minutes(5)))
    func page_inABrowser_isReadableInEveryWidth() throws {
        let postern = try RunningPostern()
        let browser = try Browser()
        defer { browser.quit() }
        try browser.open(try postern.fact("URL") + "/sandbox")
        #expect(try PageLook(browser).findings("sandbox-empty", "en") == [])
        let address = try postern.fact("ADDRESS")
        try postern.order("mail", Self.letter(address))
        try postern.order("mail", #"{"reply_to": 1, "text": "Well, thank you."}"#)
        try postern.order("failures", #"{"on": "decisions", "failure": "timeout"}"#)
        #expect(try postern.curl("/v1/accounts/none").status == 401)
        try browser.open(try postern.fact("URL") + "/sandbox")
        #expect(try browser.text("ol.requests > li:first-child .what") == "Re: Hello")
        #expect(try browser.text("li.refused .cause").contains("unauthorized"))
        #expect(try PageLook(browser).findings("sandbox", "en") == [])
        #expect(try browser.complaints().filter { !$0.contains("favicon") } == [])
    }

    @Test func sandboxes_sideBySideKilledAndEnded_leaveNothingOfTheirOwn() throws {
        let folder = try Folders.temporary("sandboxes")
        defer { try? FileManager.default.removeItem(at: folder) }
        func folders() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
                $0.hasPrefix("postern-sandbox-")
            }
        }
        let (killed, other) = (
            try RunningPostern(folder: folder), try RunningPostern(folder: folder)
        )
        #expect(try folders().count == 2)
        killed.process.signal(SIGKILL)
        _ = try? killed.process.waitForExit()
        #expect(try folders().count == 2)
        // The next one removes the folder of the killed one, and not that of the running one.
        let next = try RunningPostern(folder: folder)
        #expect(try folders().count == 2)
        #expect(try other.curl("/readyz").status == 200)
        for (postern, signal) in [(other, SIGINT), (next, SIGTERM)] {
            postern.process.signal(signal)
            #expect(try postern.process.waitForExit() == 0)
        }
        #expect(try folders() == [])
    }

    /// A page of another site must not reset the sandbox, and a name that leads here must not read
    /// its mail.
    @Test func order_ofAPageOfAnotherSite_isRefused() throws {
        let postern = try RunningPostern()
        try postern.order("users", #"{"user": "kept"}"#)
        for origin in [
            "https://evil.example", "null", "http://127.0.0.1.evil.example",
            "http://localhost.evil.example:80",
        ] {
            #expect(
                try postern.curl("/sandbox/reset", ["-X", "POST", "-H", "Origin: \(origin)"]).status
                    == 403, "\(origin)")
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost:x", "[::2]"] {
            #expect(
                try postern.curl("/sandbox/users", ["-H", "Host: \(host)"]).status == 422, "\(host)"
            )
        }
        #expect(
            try postern.curl("/sandbox/users", ["-H", "Host: localhost:1"]).body.contains("kept"))
        #expect(
            try postern.curl(
                "/sandbox/reset", ["-X", "POST", "-H", "Origin: \(try postern.fact("URL"))"]
            ).status == 204)
        #expect(try !postern.curl("/sandbox/users").body.contains("kept"))
    }

    /// New users, and users with an added inbox, must be able to answer.
    @Test func reply_ofAUserOfAnyDomain_reachesTheTeam() throws {
        let postern = try RunningPostern()
        let user = try postern.order(
            "users", #"{"user": "zoe", "inbox": "zoe@elsewhere.example", "uses_app": true}"#)
        try postern.order("dns", #"{"name": "elsewhere.example"}"#)
        let sent = try postern.order("mail", Self.letter(try #require(user["address"]?.string)))
        let number = try #require(sent["mails"]?.array?.first?.number?.integer)
        #expect(
            try postern.order("mail", #"{"reply_to": \#(number), "text": "Well"}"#)["code"]?.number?
                .integer == 250)
    }

    /// Data that ends within a day of the clock is deleted at once, and a page says why it refuses.
    @Test func deletion_clockPassesTheDay_isCarriedOutAndPagesSayWhy() throws {
        let postern = try RunningPostern()
        let folder = try Folders.temporary("cookies")
        defer { try? FileManager.default.removeItem(at: folder) }
        let jar = folder.appending(path: "jar").path
        func form(_ path: String, _ fields: [String] = []) throws -> (status: Int, body: String) {
            try postern.curl(
                path, ["-b", jar, "-c", jar, "-L"] + fields.flatMap { ["--data-urlencode", $0] })
        }
        func token(_ page: String) throws -> String {
            "csrf=\(try #require(page.firstMatch(of: /name="csrf" value="([a-z2-7]+)"/)).output.1)"
        }
        let sent = try form(
            "/me/sign-in", [try token(form("/me/sign-in").body), "email=jane@home.example"])
        let wrong = try form("/me/sent", [try token(sent.body), "code=000000"])
        #expect(wrong.status == 422)
        try postern.process.waitForLine(
            containing: "refused POST /me/sent: 422: This code is wrong or has expired.")
        let code = try #require(try postern.mail(to: "jane@home.example")["code"]?.string)
        #expect(try form("/me/sent", [try token(wrong.body), "code=\(code)"]).status == 200)
        let asked = try form("/me/delete", [try token(form("/me/delete").body)])
        #expect(asked.status == 200)
        let letter = try postern.mail(to: "jane@home.example", after: 1)
        let path = try #require(letter["text"]?.string?.firstMatch(of: /\/me\/delete\/[a-z2-7]+/))
            .output
        #expect(try form(String(path), [try token(form(String(path)).body)]).status == 200)
        #expect(try postern.curl("/sandbox/users").body.contains("\"jane\""))
        try postern.order("clock", #"{"advance": 2592000}"#)
        try wait("jane is deleted", atMost: 60) {
            try !postern.curl("/sandbox/users").body.contains("\"jane\"")
        }
    }
}

@Suite(
    .blocking, .enabled(if: Browser.driver != nil, "skipped: no chromedriver"),
    .timeLimit(.minutes(5)))
struct SandboxBrowserTests {
    /// A button is composed without scripts, and copied; a script makes the PNG.
    @Test func buttonPage_composed_showsTheButtonAndItsLines() throws {
        let postern = try RunningPostern()
        let url = try postern.fact("URL")
        let browser = try Browser()
        defer { browser.quit() }
        try browser.open(
            url
                + "/sandbox/button?kind=continue&style=outline&radius=22&height=48&width=&logo=beside&border=&lang=ar"
        )
        let image = "/auth/button.svg?kind=continue&style=outline&height=48&radius=22&lang=ar"
        #expect(
            try browser.value("return document.getElementById('button').getAttribute('src')")
                as? String == image)
        #expect(
            try browser.value(
                "const i = document.getElementById('button'); return i.complete && i.naturalHeight")
                as? Int == 48)
        let lines = try browser.text(".snippet")
        #expect(
            lines.contains(
                #"data-kind="continue" data-style="outline" data-height="48" data-radius="22" data-lang="ar"></div>"#
            ))
        #expect(
            lines.contains("<script src=\"\(url)/auth/sign-in.js\"></script>")
                && !lines.contains("data-logo"))
        #expect(try PageLook(browser).findings("sandbox-button", "en") == [])
        try browser.click("#png a[data-scale='2']")
        _ = try browser.shows("body[data-png]", "")
        let made = try #require(try browser.value("return document.body.dataset.png") as? String)
        #expect(made.firstMatch(of: /^[0-9]+x96 [1-9][0-9]{2,}$/) != nil, "\(made)")
        let complaints = try browser.complaints().filter { !$0.contains("favicon") }
        #expect(complaints == [])
        // A script only spares the press.
        _ = try browser.value(
            "document.querySelector('select[name=style]').value = 'light'; document.querySelector('form').submit()"
        )
        #expect(try browser.leads(to: url + "/sandbox/button?kind=continue&style=light"))
        #expect(try browser.text(".snippet").contains("data-style=\"light\""))
        for query in [
            "style=pink", "radius=99", "radius=x", "width=159", "lang=xx", "size=1",
            "style=dark&style=light", "kind=%22%3E",
        ] {
            let answer = try postern.curl("/sandbox/button?" + query)
            #expect(answer.status == 400 && !answer.body.contains("\">"), "\(query): \(answer)")
        }
        #expect(
            try postern.curl("/sandbox/button?height=%2B044").body.contains(
                "src=\"/auth/button.svg\""))
    }

    /// The page of SANDBOX.md, unchanged.
    @Test func page_withoutABackend_signsInAndRefusesAnotherAnswer() throws {
        let postern = try RunningPostern()
        let url = try postern.fact("URL")
        let text = try String(
            contentsOf: Folders.package.appending(path: "docs/SANDBOX.md"), encoding: .utf8)
        let block = try #require(text.firstMatch(of: /```html\n((?s:.*?))```/)).output.1
        #expect(block.split(separator: "\n").count <= 50)
        let folder = try Folders.temporary("page")
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(block.replacing("http://127.0.0.1:8890", with: url).utf8).write(
            to: folder.appending(path: "page.html"))
        let server = try ManagedProcess(
            "/usr/bin/env",
            [
                "python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory",
                folder.path,
            ])
        defer { server.end() }
        let line = try server.waitForLine(containing: "Serving HTTP on")
        let port = try #require(line.firstMatch(of: /port ([0-9]+)/)).output.1
        let page = "http://127.0.0.1:\(port)/page.html"
        let browser = try Browser()
        defer { browser.quit() }
        try browser.open(page)
        try browser.click("button")
        #expect(try browser.leads(to: url))
        try browser.type("new@home.example", into: "#email")
        try browser.click("form[action='/me/sign-in'] button")
        _ = try browser.shows("#code", "")
        let code = try #require(try postern.mail(to: "new@home.example")["code"]?.string)
        try browser.type(code, into: "#code")
        try browser.click("form[action='/me/sent'] button")
        _ = try browser.shows(".choices", "")
        try browser.click("main form button")
        #expect(try browser.shows("#who", "Signed in: "))
        let shown = try browser.text("#who")
        #expect(
            shown.firstMatch(of: /^Signed in: \S{32} \S+@relay\.sandbox\.example$/) != nil,
            "\(shown)")
        #expect(try browser.arrives(at: page))
        // An answer to a request that this page did not make.
        try browser.open(page + "?state=x&code=pc_y&iss=\(url)")
        #expect(try browser.shows("#who", "This answer was not asked for."))
        // A page of another origin reads nothing.
        let other = try postern.curl(
            "/auth/token",
            [
                "-H", "Origin: https://other.example", "-d",
                "grant_type=authorization_code&code=x&client_id=com.example.page",
                "-i",
            ])
        #expect(!other.body.lowercased().contains("access-control-allow-origin"))
        #expect(try browser.complaints().filter { !$0.contains("favicon") } == [])
    }
}

/// Python of `make test-tools` with Authlib; nil if there is none.
private let python: String? = {
    let own = Folders.package.appending(path: ".build/test-tools/bin/python3").path
    return [own, "/usr/bin/python3"].first {
        (try? ManagedProcess.run($0, ["-c", "import authlib, joserfc, requests"]))?.status == 0
    }
}()

@Suite(.blocking, .enabled(if: python != nil, "skipped: no python3 with Authlib (make test-tools)"))
struct ExampleAppTests {
    private static let tools = Folders.package.appending(path: "Tests/RehearsalTests/Tools")

    /// The first Python block of a page.
    private static func example(_ page: String) throws -> String {
        let text = try String(
            contentsOf: Folders.package.appending(path: "docs/\(page)"), encoding: .utf8)
        let start = try #require(text.range(of: "```python\n"))
        let end = try #require(text.range(of: "```", range: start.upperBound..<text.endIndex))
        return String(text[start.upperBound..<end.lowerBound])
    }

    /// Clients that three generators make of the API's document must accept it, and keep the
    /// challenge of an outcome.
    @Test(
        .timeLimit(.minutes(5)),
        .enabled(
            if: FileManager.default.isExecutableFile(
                atPath: Folders.package.appending(
                    path: ".build/test-tools/bin/openapi-python-client"
                ).path),
            "skipped: no openapi-python-client (make test-tools)"))
    func clients_ofThreeGenerators_askAndReport() throws {
        let run = try ManagedProcess.run(
            try #require(python),
            [
                "-B", "-W", "ignore", Self.tools.appending(path: "generated_clients.py").path,
                try ManagedProcess.builtProduct("postern"),
                Folders.package.appending(path: "docs/openapi.yaml").path,
            ])
        let lines = run.output.split(separator: "\n")
        #expect(run.status == 0, "\(lines.suffix(20).joined(separator: "\n"))")
        #expect(lines.count { $0.hasPrefix("ok ") } == 13)
    }

    /// The pages whose apps run unchanged, the script that plays the user, its number of checks,
    /// and the most lines of code that the page promises.
    @Test(
        .timeLimit(.minutes(5)),
        arguments: [("SANDBOX.md", "example_app", 29, 90), ("SIGN_IN.md", "relying_party", 4, 30)])
    func app_ofAPage_runsAsItStands(
        _ page: String, _ script: String, _ checks: Int, _ most: Int
    ) throws {
        let app = try Self.example(page)
        #expect(app.split(separator: "\n").count <= most)
        let folder = try Folders.temporary("example")
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "app.py")
        try Data(app.utf8).write(to: file)
        let run = try ManagedProcess.run(
            try #require(python),
            [
                "-B", Self.tools.appending(path: script + ".py").path,
                try ManagedProcess.builtProduct("postern"), file.path,
            ])
        let lines = run.output.split(separator: "\n")
        #expect(run.status == 0, "\(lines.suffix(20).joined(separator: "\n"))")
        #expect(lines.count { $0.hasPrefix("ok ") } == checks)
    }
}
