// More mentions in one forward than are known by their place: a right guess among them comes back as a wrong one does.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct MentionFloodTests {
    enum Quoting: CaseIterable { case marked, unmarked, attribution, name }

    /// More than are known by their place: each has up to four signs.
    private static let count = MentionCollector.maximumSigns

    /// What the team gets of an answer to a flood of guesses.
    private static func answer(_ guess: (Int) -> String, _ quoting: Quoting, typed: String = "Yes.") throws -> String {
        let lines = (0..<count).map { "Line \($0): \(guess($0)), or so we think, number \($0)." }
        let last = quoting == .attribution ? "On Friday, \(guess(count)) wrote:" : "We have \(guess(count)) as your last address."
        var settings = RelaySettings(relayDomains: ["relay.example"], authservID: "mx.relay.example")
        settings.limits.textAddressesPerDay = 2 * count
        let forward = Fixture(evidence: AuthenticationEvidence.signed("app.example"), settings: settings)
        let text =
            "From: Billing <billing@app.example>\r\nTo: annarelay2@relay.example\r\nSubject: Order\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n"
            + lines.joined(separator: "\r\n")
            + "\r\n--b\r\nContent-Type: text/plain; name=\"\(guess(count)).txt\"\r\n\r\n\(last)\r\n--b--\r\n"
        let sent = forward.play(from: "bounces@app.example", to: ["annarelay2@relay.example"], message: text)
        #expect(sent.decision.outcome == .relay)
        let author = forward.engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: AddrSpec(localPart: "billing", domain: "app.example"))
        let reverse = "\(author.localPart)@relay.example"
        let block = "From: Billing <\(reverse)>\r\nSent: Friday, 21 November 2025 06:00\r\nTo: Anna\r\nSubject: Order\r\n\r\n"
        let body =
            switch quoting {
            case .marked, .attribution: "Content-Type: text/plain\r\n\r\n\(typed)\r\n\r\n> \(last)\r\n"
            case .unmarked: "Content-Type: text/plain\r\n\r\nYes.\r\n\r\n\(block)\(last)\r\n"
            case .name:
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: attachment; filename=\"\(guess(count)).txt\"\r\n\r\nText\r\n--b--\r\n"
            }
        let reply = Fixture(
            directory: forward.directory,
            engine: forward.engine.authenticating(by: TestAuthenticator(evidence: AuthenticationEvidence.signed("inbox.example")))
        )
        let answer = "From: anna@inbox.example\r\nTo: \(reverse)\r\nSubject: Re: Order\r\nMIME-Version: 1.0\r\n\(body)"
        let back = reply.play(from: "anna@inbox.example", to: [reverse], message: answer)
        #expect(back.decision.outcome == .relay, "\(back)")
        let parsed = Message.parse(Array(answer.utf8))
        var out = ModifiedMessage(header: HeaderSection(), body: parsed.body, sender: "", recipients: [])
        out.apply(back.decision.modifications)
        return String(decoding: out.bytes, as: UTF8.self).replacing(/<a[ij][a-z2-7]{30,}@relay\.example>/, with: "<hidden>")
    }

    @Test(arguments: Quoting.allCases, ["", "+tag", "%40", "bare"])
    func beyondTheSignsThatAreKeptRightAndWrongStayAlike(quoting: Quoting, form: String) throws {
        func guess(_ local: String) -> (Int) -> String {
            { number in
                switch form {
                case "bare": local
                case "%40": "\(local)%40home.example"
                case "+tag": "\(local)+tag\(number)@home.example"
                default: "\(local)@home.example"
                }
            }
        }
        let right = try Self.answer(guess("anna.second"), quoting)
        let wrong = try Self.answer(guess("jane.fourth"), quoting)
        #expect(wrong.contains("jane.fourth"))
        #expect(right == wrong.replacing("jane.fourth", with: "anna.second"), "\(right)")
    }

    /// What the user types is hidden all the same.
    @Test func aFloodKeepsNothingThatTheUserTypes() throws {
        let sent = try Self.answer(
            { _ in "anna.second@home.example" }, .marked, typed: "Write to anna.second@home.example, please.")
        #expect(sent.contains("Write to annarelay2@relay.example, please."), "\(sent)")
    }
}
