// Invitations: the user's acceptance in a calendar returns to the team through the relay, and never
// bypasses it.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct CalendarForwardTests {
    private static let invitation = """
        BEGIN:VCALENDAR\r
        METHOD:REQUEST\r
        BEGIN:VEVENT\r
        UID:4711@app.example\r
        ORGANIZER;CN=Eva;EMAIL=eva@app.example;SENT-BY="mailto:desk@app.example":mailto:eva@app.example\r
        ATTENDEE;RSVP=TRUE;CN=annarelay2@relay.example;EMAIL=annarelay2@relay.example:mailto:AnnaRelay2@relay.ex\r
         ample\r
        ATTENDEE;DELEGATED-FROM="mailto:a@app.example","mailto:b@app.example":MAILTO:max@app.example\r
        ATTENDEE;SENT-BY=mailto:desk@app.example;CUTYPE=ROOM:room@app.example\r
        ATTENDEE:urn:uuid:1\r
        CONTACT:Eva\\, mailto:eva@app.example\\nor by post\r
        X-ALT-DESC;FMTTYPE=text/html:<a href="mailto:eva@app.example?subject=x&amp;cc=max@app.example">x</a>\r
        DESCRIPTION:Write to eva@app.example\r
        END:VEVENT\r
        END:VCALENDAR\r

        """

    private static func unfold(_ text: String) -> String {
        text.replacing("\r\n ", with: "").replacing("\r\n\t", with: "")
    }

    @Test(arguments: [
        "text/calendar; charset=UTF-8; method=REQUEST", "application/ics; name=invite.ics",
        "text/x-vcalendar",
        "application/octet-stream; name=\"Invite.ICS\"",
    ])
    func invitation_forwarded_pointsToTheRelay(_ type: String) {
        for encoding in ["7bit", "base64", "quoted-printable"] {
            let coding = TransferEncoding.parse(encoding)
            let body = String(
                decoding: coding.encode(Array(Self.invitation.utf8)) ?? [], as: UTF8.self)
            let result = Forwarded(
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b\r\nContent-Type: \(type)\r\n"
                    + "Content-Disposition: attachment\r\nContent-Transfer-Encoding: \(encoding)\r\n\r\n\(body)\r\n--b--\r\n"
            )
            let part = MIMEPart.parse(
                header: HeaderSection([HeaderField("Content-Type", "multipart/mixed; boundary=b")]),
                body: Array(result.body.utf8)
            ).children.last
            let decoded =
                part.flatMap { coding.decode(Array(result.body.utf8)[$0.bodyRange]) }.map {
                    String(decoding: $0.bytes, as: UTF8.self)
                } ?? ""
            #expect(
                decoded.split(separator: "\r\n").allSatisfy {
                    $0.utf8.count <= 75 || Self.invitation.contains($0)
                })
            let (eva, max, desk) = (
                result.reverse("eva@app.example"), result.reverse("max@app.example"),
                result.reverse("desk@app.example")
            )
            let lines = Self.unfold(decoded).split(separator: "\r\n").map(String.init)
            let expected = [
                "ORGANIZER;CN=Eva;EMAIL=\(eva);SENT-BY=\"mailto:\(desk)\":mailto:\(eva)",
                "ATTENDEE;RSVP=TRUE;CN=annarelay2@relay.example;EMAIL=anna@inbox.example:mailto:anna@inbox.example",
                "ATTENDEE;DELEGATED-FROM=\"mailto:\(result.reverse("a@app.example"))\",\"mailto:\(result.reverse("b@app.example"))\":mailto:\(max)",
                "ATTENDEE;SENT-BY=mailto:\(desk);CUTYPE=ROOM:\(result.reverse("room@app.example"))",
                "ATTENDEE:urn:uuid:1", "CONTACT:Eva\\, mailto:\(eva)\\nor by post",
                "X-ALT-DESC;FMTTYPE=text/html:<a href=\"\(result.link("eva@app.example"))?subject=x&amp;cc=\(result.link("max@app.example").dropFirst(7))\">x</a>",
                "DESCRIPTION:Write to eva@app.example", "UID:4711@app.example",
            ]
            for line in expected { #expect(lines.contains(line), "\(encoding): \(line)") }
            #expect(lines.count == Self.unfold(Self.invitation).split(separator: "\r\n").count)
        }
    }

    @Test func calendarReply_userIsOrganizer_namesTheInbox() {
        let result = Forwarded(
            "Content-Type: text/calendar; method=REPLY\r\n\r\nMETHOD:REPLY\r\nORGANIZER:mailto:annarelay2@relay.example\r\nATTENDEE;PARTSTAT=ACCEPTED:mailto:eva@app.example\r\n"
        )
        let lines = Self.unfold(result.body).split(separator: "\r\n")
        #expect(lines.contains("ORGANIZER:mailto:anna@inbox.example"))
        #expect(lines.contains { $0.hasSuffix(":mailto:\(result.reverse("eva@app.example"))") })
    }

    // MARK: There and back

    /// The answers of real programs to an invitation, with the parts that they copy from it.
    private static func answers(organizer: String, attendee: String) -> [String: String] {
        [
            "Google": """
            BEGIN:VCALENDAR\r
            PRODID:-//Google Inc//Google Calendar 70.9054//EN\r
            METHOD:REPLY\r
            BEGIN:VEVENT\r
            ORGANIZER;CN=Eva:mailto:\(organizer)\r
            UID:4711@app.example\r
            ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CN=\(attendee);X-NUM-GUESTS=0:mailto:\(attendee)\r
            END:VEVENT\r
            END:VCALENDAR\r

            """,
            "Apple": """
            BEGIN:VCALENDAR\r
            PRODID:-//Apple Inc.//macOS 15.0//EN\r
            METHOD:REPLY\r
            BEGIN:VEVENT\r
            ATTENDEE;CN="Anna";CUTYPE=INDIVIDUAL;EMAIL="\(attendee)";PARTSTAT=ACCEPTED:mailto:\(attendee)\r
            ORGANIZER;CN="Eva";EMAIL="\(organizer)":mailto:\(organizer)\r
            END:VEVENT\r
            END:VCALENDAR\r

            """,
            "Outlook": """
            BEGIN:VCALENDAR\r
            METHOD:REPLY\r
            PRODID:Microsoft Exchange Server 2010\r
            BEGIN:VEVENT\r
            ATTENDEE;PARTSTAT=ACCEPTED;CN=Anna:mailto:\(attendee)\r
            ORGANIZER;CN=Eva:MAILTO:\(organizer)\r
            END:VEVENT\r
            END:VCALENDAR\r

            """,
            "Thunderbird": """
            BEGIN:VCALENDAR\r
            PRODID:-//Mozilla.org/NONSGML Mozilla Calendar V1.1//EN\r
            METHOD:REPLY\r
            BEGIN:VEVENT\r
            ORGANIZER;CN=Eva:mailto:\(organizer.replacing("=", with: "%3D"))\r
            ATTENDEE;PARTSTAT=ACCEPTED;ROLE=REQ-PARTICIPANT:mailto:\(attendee)\r
            END:VEVENT\r
            END:VCALENDAR\r

            """,
        ]
    }

    /// The team's copy of an answer that the user's calendar mails to the organizer.
    private static func answered(
        _ calendar: String, to organizer: String
    ) -> (code: String, body: String) {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let message =
            "From: Anna <anna@inbox.example>\r\nTo: \(organizer)\r\nSubject: Accepted: x\r\nMessage-ID: <a@inbox.example>\r\nMIME-Version: 1.0\r\n"
            + "Content-Type: text/calendar; charset=utf-8; method=REPLY\r\n\r\n\(calendar)"
        let decision = fixture.play(from: "anna@inbox.example", to: [organizer], message: message)
            .decision
        if case .refuse(let refusal) = decision.outcome {
            return ("\(refusal.reply.code) \(refusal.reason.detail)", "")
        }
        let pieces = decision.modifications.compactMap {
            if case .replaceBody(let pieces) = $0 { pieces } else { nil }
        }.first
        #expect(decision.modifications.contains(.addRecipient("<eva@app.example>")))
        return (
            "\(decision.outcome)",
            Self.unfold(pieces.map { String(decoding: $0.joined(), as: UTF8.self) } ?? calendar)
        )
    }

    /// Organizer and own attendee, as the user's program finds them in the forward.
    private static func found() throws -> (organizer: String, attendee: String) {
        let result = Forwarded("Content-Type: text/calendar; method=REQUEST\r\n\r\n" + invitation)
        let lines = unfold(result.body).split(separator: "\r\n")
        func address(_ name: String) throws -> String {
            let line = try #require(lines.first { $0.hasPrefix(name) })
            return String(try #require(line.split(separator: ":").last))
        }
        return (try address("ORGANIZER"), try address("ATTENDEE"))
    }

    @Test(arguments: ["Google", "Apple", "Outlook", "Thunderbird"])
    func calendarReply_ofKnownProgram_returnsThroughRelay(_ program: String) throws {
        let (organizer, attendee) = try Self.found()
        // The program knows its user by the address of the account.
        #expect(attendee == "anna@inbox.example")
        let calendar = try #require(Self.answers(organizer: organizer, attendee: attendee)[program])
        let (code, body) = Self.answered(calendar, to: organizer)
        #expect(code == "relay")
        #expect(
            body.lowercased().contains("mailto:eva@app.example")
                && body.contains("mailto:annarelay2@relay.example"))
        #expect(
            !body.contains("anna@inbox.example") && !body.contains(organizer.prefix { $0 != "@" }))
    }

    @Test(.enabled(if: Corpus.isThere, "no conformance data"))
    func calendarReply_publicCase_returnsThroughRelay() throws {
        let (organizer, attendee) = try Self.found()
        var count = 0
        for entry in Corpus.entries("calendar") {
            let text = String(decoding: Corpus.crlf(entry.bytes), as: UTF8.self)
            guard text.contains("METHOD:REPLY") else { continue }
            func addresses(_ name: String) -> Set<String> {
                Set(
                    Self.unfold(text).split(separator: "\r\n").filter { $0.hasPrefix(name) }
                        .compactMap { line in
                            // The value ends the line.
                            line.split(separator: ":").last.map(String.init)
                        }.filter { $0.contains("@") })
            }
            let (organizers, attendees) = (addresses("ORGANIZER"), addresses("ATTENDEE"))
            guard let theirs = organizers.first, organizers.count == 1, let own = attendees.first,
                attendees.count == 1,
                theirs != own
            else { continue }
            count += 1
            let calendar = Self.unfold(text).replacing(theirs, with: organizer).replacing(
                own, with: attendee)
            let (code, body) = Self.answered(calendar, to: organizer)
            #expect(
                code == "relay" && body.contains("eva@app.example")
                    && body.contains("annarelay2@relay.example"), "\(entry.name)")
            #expect(!body.contains(attendee), "\(entry.name)")
        }
        #expect(count >= 3)
    }

    @Test(.enabled(if: Corpus.isThere, "no conformance data"))
    func invitation_publicCase_hasNoOtherAddress() {
        var count = 0
        for entry in Corpus.entries("calendar") {
            let text = String(decoding: Corpus.crlf(entry.bytes), as: UTF8.self)
            let result = Forwarded("Content-Type: text/calendar; charset=utf-8\r\n\r\n" + text)
            #expect(result.code == "relay", "\(entry.name)")
            for line in Self.unfold(result.body).split(separator: "\r\n")
            where line.hasPrefix("ORGANIZER") || line.hasPrefix("ATTENDEE") {
                let line = line.lowercased()
                for range in line.ranges(of: "mailto:") {
                    let address = line[range.upperBound...].prefix { !"\";,: ".contains($0) }
                    guard address.contains("@") else { continue }
                    count += 1
                    #expect(
                        address.hasSuffix("@relay.example") || address == "anna@inbox.example",
                        "\(entry.name): \(line)")
                }
            }
        }
        #expect(count > 100)
    }
}
