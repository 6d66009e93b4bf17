// The ways in which a team could learn which of its guesses is right, one by one: a few pairs for
// each.

import PairTesting
import Testing

@Suite(.blocking) struct PairRowsTests {
    /// The text of the team, and the form of the answer.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        var places: [Place]
        var spellings: [Spelling] = [.plain]
        var shape = PairSpec.Shape.plain
        /// The beginnings of the ids of forms.
        var forms: [String]
        /// Whether the user answers to all.
        var isToAll = false
        /// Addresses of others that the user writes.
        var others = 0
        /// Other guesses of the team's, in the same mail.
        var crowd = 0
        /// Whether the team's own mail reveals the guess.
        var isOfForward = false
        /// The number of its pairs that differ. It may only decrease; 0 is the goal.
        var known = 0

        var testDescription: String { name }
    }

    private static let replies = [
        "gmail-web-reply", "outlook-", "apple-macos-reply", "thunderbird-",
    ]

    static let rows: [Row] = [
        Row(
            name: "A1 addresses in the text", places: [.many], forms: ["gmail-web-reply"],
            isOfForward: true, known: 0),
        Row(
            name: "A2 local parts in the text", places: [.many], spellings: [.local],
            forms: ["gmail-web-reply"],
            isOfForward: true, known: 0),
        Row(
            name: "A3 references, tags and comments", places: [.markup],
            spellings: [
                .numericAt, .hexAt, .namedAt, .allNumeric, .wordBreak, .markupComment, .bold, .shy,
                .span,
            ],
            shape: .markup, forms: replies),
        Row(
            name: "A4 properties of invitations",
            places: [
                .organizerName, .attendeeName, .calendarX, .calendarComment, .summary, .description,
                .location, .uid,
            ],
            spellings: [.plain, .local], shape: .invitation,
            forms: [
                "google-calendar-", "exchange-calendar-", "apple-calendar-",
                "thunderbird-calendar-", "rfc5546-",
            ]),
        Row(
            name: "A5 words of links",
            places: [.unsubscribeSubject, .unsubscribeBody, .unsubscribeAddress],
            spellings: [.plain, .local, .verp],
            forms: [
                "mailto-", "gmail-list-", "apple-list-", "outlook-list-", "thunderbird-mailto",
            ], known: 0),
        Row(
            name: "A6 authors", places: [.fromLocal, .replyToLocal],
            spellings: [.verp, .printable, .dashHex], forms: replies),
        Row(
            name: "A7 hidden parts of markup",
            places: [.hidden, .markupComment, .attribute, .style],
            spellings: [.percentDots, .printable, .percent, .base64, .hexadecimal], shape: .markup,
            forms: replies),
        Row(
            name: "A8 S/MIME", places: [.text], spellings: [.plain, .local], shape: .signed,
            forms: replies),
        Row(
            name: "A8 TNEF", places: [.text], spellings: [.plain, .local], shape: .outlook,
            forms: replies),
        Row(
            name: "A8 files", places: [.text], spellings: [.plain, .local], shape: .file,
            forms: replies),
        Row(
            name: "A9 long subjects", places: [.subjectLong, .subject],
            spellings: [.plain, .local],
            forms: ["exchange-external-subject-reply", "outlook-"]),
        Row(name: "A10 pictures", places: [.picture], shape: .markup, forms: replies),
        Row(
            name: "A11 parameters of parts",
            places: [.partName, .fileName, .boundary, .partDescription, .contentID],
            spellings: [.plain, .verp, .gateway, .local],
            forms: [
                "gmail-web-forward-attachment", "outlook-forward-attachment",
                "apple-macos-forward-attachment", "thunderbird-forward-attachment",
                "mutt-forward-attachment",
            ]),
        Row(
            name: "right guess in Cc, answered to all", places: [.cc, .ccName, .ccLocal, .replyTo],
            spellings: [.plain, .upper, .tagged, .verp, .local], forms: replies, isToAll: true),
        Row(
            name: "right guess in Cc, beside four and five addresses of others", places: [.cc],
            spellings: [.plain, .upper],
            forms: replies, isToAll: true, others: 4),
        Row(
            name: "unknown form, twenty addresses", places: [.text, .beginning, .end],
            spellings: [.plain, .upper, .tagged, .local],
            forms: ["pasted-no-form"], crowd: 20),
    ]

    @Test(arguments: rows) func row_rightOrWrong_bringsTheSameBack(row: Row) {
        let relay = PairRelay(forms: PairTests.forms)
        var (count, differing) = (0, 0)
        var example = ""
        for (form, known) in PairTests.forms.enumerated()
        where row.forms.contains(where: { known.id.utf8.starts(with: $0.utf8) }) && !known.isPartner
        {
            for place in row.places {
                for spelling in row.spellings where place.takes(spelling) {
                    for guess in 0..<3 {
                        let plant = Plant(
                            place, guess: guess, spelling: spelling, variant: UInt64(count % 9))
                        guard plant.isTelling, known.isCalendar == (row.shape == .invitation) else {
                            continue
                        }
                        // Returned files are a known limit.
                        if known.sendsText
                            || known.sendsFiles && [.signed, .outlook, .file].contains(row.shape)
                        {
                            continue
                        }
                        var pair = PairSpec(
                            seed: UInt64(count), form: form, shape: row.shape, plants: [plant],
                            needsUnsubscribe: known.isUnsubscribe)
                        count += 1
                        pair.isToAll = row.isToAll
                        pair.typesOthers = row.others
                        pair.crowd = row.crowd
                        guard
                            let difference = relay.differences(pair).found.first(where: {
                                $0.isOfForward == row.isOfForward
                            })
                        else { continue }
                        differing += 1
                        if example.isEmpty { example = "form \(known.id), \(plant): \(difference)" }
                    }
                }
            }
        }
        print(
            "row \(row.name): \(differing) of \(count) pairs differ\(example.isEmpty ? "" : "; \(example)")"
        )
        #expect(
            count > 0 && differing <= row.known,
            "\(row.name): \(differing) of \(count) differ: \(example)")
    }
}
