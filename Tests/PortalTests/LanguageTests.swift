// Pages in the built-in languages, and in those of an operator.

import Accounts
import Database
import Foundation
import Languages
import SignIn
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct LanguageTests {
    /// Every literal that the page's code looks up.
    private func literals() throws -> [String] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources/Portal")
        let files = try #require(
            FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var found: [String] = []
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            found += text.matches(of: /language\.text\(\s*"([^"]*)"/).map { String($0.output.1) }
        }
        return found
    }

    private var refusals: [String] {
        let all: [PortalRefusal] = [.over, .foreign, .notFound, .notLikeThat, .busy, .tooOften(1)]
        return all.flatMap { [$0.title, $0.text] }
    }

    @Test func languages_builtIn_translateEveryText() throws {
        let messages = SignInMessage.all.flatMap { [$0.title] + $0.sentences }
        let texts = PortalViews.texts + (try literals()) + refusals + messages
        #expect(texts.count > 250)
        let languages = try Languages.builtIn().all
        #expect(languages.map(\.tag) == ["en", "ar", "de", "es", "fr", "ja"])
        for language in languages.dropFirst() {
            for text in texts { #expect(language.knows(text), "\(language.tag): \(text)") }
        }
    }

    @Test func page_uiLocalesOrAcceptLanguage_chooseLanguage() async throws {
        try await SheetFixture.with { sheet in
            let browser = Browser(sheet.fixture)
            for (tags, accepted, expected) in [
                ("de-AT fr", "es", "de"), ("xx", "fr-CA, en;q=0.5", "fr"),
                ("", "da, en-gb;q=0.8, ja;q=0.9", "ja"),
                ("", "q;;,=", "en"), ("ar", "", "ar"),
            ] {
                try await browser.get(
                    "/auth/authorize?\(SheetFixture.query(["ui_locales": tags.isEmpty ? nil : tags]))"
                )
                let door = try #require(browser.page.location?.dropFirst(PortalFixture.url.count))
                try await browser.get(String(door))
                let path = try #require(browser.page.location)
                let page = try await browser.get(path, headers: ["Accept-Language": accepted])
                #expect(
                    page.text.contains(
                        "<html lang=\"\(expected)\"\(expected == "ar" ? " dir=\"rtl\"" : "")>"))
                #expect(!page.text.contains("{{"))
            }
        }
    }

    /// These messages must be whole pages in the user's language.
    @Test func message_inPlaceOfAnAnswer_isAPageInTheUsersLanguage() async throws {
        try await SheetFixture.with { sheet in
            let browser = Browser(sheet.fixture)
            for (path, title, status) in [
                (
                    "/auth/authorize?\(SheetFixture.query(["client_id": "com.none"]))",
                    "Die App kann Sie nicht anmelden", 400
                ),
                (
                    "/auth/authorize?\(SheetFixture.query(["redirect_uri": "https://evil.example/"]))",
                    "kann Sie nicht anmelden",
                    400
                ),
                ("/auth/continue?ticket=x", "Beginnen Sie noch einmal", 400),
                ("/auth/signed-out", "Sie sind abgemeldet", 200),
                (
                    "/auth/end-session?post_logout_redirect_uri=https://evil.example/",
                    "Die App kann Sie nicht abmelden", 400
                ),
            ] {
                let there = try #require(try await browser.get(path).location, "\(path)")
                let page = try await browser.get(
                    String(there.dropFirst(PortalFixture.url.count)),
                    headers: ["Accept-Language": "de-DE"])
                #expect(page.status == status && page.text.contains(title), "\(path)")
                #expect(
                    page.text.contains("<html lang=\"de\"") && page.text.contains("href=\"/me\""))
            }
            for name in ["", "x", "signed-out&message=start-again", "%3Cb%3E"] {
                #expect(try await browser.get("/sign-in?message=\(name)").status >= 400)
            }
        }
    }

    @Test func page_acceptLanguage_localizesDatesAndNumbers() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let today = Day.number(fixture.now)
            try fixture.store.counters.add(
                [DailyCounter(accountNumber: 1, day: today, kind: .forwarded, count: 1_234)])
            for (language, parts) in [
                "de": [
                    "Ihre Adressen", "seit 21. September 2026",
                    "1.234 Nachrichten an Sie, keine Nachrichten von Ihnen",
                ],
                "fr": ["Vos adresses", "depuis le 21 septembre 2026", "messages vers vous"],
                "ja": ["あなたのアドレス", "2026年9月21日 から", "1,234 件"],
                "ar": ["عناوينك", "dir=\"rtl\"", "سبتمبر"],
            ] {
                let text = try await anna.get("/me", headers: ["Accept-Language": language]).text
                for part in parts { #expect(text.contains(part), "\(language): \(part)") }
                #expect(text.contains("<html lang=\"\(language)\"") && !text.contains("{{"))
            }
        }
    }

    /// Refusals for operators, which name commands and identifiers, must not be on the page.
    @Test(arguments: [
        ("de", StoreFailure.Refused.notFound, "Das gibt es nicht mehr."),
        ("fr", .exists, "existe déjà"),
        ("es", .limit, "demasiado"), ("en", .unmet, "That is not possible at the moment."),
        ("ja", .invalid, "できません"),
    ]) func refusals_thatAreNotForUsers_areToldInWordsOfThePage(
        _ tag: String, _ code: StoreFailure.Refused, _ words: String
    ) throws {
        let languages = try Languages.builtIn()
        let language = languages.best([tag], accepted: nil)
        let said = languages.sentence(
            of: .refused(code, "user u-1 has no such inbox: see postern inbox list u-1"),
            in: language)
        #expect(
            said.contains(words) && !said.contains("u-1") && !said.contains("postern"), "\(said)")
        // Texts for users are in their language, with the number.
        let left = languages.sentence(
            of: .refused(.invalid, "the code is wrong; tries left: 3"), in: language)
        #expect(left.contains("3") && (tag == "en") == left.contains("tries left"), "\(left)")
    }

    @Test func language_thatTheUserChose_isThatOfEveryPageAndLeadsBack() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            let door = try await anna.get("/me/sign-in", headers: ["Accept-Language": "fr"]).text
            #expect(
                door.contains("<html lang=\"fr\"") && door.contains(">Deutsch</option>")
                    && door.contains(">日本語</option>"))
            #expect(door.contains(#"name="here" value="/me/sign-in""#))
            #expect(
                try await anna.submit("/me/language", ["language": "de", "here": "/me/sign-in"])
                    .location == "/me/sign-in")
            #expect(
                try await anna.get("/me/sign-in", headers: ["Accept-Language": "fr"]).text.contains(
                    "<html lang=\"de\""))
            try await anna.submit("/me/language", ["language": "xx"])
            #expect(
                try await anna.get("/me/sign-in", headers: ["Accept-Language": "fr"]).text.contains(
                    "<html lang=\"de\""))
            // It leads only to our own pages, and never to an address that a link opens.
            for away in [
                "https://evil.example/", "//evil.example", "/me/../evil",
                "/me/sign-in/abcdefghijklmnopqrstuvwxyz234567",
                "/auth/token",
                "/me/sign-in?request=%0d%0aX", "/me/addresses/1%0d", "/me/upstream?code=x",
            ] {
                #expect(
                    try await anna.submit("/me/language", ["language": "de", "here": away]).location
                        == "/me", "\(away)")
            }
            #expect(
                try await anna.submit(
                    "/me/language", ["language": "de", "here": "/me?search=a+b&page=2"]
                ).location
                    == "/me?search=a%20b&page=2")
        }
    }

    /// It must lead to the form with the code, not to the one with the address.
    @Test func language_chosenOnThePageOfARefusedForm_leadsBackToItsPage() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.get("/me/sign-in")
            try await anna.submit("/me/sign-in", ["email": "anna@home.example"])
            try await anna.follow()
            #expect(
                try await anna.submit("/me/sent", ["code": "x"]).text.contains(
                    #"name="here" value="/me/sent""#))
            try await anna.signIn("anna")
            for (path, form, here) in [
                ("/me/inboxes", ["email": "x"], "/me/inboxes"),
                ("/me/inboxes/1/code", ["code": "x"], "/me/inboxes"),
                ("/me/addresses/1/schedule", ["after": "x"], "/me/addresses/1"),
                ("/me/passkeys", ["name": "x"], "/me/security"),
            ] {
                try await anna.get("/me")
                let page = try await anna.submit(path, form)
                #expect(
                    page.status >= 400 && page.text.contains("name=\"here\" value=\"\(here)\""),
                    "\(path) \(page.status)")
            }
        }
    }

    /// Words are in attributes too: a quotation mark would end one.
    @Test func language_quotationMarksInText_areEscaped() throws {
        let languages = try languages(
            "nl.json",
            #"{"texts": {"Copied": "Ge\"kopieerd\" onclick=\"x", "See <a href=\"/me\">it</a>": "\"Zie\" <a href=\"/me\">het</a>"}}"#
        )
        let dutch = languages.best([], accepted: "nl")
        #expect(
            dutch.localised(#"<b data-done="{{#t}}Copied{{/t}}">"#)
                == #"<b data-done="Ge&quot;kopieerd&quot; onclick=&quot;x">"#)
        #expect(
            dutch.localised(#"{{#t}}See <a href="/me">it</a>{{/t}}"#)
                == #"&quot;Zie&quot; <a href="/me">het</a>"#)
    }

    /// The languages with one file of an operator.
    private func languages(_ name: String, _ text: String) throws -> Languages {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-languages-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(text.utf8).write(to: folder.appendingPathComponent(name))
        return try Languages(folder: folder.path)
    }

    @Test func language_operatorsFile_fallsBackToEnglish() throws {
        let languages = try languages(
            "nl.json",
            #"{"texts": {"Sign in": "Inloggen", "{n} hours": {"one": "{n} uur", "other": "{n} uren"}}}"#
        )
        let dutch = languages.best([], accepted: "nl-BE")
        #expect(dutch.text("Sign in") == "Inloggen" && dutch.text("Sign out") == "Sign out")
        #expect(
            dutch.text("{n} hours", count: 1) == "1 uur"
                && dutch.text("{n} hours", count: 3) == "3 uren")
    }

    /// The rules of Polish, from CLDR.
    @Test func plural_rulesOfAnOperator_areThoseOfTheFile() throws {
        let languages = try languages(
            "pl.json",
            """
            {"plural": {"one": "n = 1", "few": "n % 10 = 2..4 and n % 100 != 12..14",
                "many": "n != 1 and n % 10 = 0..1 or n % 10 = 5..9 or n % 100 = 12..14"},
            "texts": {"{n} days": {"one": "{n} dzień", "few": "{n} dni (few)", "many": "{n} dni (many)", "other": "{n} dnia"}}}
            """)
        let polish = languages.best(["pl"], accepted: nil)
        let seen = [0, 1, 2, 5, 12, 22, 101, 104].map { polish.text("{n} days", count: $0) }
        #expect(
            seen == [
                "0 dni (many)", "1 dzień", "2 dni (few)", "5 dni (many)", "12 dni (many)",
                "22 dni (few)", "101 dni (many)",
                "104 dni (few)",
            ])
    }

    @Test(arguments: [
        ("fr.json", "[]", "not a JSON object"),
        ("fr.json", #"{"texts": {"Hi {a}": "Salut"}}"#, "placeholders differ"),
        ("fr.json", #"{"texts": {"Hi": "<script>"}}"#, "placeholders differ"),
        ("Fr.json", "{}", "must be named"),
        ("en.json", "{}", "must be named"), ("fr.json", #"{"texts": {"Hi": 1}}"#, "neither a text"),
        ("fr.json", #"{"texts": {}, "direction": "up"}"#, "direction must be"),
        ("fr.json", #"{"texts": {}, "x": 1}"#, "not known"),
        ("fr.json", #"{"texts": {}, "plural": 1}"#, "plural must"),
        ("fr.json", #"{"texts": {}, "plural": {"other": "n = 1"}}"#, "plural must"),
        ("fr.json", #"{"texts": {}, "plural": {"one": "n % 0 = 1"}}"#, "plural must"),
        ("fr.json", #"{"texts": {}, "plural": {"one": "n = 2..1"}}"#, "plural must"),
        ("fr.json", #"{"texts": {}, "plural": {"one": "n = 1 and"}}"#, "plural must"),
        ("fr.json", #"{"texts": {}, "plural": {"one": ""}}"#, "plural must"),
        // An unfinished tag would continue in the page.
        ("fr.json", #"{"texts": {"Hi": "<img src=x alt="}}"#, "placeholders differ"),
        ("fr.json", #"{"texts": {"Hi": "a }} b"}}"#, "placeholders differ"),
        // Of two texts with the same key it is unclear which one counts; plurals are checked too.
        ("fr.json", #"{"texts": {"Sign in": "a", "Sign  in": "b"}}"#, "twice"),
        ("fr.json", #"{"texts": {"{n} hours": {"one": 1, "other": "{n} h"}}}"#, "plural form"),
        ("fr.json", #"{"texts": {"{n} hours": {"on": "h", "other": "{n} h"}}}"#, "plural form"),
        ("fr.json", #"{"texts": {"{n} hours": {"other": "h"}}}"#, "placeholders differ"),
        (
            "fr.json", #"{"texts": {"{n} hours": {"one": "<b>", "other": "{n} h"}}}"#,
            "placeholders differ"
        ),
    ]) func catalogue_unusable_isRefusedWithReason(
        _ name: String, _ text: String, _ expected: String
    ) {
        #expect {
            _ = try languages(name, text)
        } throws: {
            "\($0)".contains(expected)
        }
    }

    /// The size is checked before the file is read: a special file may have no end.
    @Test func language_specialOrLargeFile_isRefused() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-languages-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("nl.json").path
        func refused() -> Bool {
            defer { try? FileManager.default.removeItem(atPath: path) }
            do { _ = try Languages(folder: folder.path) } catch {
                return error.message.hasPrefix("is not a file")
            }
            return false
        }
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/null")
        #expect(refused())
        try #require(mkfifo(path, 0o600) == 0)
        #expect(refused())
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(refused())
        try Data(repeating: 0x20, count: 1_000_001).write(to: URL(fileURLWithPath: path))
        #expect(refused())
        let real = folder.deletingLastPathComponent().appendingPathComponent(
            "\(folder.lastPathComponent).json")
        defer { try? FileManager.default.removeItem(at: real) }
        try Data(#"{"texts": {"Sign in": "Inloggen"}}"#.utf8).write(to: real)
        try FileManager.default.createSymbolicLink(
            at: URL(fileURLWithPath: path), withDestinationURL: real)
        #expect(
            try Languages(folder: folder.path).best(["nl"], accepted: nil).text("Sign in")
                == "Inloggen")
    }

    @Test func language_counts_usePluralForms() throws {
        let languages = try Languages.builtIn()
        func minutes(_ tag: String, _ count: Int) -> String {
            languages.best([tag], accepted: nil).text("{n} minutes", count: count)
        }
        #expect(minutes("de", 1) == "1 Minute" && minutes("de", 20) == "20 Minuten")
        #expect(minutes("fr", 0) == "0 minute" && minutes("fr", 2) == "2 minutes")
        #expect(
            minutes("ar", 3) == "3 دقائق" && minutes("ar", 11) == "11 دقيقة"
                && minutes("ar", 2) == "دقيقتين")
        #expect(minutes("ja", 20) == "20 分間" && minutes("en", 20) == "20 minutes")
    }

    /// The search for placeholders gives the same result as the regular expression.
    @Test func catalogue_placesOfText_matchTheExpression() {
        let pattern = /\{\{?[^}]*\}?\}|<[^>]*>/
        var texts = [""]
        var count = 0
        for _ in 0..<5 {
            texts = texts.flatMap { text in ["{", "}", "<", ">", "é"].map { text + $0 } }
            for text in texts {
                let wanted = text.matches(of: pattern).map { String($0.output) }.sorted()
                #expect(Catalogue.places(text) == wanted, "\(text)")
                count += wanted.count
            }
        }
        #expect(count > 1_000)
    }
}
