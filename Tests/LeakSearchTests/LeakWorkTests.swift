// The work of the check grows no faster than the message: counted, and not timed.

import Testing

@testable import LeakSearch

@Suite struct LeakWorkTests {
    private static let patterns: [String] = [
        "a", "@", "a@a", "a@a.example ", "a=b", "=", "=?", "=?utf-8?q?", "=?a?b?YQ==?= ", "%",
        "%25", "%40", "&", "&#", "&#6",
        "&amp;", "<", "<a",
        "<!--", "<a href=\"", "<b>x</b>", "\\", "\\u0040", "(at)", "a-at-", "-40", ".", "a.",
        "a.example", "-", "_a", "a_b",
        "/a_b_example",
        "\"", "\"a\"@", "QUJD", "QUJD\n", "QUJD ", "4142", "41\n", "\n", "> ", ">\n", "://",
        "file://a/", "x/y.z", "zq7",
        "a\u{300}",
        "\u{200B}", "begin 644 a\n", "jane.k77x@home.example ", "jane.k77x ", "home.example=",
    ]

    @Test(arguments: patterns) func hostileText_costsALinearAmountOfWork(_ pattern: String) {
        func spent(_ kind: StretchMap.Kind?, _ count: Int) -> Int {
            let octets = Array(
                repeatElement(Array(pattern.utf8), count: count / pattern.utf8.count).joined())
            let work = WorkBudget(limit: .max)
            let content: StretchMap.Content =
                kind.map {
                    .text(
                        StretchMap.Form(isMarkup: true),
                        [StretchMap.Stretch(end: octets.count, kind: $0)])
                }
                ?? .file(.binary, number: 0)
            _ = LeakFixture.verdict(
                [LeakFixture.Part(octets: octets, content: content)], work: work)
            return work.spent
        }
        for kind in [StretchMap.Kind.typed, .neutral, nil] {
            let (once, twice) = (spent(kind, 4_000), spent(kind, 8_000))
            #expect(
                twice <= once * 5 / 2, "\(pattern) \(String(describing: kind)): \(once), \(twice)")
        }
    }

    /// The charge is the same for the user's address and for any other text of that length.
    @Test(arguments: [
        "jane.k77x@home.example", "jane.k77x", "jane_k77x_home_example",
        "amFuZS5rNzd4QGhvbWUuZXhhbXBsZQ==", "jane.k77x at home",
    ])
    func work_userOrStranger_isTheSame(_ text: String) {
        let words = (0..<20).map { "word\($0).x" }.joined(separator: " ")
        var stranger = LeakFixture.names
        stranger.inboxes = [
            LeakNames.Inbox(
                local: LeakFixture.octets("vctu.q41p"), domain: LeakFixture.octets("home.example"))
        ]
        stranger.words = [LeakFixture.octets("vctu.q41p")]
        let spent = [LeakFixture.names, stranger].map { names in
            let work = WorkBudget(limit: .max)
            _ = LeakFixture.verdict(
                [.text([("\(words) \(text)", .typed)])], names: names, work: work)
            return work.spent
        }
        #expect(spent[0] == spent[1] && spent[0] > 0)
    }

    @Test(arguments: patterns) func candidates_areFoundInALinearNumberOfSteps(_ pattern: String) {
        func steps(_ count: Int) -> Int {
            let octets = Array(
                repeatElement(Array(pattern.utf8), count: count / pattern.utf8.count).joined())
            let readings = Readings()
            return octets.withUnsafeBufferPointer { text in
                var addresses = AddressReading(readings.read(text, isMarkup: false))
                addresses.forEach { _ in }
                return addresses.steps
            }
        }
        #expect(steps(20_000) <= steps(10_000) * 5 / 2)
        #expect(steps(20_000) <= 400 * 20_000)
    }
}
