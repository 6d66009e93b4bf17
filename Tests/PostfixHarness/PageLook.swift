// Checks a page in a real browser: whether it fits, and can be used and read, in every width, light
// and dark. Keeps pictures.

import Foundation

/// The accessibility checks of axe-core, if `make test-tools` installed them.
package enum Axe {
    package static let script: String? = {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
        let libraries = root.appendingPathComponent(".build/test-tools/lib").path
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: libraries)) ?? []
        return versions.lazy.compactMap {
            try? String(
                contentsOfFile: "\(libraries)/\($0)/site-packages/axe_core_python/axe.min.js",
                encoding: .utf8)
        }.first
    }()

    /// The faults of the open page, by WCAG 2.2 A and AA and good practice: rule and element.
    /// `autocomplete-valid` does not yet support `webauthn` (HTML section 4.10.18.7.1).
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

/// One check of the open page.
package struct PageLook {
    private let browser: Browser

    package init(_ browser: Browser) { self.browser = browser }

    /// The folder for pictures; `POSTERN_SCREENSHOTS=all` makes those of every width in every
    /// language.
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent(".build/screenshots")
    private static let all = ProcessInfo.processInfo.environment["POSTERN_SCREENSHOTS"] == "all"

    /// A width in pixels, and the colours.
    private struct Variant: Hashable, CustomStringConvertible {
        let width: Int
        let dark: Bool
        var description: String { "\(width)-\(dark ? "dark" : "light")" }

        static let all = [320, 390, 768, 1200].flatMap {
            [Variant(width: $0, dark: false), Variant(width: $0, dark: true)]
        }
        static let narrow = Variant(width: 320, dark: false)
        /// The variants of every page in English.
        static let usual = [
            narrow, Variant(width: 390, dark: true), Variant(width: 1200, dark: false),
        ]
        /// The variants with references.
        static let compared = usual.filter { $0 != narrow }
    }

    /// Pages that are compared with reference pictures, in English and in Arabic.
    private static let compared: Set = [
        "me-door", "me-addresses-one", "me-address-written", "me-inboxes", "me-security", "me-data",
        "me-delete", "me-not-found",
        "me-second-factor", "me-new-factor",
        "mail-sign-in", "mail-refusals",
    ]

    /// The faults of the page, in words: language and direction, content that is wider than the
    /// window, controls that are too small, and findings of axe-core. In other languages than
    /// English, only the narrowest window is checked, except for the compared pages.
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
        let isCompared = Self.compared.contains(name) && ["en", "ar"].contains(language)
        let variants =
            Self.all ? Variant.all : isCompared || language == "en" ? Variant.usual : [.narrow]
        for variant in variants {
            let reference =
                isCompared && Variant.compared.contains(variant)
                ? "\(name)-\(language)-\(variant)" : nil
            if let finding = try look("\(name)-\(language)-\(variant).png", variant, reference) {
                note("\(variant): \(finding)")
            }
            let overflow =
                try browser.value("return document.documentElement.scrollWidth - \(variant.width)")
                as? Int
            if overflow.map({ $0 > 0 }) != false {
                note("\(overflow ?? -1) pixels too wide at \(variant)")
            }
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

    /// Shows a variant, makes the picture if one is wanted, and compares it.
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
