// A word does not end at the end of a window of the leak check: the next text may make it another
// address.

import HostileMail
import InternetMessage
import LeakSearch
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct WindowEndTests {
    private static let engine = Fixture(evidence: .init()).engine
    private static func names(_ inboxes: [String]) -> ReplyNames {
        ReplyNames(
            engine: engine,
            account: Fixture.account(1, "annarelay2", team: "app.example", inboxes: inboxes),
            message: HeaderSection(),
            envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
    }

    private static let inboxes = ["anna.second@home.example", "max.k77x@gmail.com"]
    private static let allFiller: [UInt8] = (0..<270_000).map {
        $0 % 10 == 9 ? 0x20 : 0x61 + UInt8($0 % 7)
    }

    /// The content that the leak check reads in windows, with the octets of one window.
    enum Content: Int, CaseIterable, Sendable {
        case typed = 262_144
        case file = 65_536

        var window: Int { rawValue }
    }
    private static func filler(_ count: Int) -> [UInt8] { Array(allFiller.prefix(count)) }

    private static func finds(_ text: [UInt8], as content: Content) -> Bool {
        switch content {
        case .typed: TypedLeak.isFound(text, of: names(inboxes))
        case .file:
            FileSearch(LeakNames(names(inboxes)), work: WorkBudget(limit: .max)).finds(
                in: text[...], .binary)
        }
    }

    private static func text(_ words: String, endingAt end: Int, then rest: String) -> [UInt8] {
        filler(end - words.utf8.count - 1) + [0x20] + Array(words.utf8) + Array(rest.utf8)
            + filler(3_000)
    }

    /// A window ends within another person's address, and contains only the part that equals the
    /// user's. The reply must not be refused with `550 5.7.7 leak-incident`.
    @Test(arguments: [
        ("anna.second", "@other.example "), ("anna.second", ".smith@other.example "),
        ("anna.secon", "ds@other.example "),
        ("anna.second@home.example", ".org "), ("anna.second@home.example.", "org "),
        ("write%20to%20anna.second", "@other.example "), ("max.k77x@gmail.com", "pany.example "),
        ("m.axk77x@gmail.com", "munity.example "),
    ])
    func leakCheck_otherAddressAcrossWindows_findsNothing(words: String, rest: String) {
        for content in Content.allCases {
            for end in [40_000] + [-11, -1, 0, 1].map({ content.window + $0 }) {
                let isFound = Self.finds(Self.text(words, endingAt: end, then: rest), as: content)
                #expect(!isFound, "\(content) \(end)")
            }
        }
    }

    @Test(
        arguments: [
            "anna.second", "anna.second@home.example", "anna%2Esecond@home.example",
            "anna.sec&#111;nd@home.example",
            "max.k77x@gmail.com",
            "ma.xk77x@gmail.com", "anna.second+a@home.example",
            "annarelay2 anna=2Esecond=\r\n@home.example",
            "home.example=anna.second",
        ], ["", ". ", "\r\n--b"])
    func leakCheck_usersAddressAtAnyWindowEnd_findsIt(words: String, rest: String) {
        for content in Content.allCases {
            for end in [-40, -17, -3, 0, 5].map({ content.window + $0 }) {
                // Not within the expectations, which would print the arrays.
                let isFound = Self.finds(
                    Self.text(words, endingAt: end, then: rest + " "), as: content)
                #expect(isFound, "\(content) \(end)")
                let text =
                    Self.filler(end - words.utf8.count - 1) + [0x20] + Array((words + rest).utf8)
                let isFoundAtTheEnd = Self.finds(text, as: content)
                #expect(isFoundAtTheEnd, "\(content) \(end)")
            }
        }
    }

    /// The next window alone contains too little of it to find it again.
    @Test(arguments: [450, 500, 550, 15_000])
    func leakCheck_longNameAtTheWindowEnd_findsIt(breaks: Int) {
        let words = "anna." + String(repeating: "=\r\n", count: breaks) + "second"
        let isFound = Self.finds(
            Self.text(words, endingAt: Content.typed.window, then: " and so on "), as: .typed)
        #expect(isFound)
    }

    /// Replies with an address of another person at the end of a window. They contain nothing of
    /// the user's.
    @Test(arguments: ["many small unknown charsets", "boundary with inbox, no part"])
    func reply_nearlyTheInbox_isNotRefused(name: String) throws {
        let message = try #require(
            Hostile.all(size: 2_000_000, reverse: "billing@relay.example").first { $0.name == name }
        )
        #expect(WorkBudgetTests.rewrite(message.header, message.body).refusal == nil)
    }

    /// A made-up message of such addresses; each window divides one.
    @Test func leakCheck_manyOtherAddresses_findsNothing() {
        let body = (0..<30_000).flatMap {
            Array("--anna.second@home.exampl\r\nanna.second@other\($0).example\r\n".utf8)
        }
        // As typed text, it has too many addresses, and the rewriting treats all of it as quoted.
        let isFound = Self.finds(body, as: .file)
        #expect(!isFound)
    }
}
