// Looks at a page in a real browser: whether it fits, can be pressed and read, in every width, light and dark; keeps pictures.

import Foundation

/// The accessibility checks of axe-core, where `make test-tools` installed them.
package enum Axe {
    package static let script: String? = {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let libraries = root.appendingPathComponent(".build/test-tools/lib").path
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: libraries)) ?? []
        return versions.lazy.compactMap {
            try? String(contentsOfFile: "\(libraries)/\($0)/site-packages/axe_core_python/axe.min.js", encoding: .utf8)
        }.first
    }()

    /// What is wrong with the page that is open, by WCAG 2.2 A and AA and good practice: rule and element. `autocomplete-valid`
    /// does not know `webauthn` yet (HTML section 4.10.18.7.1).
    package static func findings(_ browser: Browser) throws -> [String] {
        guard let script else {
            print("axe-core is not installed (make test-tools): its rules were not tried")
            return []
        }
        let found = try browser.value(
            script + """
                ;return axe.run(document, {rules: {'autocomplete-valid': {enabled: false}}, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then(result =>
                    result.violations.flatMap(rule => rule.nodes.map(node => rule.id + ': ' + node.html)));
                """)
        return found as? [String] ?? ["axe gave no answer: \(found)"]
    }
}

/// One look at the page that is open.
package struct PageLook {
    private let browser: Browser

    package init(_ browser: Browser) { self.browser = browser }

    /// Where pictures go; `POSTERN_SCREENSHOTS=all` makes those of every width in every language.
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent(".build/screenshots")
    private static let all = ProcessInfo.processInfo.environment["POSTERN_SCREENSHOTS"] == "all"

    /// Pixels.
    package static let widths = [320, 390, 768, 1200]
    private static let usual = [(width: 320, dark: false), (390, true), (1200, false)]

    /// Pages that are compared with pictures of them.
    private static let compared: Set = [
        "me-door", "me-addresses-one", "me-address-written", "me-inboxes", "me-security", "me-data", "me-delete", "me-not-found",
        "mail-sign-in", "mail-refusals",
    ]

    /// What is wrong with it, in words: language and direction, what is wider than the window, what is too small to press, and
    /// what axe-core finds.
    package func findings(_ name: String, _ language: String) throws -> [String] {
        var findings: [String] = []
        func note(_ text: String) { findings.append("\(name) in \(language): \(text)") }
        let (tag, direction) = (
            try browser.value("return document.documentElement.lang") as? String,
            try browser.value("return getComputedStyle(document.body).direction") as? String
        )
        if tag != language || direction != (language == "ar" ? "rtl" : "ltr") {
            note("it says \(tag ?? "nothing"), \(direction ?? "nothing")")
        }
        let variants = Self.all ? Self.widths.flatMap { [(width: $0, dark: false), ($0, true)] } : Self.usual
        for (width, dark) in variants {
            let variant = "\(width)-\(dark ? "dark" : "light")"
            let picture = try browser.screenshot(width: width, dark: dark)
            try FileManager.default.createDirectory(at: Self.folder, withIntermediateDirectories: true)
            try picture.write(to: Self.folder.appendingPathComponent("\(name)-\(language)-\(variant).png"))
            let isWanted = Self.compared.contains(name) && language != "de" && variant != "320-light"
            let reference = ReferencePicture(browser, "\(name)-\(language)-\(variant)")
            if let finding = try reference.finding(
                picture, isWanted: isWanted && (!Self.all || Self.usual.contains { $0 == (width, dark) }))
            {
                note("\(variant): \(finding)")
            }
            let overflow = try browser.value("return document.documentElement.scrollWidth - \(width)") as? Int
            if overflow.map({ $0 > 0 }) != false { note("\(overflow ?? -1) pixels too wide at \(variant)") }
            if width != 390 || dark { for finding in try Axe.findings(browser) { note("\(variant): \(finding)") } }
        }
        let small = try browser.value(
            """
            return [...document.querySelectorAll('button, .button, .choice, select, nav a, .filters a')]
                .filter(e => e.offsetParent && e.getBoundingClientRect().height < 43.5 && !e.classList.contains('link'))
                .map(e => e.textContent)
            """)
        if language == "ar" {
            let left = try browser.value(
                """
                const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
                for (let node; node = walk.nextNode();)
                    if (!node.parentElement.closest('[lang=en]') && /\\b(the|is|are|was|your|you|not|of)\\b/.test(node.data)) found.push(node.data.trim());
                return found
                """)
            for text in left as? [String] ?? ["?"] { note("English was left: \(text)") }
        }
        for text in small as? [String] ?? ["?"] { note("too small to press: \(text)") }
        return findings
    }
}
