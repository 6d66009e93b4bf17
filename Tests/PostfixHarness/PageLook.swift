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
            return ["axe-core is not installed (make test-tools)"]
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

    /// A width in pixels, and the colours.
    private struct Variant: Hashable, CustomStringConvertible {
        let width: Int
        let dark: Bool
        var description: String { "\(width)-\(dark ? "dark" : "light")" }

        static let all = [320, 390, 768, 1200].flatMap { [Variant(width: $0, dark: false), Variant(width: $0, dark: true)] }
        static let narrow = Variant(width: 320, dark: false)
        /// What is seen of every page in English.
        static let usual = [narrow, Variant(width: 390, dark: true), Variant(width: 1200, dark: false)]
        /// Those of which there are references.
        static let compared = usual.filter { $0 != narrow }
    }

    /// Pages that are compared with pictures of them, in English and in Arabic.
    private static let compared: Set = [
        "me-door", "me-addresses-one", "me-address-written", "me-inboxes", "me-security", "me-data", "me-delete", "me-not-found",
        "mail-sign-in", "mail-refusals",
    ]

    /// What is wrong with it, in words: language and direction, what is wider than the window, what is too small to press, and
    /// what axe-core finds. In other languages than English in the narrowest window only, but for the compared pages.
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
        let isCompared = Self.compared.contains(name) && language != "de"
        let variants = Self.all ? Variant.all : isCompared || language == "en" ? Variant.usual : [.narrow]
        for variant in variants {
            let reference = isCompared && Variant.compared.contains(variant) ? "\(name)-\(language)-\(variant)" : nil
            if let finding = try look("\(name)-\(language)-\(variant).png", variant, reference) {
                note("\(variant): \(finding)")
            }
            let overflow = try browser.value("return document.documentElement.scrollWidth - \(variant.width)") as? Int
            if overflow.map({ $0 > 0 }) != false { note("\(overflow ?? -1) pixels too wide at \(variant)") }
            for finding in try Axe.findings(browser) { note("\(variant): \(finding)") }
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

    /// Shows a variant, makes the picture where one is wanted, and compares it.
    private func look(_ file: String, _ variant: Variant, _ reference: String?) throws -> String? {
        guard Self.all || reference != nil else {
            try browser.show(width: variant.width, dark: variant.dark)
            return nil
        }
        let picture = try browser.screenshot(width: variant.width, dark: variant.dark)
        try FileManager.default.createDirectory(at: Self.folder, withIntermediateDirectories: true)
        try picture.write(to: Self.folder.appendingPathComponent(file))
        return try reference.flatMap { try ReferencePicture(browser, $0).finding(picture) }
    }
}
