// Properties of a page that a program can check: its language, its headings, its labels, and the
// contrast of its colours.

import Accounts
import Foundation
import Support
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct AccessibilityTests {
    private func pages(_ fixture: PortalFixture) async throws -> [(String, String)] {
        let anna = Browser(fixture)
        var pages: [(String, String)] = []
        func take(_ name: String) { pages.append((name, anna.page.text)) }
        try await anna.get("/me/sign-in")
        take("sign-in")
        try await anna.submit("/me/sign-in", ["email": "nothing"])
        take("sign-in, wrong")
        try await anna.get("/me/sent")
        take("sent")
        try await anna.get("/me/sign-in/" + String(repeating: "a", count: 32))
        take("link")
        try await anna.get("/me/sign-in")
        try await anna.submit("/me/sign-in", ["email": "anna@home.example"])
        let link = try fixture.link("anna@home.example")
        try await anna.get(link)
        take("sign-in link")
        try await anna.submit(link)
        for path in [
            "/me", "/me/addresses/1", "/me/addresses/1/apps/1", "/me/inboxes", "/me/security",
            "/me/data", "/me/data/read",
            "/me/delete",
            "/me/nothing",
            "/me/addresses/99",
        ] {
            try await anna.get(path)
            if anna.page.header("Content-Type").hasPrefix("text/html") { take(path) }
        }
        try await anna.get("/me/addresses/1")
        try await anna.submit("/me/addresses/1/write", ["correspondent": "x@soda.example"])
        take("write, wrong")
        try await anna.submit("/me/addresses/1/write", ["correspondent": "x@juice.example"])
        take("write")
        try await anna.get("/me/inboxes")
        try await anna.submit("/me/inboxes", ["email": "new@home.example"])
        let confirmation = try fixture.link("new@home.example")
        let number = try #require(try fixture.store.inboxes.inboxes(user: "anna").last?.number)
        try await anna.get("/me/inboxes")
        take("inboxes, one under way")
        try await anna.submit("/me/inboxes/\(number)/code", ["code": "1"])
        take("inboxes, wrong code")
        try await anna.get(confirmation)
        take("confirm")
        try await anna.submit(confirmation, token: false)
        take("confirmed")
        try await anna.get("/me/delete")
        try await anna.submit("/me/delete")
        take("deletion sent")
        let deletion = try fixture.link("anna@home.example")
        try await anna.get(deletion)
        take("delete now")
        try await anna.submit(deletion)
        try await anna.get("/me/goodbye")
        take("goodbye")
        return pages
    }

    private func attribute(_ name: String, _ tag: Substring) throws -> String? {
        try Regex("\\s\(name)=\"([^\"]*)\"").firstMatch(in: tag).map {
            String($0.output[1].substring ?? "")
        }
    }

    @Test func page_everyPathAndState_hasLabelledMarkup() async throws {
        try await PortalFixture.with { fixture in
            let pages = try await pages(fixture)
            #expect(pages.count >= 20)
            for (name, text) in pages {
                func count(_ part: String) -> Int { text.components(separatedBy: part).count - 1 }
                #expect(
                    text.contains("<html lang=\"en\">") && text.contains("width=device-width"),
                    "\(name)")
                #expect(
                    count("<h1") == 1 && count("<main") == 1 && count("<header") == 1
                        && count("<footer") == 1, "\(name)")
                #expect(
                    text.contains("<a class=\"skip\" href=\"#content\">")
                        && text.contains("id=\"content\""), "\(name)")
                let title = try #require(
                    text.firstMatch(of: /<title>([^<]+) – Fig &amp; Co<\/title>/))
                #expect(
                    !title.output.1.isEmpty && !text.contains("{{") && !text.contains("}}"),
                    "\(name)")

                // Headings do not skip a level.
                var level = 1
                for match in text.matches(of: /<h([1-6])/) {
                    let next = try #require(Int(match.output.1))
                    #expect(next <= level + 1, "\(name): h\(level) is followed by h\(next)")
                    level = next
                }
                // An id occurs once, and each reference to an id finds it.
                let ids = text.matches(of: /\sid="([^"]+)"/).map { String($0.output.1) }
                #expect(Set(ids).count == ids.count, "\(name): \(ids)")
                for match in text.matches(
                    of: /\s(?:aria-describedby|aria-labelledby|for)="([^"]+)"/)
                {
                    for id in match.output.1.split(separator: " ") {
                        #expect(ids.contains(String(id)), "\(name): there is no \(id)")
                    }
                }
                // Every field has a label, and every wrong one has an error text.
                for match in text.matches(of: /<input[^>]*>/)
                where try attribute("type", match.output) != "hidden" {
                    let id = try #require(try attribute("id", match.output))
                    #expect(text.contains("<label for=\"\(id)\">"), "\(name): \(id) has no label")
                    if match.output.contains("aria-invalid") {
                        #expect(
                            try attribute("aria-describedby", match.output)?.contains("problem")
                                == true, "\(name)")
                    }
                }
                // Buttons and links have words; different actions have different words.
                for match in text.matches(
                    of: /<(?:button|a)\b[^>]*>(.*?)<\/(?:button|a)>/.dotMatchesNewlines())
                {
                    let words = match.output.1.replacing(/<[^>]*>/, with: "").trimmingCharacters(
                        in: .whitespacesAndNewlines)
                    #expect(!words.isEmpty, "\(name): \(match.output.0)")
                }
                // Forms that change data use POST, and every opened element is closed.
                #expect(count("<form") == count("method=\"post\""), "\(name)")
                for element in [
                    "div", "form", "ul", "li", "section", "main", "p", "h1", "h2", "table", "tr",
                    "span", "button", "a", "code",
                ] {
                    let opened = text.matches(of: try Regex("<\(element)[ >]")).count
                    #expect(opened == count("</\(element)>"), "\(name): \(element)")
                }
            }
        }
    }

    // MARK: Colours

    /// Text on ground, each by the name of its variable. Below 4.5 : 1 (WCAG 2.2, 1.4.3) a page is
    /// hard to read; borders of fields and the focus need 3 : 1 (1.4.11).
    private static let pairs: [(String, String, Double)] = [
        ("text", "page", 4.5), ("text", "card", 4.5), ("text", "sunken", 4.5),
        ("quiet", "page", 4.5), ("quiet", "card", 4.5),
        ("quiet", "sunken", 4.5), ("accent", "page", 4.5), ("accent", "card", 4.5),
        ("accent", "tile", 4.5),
        ("accent-hover", "page", 4.5),
        ("accent-hover", "card", 4.5), ("accent-hover", "sunken", 4.5),
        ("on-accent", "accent", 4.5),
        ("on-accent", "accent-hover", 4.5),
        ("on-danger", "danger", 4.5), ("on-danger", "danger-hover", 4.5), ("on-text", "on-bg", 4.5),
        ("off-text", "off-bg", 4.5),
        ("wrong-text", "wrong-bg", 4.5), ("wrong-text", "card", 4.5), ("edge", "card", 3),
        ("edge", "page", 3),
        ("focus", "card", 3), ("focus", "page", 3),
    ]

    private func colours(_ css: Substring) -> [String: (Double, Double, Double)] {
        var colours: [String: (Double, Double, Double)] = [:]
        for match in css.matches(of: /--([a-z-]+): #([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2});/) {
            func part(_ text: Substring) -> Double { Double(Int(text, radix: 16) ?? 0) / 255 }
            colours[String(match.output.1)] = (
                part(match.output.2), part(match.output.3), part(match.output.4)
            )
        }
        return colours
    }

    private func luminance(_ colour: (Double, Double, Double)) -> Double {
        func linear(_ value: Double) -> Double {
            value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
    }

    @Test func style_lightAndDark_hasEnoughContrast() throws {
        let css = PortalStyle().css
        let dark = try #require(css.range(of: "@media (prefers-color-scheme: dark)"))
        let end = try #require(css[dark.upperBound...].range(of: "*, *::before"))
        for (name, colours) in [
            ("light", colours(css[..<dark.lowerBound])),
            ("dark", colours(css[dark.lowerBound..<end.lowerBound])),
        ] {
            for (text, ground, least) in Self.pairs {
                let (a, b) = (
                    luminance(try #require(colours[text])), luminance(try #require(colours[ground]))
                )
                let contrast = (max(a, b) + 0.05) / (min(a, b) + 0.05)
                #expect(contrast >= least, "\(name): \(text) on \(ground) is \(contrast)")
            }
        }
        // No colour is outside of the two lists.
        #expect(!css[end.lowerBound...].contains("#"))
    }

    /// The style sheet has all backgrounds against which an operator's colour is tested.
    @Test func style_containsEveryGroundOfAccentColours() {
        for ground in AccentColours.lightGrounds + AccentColours.darkGrounds {
            #expect(PortalStyle().css.contains("\(ground);"), "\(ground)")
        }
    }

    @Test func style_operatorsLooks_replacesColourAndLogo() throws {
        let colours = try #require(Colour("#7a1fa2").flatMap(AccentColours.init))
        let (own, ours) = (
            PortalStyle(
                PageLooks(colours: colours, logo: try AppIcon(png: AddressPageTests.png(side: 64)))),
            PortalStyle()
        )
        #expect(
            own.css.hasPrefix(ours.css) && own.css.contains("--accent: #7a1fa2;")
                && own.version != ours.version)
        #expect(
            own.mark.contains("/me/logo.png?v=\(own.version)") && own.tabIcon.path == "/me/logo.png"
        )
        #expect(ours.mark.contains("<svg") && ours.logo == nil)
    }

    @Test func style_definesEveryVariableItUses() {
        for match in PortalStyle().css.matches(of: /var\(--([a-z-]+)\)/) {
            #expect(PortalStyle().css.contains("--\(match.output.1): "))
        }
    }
}
