// Answers to invitations: rebuilt, with the data that the team requested and without other data of
// the user.

import Foundation
import InternetMessage
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct CalendarAnswerTests {
    /// The calendar that the team gets; nil if it is the user's own.
    private static func rebuilt(
        _ calendar: String, organizer: String? = "billing@app.example"
    ) -> String? {
        let names = Neutral.names()
        let neutraliser = Neutraliser(names: names)
        func isReverse(_ address: AddrSpec) -> Bool { names.isReverse(address) }
        return CalendarAnswer(Array(calendar.utf8), isReverse: isReverse).map {
            String(
                decoding: $0.rebuilt(
                    for: .init(
                        attendee: names.relayAddress,
                        organizer: organizer.flatMap { AddrSpec(envelope: $0) },
                        correspondent: names.correspondent, isReverse: isReverse,
                        neutral: { neutraliser.rewrite($0) ?? $0 })), as: UTF8.self)
        }
    }

    private static func lines(_ text: String) -> [Substring] {
        unfold(text).split(separator: "\r\n")
    }
    private static func unfold(_ text: String) -> String {
        text.replacing("\r\n ", with: "").replacing("\r\n\t", with: "")
    }

    private static func answer(_ properties: [String], method: String = "REPLY") -> String {
        (["BEGIN:VCALENDAR", "PRODID:-//x", "VERSION:2.0", "METHOD:\(method)", "BEGIN:VEVENT"]
            + properties + [
                "END:VEVENT", "END:VCALENDAR",
            ])
            .map { $0 + "\r\n" }.joined()
    }

    // MARK: What is written

    @Test func answer_ofAProgram_isWrittenAnew() throws {
        let text = try #require(
            Self.rebuilt(
                Self.answer([
                    "DTSTART:20251201T090000Z", "DTEND;TZID=\"Europe/Berlin\":20251201T100000",
                    "DTSTAMP:20251121T050000Z",
                    "ORGANIZER;CN=Billing:mailto:\(Neutral.reverse())@relay.example",
                    "UID:7kuk@app.example", "SEQUENCE:2",
                    "ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CN=jane.k77x@ho\r\n me.example;X-NUM-GUESTS=0:mailto:jane.k77x@home.example",
                    "DESCRIPTION:See https://x.example/?u=jane%40home.example",
                    "X-OWNER:mailto:jane.k77x@home.example",
                    "LOCATION:Jane's",
                    "SUMMARY;LANGUAGE=de:Meeting\\, with jane.k77x@home.example\\nand more",
                    "COMMENT:C:\\\\Users\\\\jane\\\\x",
                    "REQUEST-STATUS:2.0;Success;jane.k77x@home.example",
                ])))
        #expect(
            Self.lines(text) == [
                "BEGIN:VCALENDAR", "PRODID:-//Postern//Relay//EN", "VERSION:2.0", "METHOD:REPLY",
                "BEGIN:VEVENT",
                "DTSTART:20251201T090000Z", "DTEND;TZID=Europe/Berlin:20251201T100000",
                "DTSTAMP:20251121T050000Z",
                "ORGANIZER:mailto:billing@app.example", "UID:7kuk@app.example", "SEQUENCE:2",
                "ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED:mailto:annarelay2@relay.example",
                "SUMMARY:Meeting\\, with [address]\\nand more", "COMMENT:[path]",
                "REQUEST-STATUS:2.0;Success", "END:VEVENT",
                "END:VCALENDAR",
            ], "\(text)")
        #expect(text.split(separator: "\r\n").allSatisfy { $0.utf8.count <= 75 })
    }

    /// Google answers with the plain address of the first invitation.
    @Test func organizer_thatIsNoReverseAddress_isTheOneTheAnswerGoesTo() throws {
        let calendar = Self.answer([
            "ORGANIZER:mailto:billing@elsewhere.example", "UID:1",
            "ATTENDEE;PARTSTAT=DECLINED:mailto:jane.k77x@home.example",
        ])
        #expect(
            try #require(Self.rebuilt(calendar)).contains(
                "ORGANIZER:mailto:billing@app.example\r\n"))
        #expect(try !#require(Self.rebuilt(calendar, organizer: nil)).contains("ORGANIZER"))
    }

    @Test func attendee_isTheOneWhoAnswers_byTheFormAlone() throws {
        let calendar = Self.answer([
            "ATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:jane.k77x@home.example",
            "ATTENDEE;PARTSTAT=TENTATIVE:mailto:anyone@other.example",
            "ATTENDEE;PARTSTAT=ACCEPTED:mailto:\(Neutral.reverse())@relay.example", "UID:1",
        ])
        let text = try #require(Self.rebuilt(calendar))
        #expect(
            Self.lines(text).filter { $0.hasPrefix("ATTENDEE") } == [
                "ATTENDEE;PARTSTAT=TENTATIVE:mailto:annarelay2@relay.example"
            ])
    }

    @Test func timezone_keepsItsRules() throws {
        let zone = [
            "BEGIN:VTIMEZONE", "TZID:W. Europe Standard Time", "X-LIC-LOCATION:Europe/Berlin",
            "BEGIN:STANDARD",
            "DTSTART:16010101T030000",
            "TZOFFSETFROM:+0200", "TZOFFSETTO:+0100", "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10",
            "TZNAME:CET", "END:STANDARD",
            "END:VTIMEZONE",
        ]
        let calendar =
            "BEGIN:VCALENDAR\r\nMETHOD:REPLY\r\n" + zone.joined(separator: "\r\n")
            + "\r\nEND:VCALENDAR\r\n"
        #expect(
            Self.lines(try #require(Self.rebuilt(calendar))).filter { zone.contains(String($0)) }
                == zone.filter { !$0.hasPrefix("X-") }.map { $0[...] })
    }

    // MARK: Whose it is

    @Test func calendar_ofTheUser_isNone() {
        #expect(
            Self.rebuilt(
                Self.answer(
                    ["UID:1", "ORGANIZER:mailto:jane.k77x@home.example"], method: "PUBLISH")) == nil
        )
        #expect(
            Self.rebuilt(
                Self.answer(
                    ["UID:1", "ORGANIZER:mailto:\(Neutral.reverse(Fixture.bob))@relay.example"],
                    method: "REQUEST"))
                == nil)
        #expect(
            Self.rebuilt(
                Self.answer(
                    ["UID:1", "ORGANIZER:mailto:\(Neutral.reverse())@relay.example"],
                    method: "REQUEST")) != nil)
        #expect(
            Self.rebuilt(
                "begin:vcalendar\nmethod:reply\nbegin:vevent\nuid:1\nend:vevent\nend:vcalendar\n")?
                .contains("uid:1")
                == false)
        #expect(
            Self.rebuilt(
                "begin:vcalendar\nmethod:reply\nbegin:vevent\nuid:1\nend:vevent\nend:vcalendar\n")?
                .contains("UID:1\r\n")
                == true)
    }

    // MARK: Pairs

    private static let places = [
        "ORGANIZER;CN=G:mailto:x@app.example",
        "ORGANIZER;SENT-BY=\"mailto:G\":mailto:x@app.example", "ORGANIZER:mailto:G",
        "ATTENDEE;CN=G:mailto:x@app.example",
        "ATTENDEE;CN=\"G\";PARTSTAT=ACCEPTED:mailto:G",
        "ATTENDEE;PARTSTAT=ACCEPTED;EMAIL=G:mailto:G",
        "ATTENDEE;DELEGATED-FROM=\"mailto:G\":mailto:y@x.example",
        "X-GUESS;X-P=G:G", "COMMENT:G", "SUMMARY:G", "SUMMARY;ALTREP=\"mailto:G\":L",
        "DESCRIPTION:G", "LOCATION:G", "CONTACT:G",
        "URL:mailto:G", "ATTACH:mailto:G",
        "UID:G", "UID:L", "RECURRENCE-ID;TZID=G:20251101T100000", "DTSTART;X-A=G:20251101T100000",
        "CATEGORIES:G", "RELATED-TO:G",
        "REQUEST-STATUS:3.7;Invalid;G",
        "BEGIN:VALARM\r\nACTION:EMAIL\r\nATTENDEE:mailto:G\r\nEND:VALARM",
    ]

    @Test(arguments: places, ["REPLY", "COUNTER", "REFRESH"])
    func rightAndWrongGuess_inEveryProperty_giveTheSame(
        place: String, method: String
    ) {
        func text(_ local: String, _ domain: String) -> String? {
            Self.rebuilt(
                Self.answer(
                    [
                        "UID:1", "ATTENDEE;PARTSTAT=ACCEPTED:mailto:jane.k77x@home.example",
                        place.replacing("G", with: "\(local)@\(domain)").replacing(
                            "L", with: local),
                    ],
                    method: method))?.replacing(local, with: "L").replacing(domain, with: "D")
        }
        #expect(
            text("jane.k77x", "home.example") == text("jane.k78x", "homf.example")
                && text("jane.k77x", "home.example") != nil)
    }

    // MARK: Public answers

    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func publicAnswers_keepWhatTheTeamAskedFor() throws {
        let folder = Folders.conformance.appending(path: "calendar/method-samples")
        var count = 0
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            let octets = [UInt8](try Data(contentsOf: folder.appending(path: name)))
            let source = Self.unfold(
                String(decoding: octets, as: UTF8.self).replacing("\r\n", with: "\n").replacing(
                    "\n", with: "\r\n"))
            guard source.contains("METHOD:REPLY") || source.contains("METHOD:COUNTER"),
                source.contains("BEGIN:VCALENDAR"),
                // Excludes the templates of a test suite, which contain variables.
                !source.contains("$")
            else { continue }
            count += 1
            let text = try #require(Self.rebuilt(source), "\(name)")
            let (old, new) = (Self.lines(source), Self.lines(text))
            for name in [
                "UID:", "SEQUENCE:", "DTSTAMP:", "RECURRENCE-ID", "DTSTART", "BEGIN:VEVENT",
                "METHOD:",
            ] {
                #expect(
                    Set(old.filter { $0.hasPrefix(name) }).isSubset(of: Set(new)), "\(name) \(text)"
                )
            }
            for line in new where line.contains("@") && !line.hasPrefix("UID:") {
                #expect(
                    line.hasSuffix("annarelay2@relay.example")
                        || line.hasSuffix("billing@app.example"), "\(line)")
            }
            for state in ["ACCEPTED", "DECLINED", "TENTATIVE"]
            where old.contains(where: {
                $0.hasPrefix("ATTENDEE") && $0.contains("PARTSTAT=\(state)")
            }) {
                #expect(new.contains { $0.hasPrefix("ATTENDEE") && $0.contains("PARTSTAT=") })
            }
        }
        #expect(count >= 5)
    }

    // MARK: Hostile ones

    @Test(
        .timeLimit(.minutes(2)),
        arguments: [
            "BEGIN:VEVENT\r\n", "END:VEVENT\r\n", "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n",
            "ATTENDEE:mailto:a@b.example\r\n",
            "A;B=\"", "A;B=,", "A;B=mailto:", ":", ";", "X\r\n ",
        ])
    func hostileCalendar_isShort(unit: String) throws {
        let text = "METHOD:REPLY\r\n" + String(repeating: unit, count: 60_000 / unit.utf8.count)
        #expect(try #require(Self.rebuilt(text)).utf8.count < 10_000)
    }
}
