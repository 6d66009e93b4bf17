// The words of one language: English texts, and their translations. Pure.

import Support

/// Why a catalogue file cannot be used.
package struct CatalogueError: Error, Sendable, Hashable, CustomStringConvertible {
    package let file: String
    package let message: String
    package var description: String { "\(file): \(message)" }
}

/// One language. English texts are its keys; texts without a translation stay English.
package struct Catalogue: Sendable {
    /// RFC 5646, lower case, as in `de`.
    package let tag: String
    package let isRightToLeft: Bool
    private let texts: [String: String]
    /// Texts that depend on a number: by CLDR's plural category.
    private let plurals: [String: [String: String]]
    private let rules: PluralRules

    package static let english = Catalogue(
        tag: "en", isRightToLeft: false, rules: .standard, texts: [:],
        plurals: ["minutes", "hours", "days", "messages"].reduce(
            into: [
                "{n} senders blocked": [
                    "one": "{n} sender blocked", "other": "{n} senders blocked",
                ]
            ]
        ) {
            $0["{n} \($1)"] = ["one": "{n} \($1.dropLast())", "other": "{n} \($1)"]
        })

    private init(
        tag: String, isRightToLeft: Bool, rules: PluralRules, texts: [String: String],
        plurals: [String: [String: String]]
    ) {
        self.tag = tag
        self.isRightToLeft = isRightToLeft
        self.rules = rules
        self.texts = texts
        self.plurals = plurals
    }

    /// Reads a catalogue: `{"direction": "ltr" | "rtl", "plural": {"one": "n = 0..1"}, "texts":
    /// {"English": "…" | {"one": "…", "other": "…"}}}`. Throws for any other object, and for a
    /// translation with other placeholders than its English text.
    package init(tag: String, file: String, json: [UInt8]) throws(CatalogueError) {
        func refuse(_ message: String) -> CatalogueError {
            CatalogueError(file: file, message: message)
        }
        guard let object = try? StrictJSON.parseObject(json, limit: json.count),
            let entries = object["texts"]?.object
        else {
            throw refuse("is not a JSON object with texts")
        }
        for member in object.members where !["direction", "plural", "texts"].contains(member.name) {
            throw refuse("has a member that is not known: \(member.name)")
        }
        let direction = object["direction"]?.string ?? "ltr"
        guard direction == "ltr" || direction == "rtl" else {
            throw refuse("direction must be ltr or rtl")
        }
        var rules = PluralRules.standard
        if let plural = object["plural"] {
            guard let read = plural.object.flatMap({ PluralRules($0) }) else {
                throw refuse(
                    "plural must have rules as in \"one\": \"n % 10 = 1 and n % 100 != 11\"")
            }
            rules = read
        }
        var texts: [String: String] = [:]
        var plurals: [String: [String: String]] = [:]
        for entry in entries.members {
            let (english, value) = (entry.name, entry.value)
            let key = Self.key(english)
            guard texts[key] == nil, plurals[key] == nil else {
                throw refuse("twice, with other white space: \(english)")
            }
            if let text = value.string {
                guard Self.places(text) == Self.places(english), Self.isWhole(text) else {
                    throw refuse("placeholders differ from the English text: \(english)")
                }
                texts[key] = text
            } else if let forms = value.object, forms["other"]?.string != nil {
                plurals[key] = try Self.forms(forms, of: english, refuse)
            } else {
                throw refuse("neither a text nor plural forms with other: \(english)")
            }
        }
        self.init(
            tag: tag, isRightToLeft: direction == "rtl", rules: rules, texts: texts,
            plurals: plurals)
    }

    /// The forms of a text with a number. A form that writes the number in words, as some languages
    /// do for `two`, may leave out the placeholder.
    private static func forms(
        _ forms: JSONObject, of english: String, _ refuse: (String) -> CatalogueError
    ) throws(CatalogueError) -> [String: String] {
        let wanted = places(english)
        var texts: [String: String] = [:]
        for form in forms.members {
            guard PluralRules.categories.contains(form.name), let text = form.value.string else {
                throw refuse(
                    "a plural form that is not text, or not one of \(PluralRules.categories.joined(separator: ", ")): \(english)"
                )
            }
            let places = Self.places(text)
            guard places == wanted || places.isEmpty && form.name != "other", isWhole(text) else {
                throw refuse("placeholders differ from the English text: \(english)")
            }
            texts[form.name] = text
        }
        return texts
    }

    /// Whether every tag and every placeholder has its end: otherwise it would continue into the
    /// following text.
    private static func isWhole(_ text: String) -> Bool {
        var end = text.utf8.startIndex
        var outside: [Substring.UTF8View] = []
        for place in ranges(text) {
            outside.append(text.utf8[end..<place.lowerBound])
            end = place.upperBound
        }
        outside.append(text.utf8[end...])
        return !outside.joined().contains { "<>{}".utf8.contains($0) }
    }

    /// Whether the language has a translation of a text.
    package func knows(_ english: String) -> Bool {
        texts[Self.key(english)] != nil || plurals[Self.key(english)] != nil
    }

    /// The translation of a text, with values for its placeholders: `{name}`.
    package func text(_ english: String, _ values: [String: String] = [:]) -> String {
        Self.filled(texts[Self.key(english)] ?? english, values)
    }

    /// The translation of a text with a number, `{n}`.
    /// - Parameter written: the number as the language writes it.
    package func text(_ english: String, count: Int, written: String? = nil) -> String {
        let forms = plurals[Self.key(english)]
        let form = forms.flatMap { $0[rules.category(of: count)] ?? $0["other"] }
        return Self.filled(form ?? english, ["n": written ?? String(count)])
    }

    /// A template with every `{{#t}}…{{/t}}` in this language. Quotation marks in the words become
    /// references, because words may be in an attribute.
    package func localised(_ template: String) -> String {
        Self.parts(of: template).map {
            $0.isText ? (texts[Self.key($0.text)].map(Self.quoted) ?? $0.text) : $0.text
        }.joined()
    }

    /// Quotation marks of its tags stay.
    private static func quoted(_ text: String) -> String {
        text.split(separator: "<", omittingEmptySubsequences: false).enumerated().map {
            index, part in
            let end = index == 0 ? part.startIndex : part.firstIndex(of: ">") ?? part.startIndex
            return String(part[..<end]) + part[end...].replacing("\"", with: "&quot;")
        }.joined(separator: "<")
    }

    /// The texts of a template that are for people.
    package static func texts(of template: String) -> [String] {
        parts(of: template).filter(\.isText).map(\.text)
    }

    private static func parts(of template: String) -> [(text: String, isText: Bool)] {
        var result: [(text: String, isText: Bool)] = []
        var rest = template[...]
        while let start = rest.firstRange(of: "{{#t}}"),
            let end = rest[start.upperBound...].firstRange(of: "{{/t}}")
        {
            result.append((String(rest[..<start.lowerBound]), false))
            result.append((String(rest[start.upperBound..<end.lowerBound]), true))
            rest = rest[end.upperBound...]
        }
        return result + [(String(rest), false)]
    }

    /// A text may contain line breaks at any position.
    private static func key(_ text: String) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private static func filled(_ text: String, _ values: [String: String]) -> String {
        var result = ""
        var rest = text[...]
        while let start = rest.firstIndex(of: "{"), let end = rest[start...].firstIndex(of: "}") {
            let name = String(rest[rest.index(after: start)..<end])
            result += rest[..<start] + (values[name] ?? "{\(name)}")
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }

    /// Names in braces and tags, in alphabetical order. A translation has those of its English
    /// text.
    package static func places(_ text: String) -> [String] {
        ranges(text).map { String(text[$0]) }.sorted()
    }

    /// The positions of `{name}`, `{{name}}` and `<tag>`. A regular expression would take most of
    /// the time of a start.
    private static func ranges(_ text: String) -> [Range<String.Index>] {
        let octets = text.utf8
        var ranges: [Range<String.Index>] = []
        var rest = octets[...]
        let lastEnds = [UInt8(ascii: "}"), UInt8(ascii: ">")].map {
            octets.lastIndex(of: $0) ?? octets.startIndex
        }
        while let start = rest.firstIndex(where: {
            $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "<")
        }) {
            let isName = octets[start] == UInt8(ascii: "{")
            rest = octets[octets.index(after: start)...]
            let closing = isName ? UInt8(ascii: "}") : UInt8(ascii: ">")
            guard start < lastEnds[isName ? 0 : 1], let last = rest.firstIndex(of: closing) else {
                continue
            }
            var end = octets.index(after: last)
            if isName, octets[end...].first == closing { end = octets.index(after: end) }
            ranges.append(start..<end)
            rest = octets[end...]
        }
        return ranges
    }
}
