// Complaints of feedback loops (RFC 5965): counted once, for the account that the message was
// sent to, and never lost.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ComplaintTests {
    private let fixture = Fixture(evidence: .init())
    private static let today = UInt64(Fixture.now / 86_400)

    private func path(of account: RelayAccount = Fixture.anna, nonce: UInt64 = 1) -> String {
        fixture.engine.tokens.forwardReturnPath(
            account: account.number, sender: AddrSpec(localPart: "bounce", domain: "app.example"),
            nonce: nonce,
            expiryDay: Self.today + 14
        ).localPart + "@relay.example"
    }

    private func reverse(of account: RelayAccount = Fixture.anna) -> String {
        fixture.engine.tokens.reverse(
            account: account.number,
            correspondent: AddrSpec(localPart: "news", domain: "app.example")
        ).localPart + "@relay.example"
    }

    /// A report in the form of providers, about a message with this header section.
    private static func report(
        _ fields: String = "", about header: String = "Subject: News\r\n", padding: Int = 0
    ) -> String {
        """
        From: fbl@provider.example\r\nSubject: complaint\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/report; report-type=feedback-report;\r\n boundary="b"\r\n\r\n\
        --b\r\n\r\nThis is an email abuse report.\(String(repeating: "\r\n .", count: padding))\r\n\
        --b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nUser-Agent: X/1\r\nVersion: 1\r\n\(fields)\r\n\
        --b\r\nContent-Type: message/rfc822\r\n\r\n\(header)\r\nBuy now\r\n--b--\r\n
        """
    }

    private func reasons(_ answer: Fixture.Response) -> [String] {
        answer.decision.reasons.map { "\($0.code): \($0.detail)" }
    }

    @Test(arguments: ["", "fbl@provider.example"])
    func complaint_atAReturnPath_isCountedOnce(from sender: String) throws {
        for _ in 0..<2 {
            let answer = fixture.play(from: sender, to: [path()], message: Self.report())
            #expect(answer.decision.outcome == .discard && answer.decision.modifications.isEmpty)
        }
        #expect(fixture.directory.complaints == [Fixture.anna.number])
        // Another message of the same team to the same user.
        _ = fixture.play(from: sender, to: [path(nonce: 2)], message: Self.report())
        #expect(fixture.directory.complaints.count == 2)
        #expect(fixture.directory.counted(.inboxBounced) == 0)
    }

    @Test func complaint_aboutAReply_isNotCounted() {
        let token = fixture.engine.tokens.replyReturnPath(
            account: Fixture.anna.number, recipients: [], nonce: 1, expiryDay: Self.today + 14)
        let answer = fixture.play(
            from: "", to: [token.localPart + "@relay.example"], message: Self.report())
        #expect(reasons(answer) == ["return-path-discarded: complaint about a reply"])
        #expect(fixture.directory.complaints.isEmpty)
    }

    /// Providers omit more or less of the message, and write to the address that the operator
    /// registered.
    @Test(arguments: ["Original-Mail-From", "Return-Path", "From"])
    func complaint_toTheOperator_isCountedAndUnchanged(by name: String) {
        let report =
            switch name {
            case "Original-Mail-From": Self.report("Original-Mail-From: <\(path())>\r\n")
            case "Return-Path":
                Self.report(about: "Return-Path: <\(path())>\r\nFrom: x@elsewhere.example\r\n")
            default: Self.report(about: "From: \"News\" <\(reverse())>\r\n")
            }
        let plain = fixture.play(
            from: "fbl@provider.example", to: ["abuse@relay.example"],
            message: "From: x@y.example\r\n\r\n")
        for _ in 0..<2 {
            let answer = fixture.play(
                from: "fbl@provider.example", to: ["abuse@relay.example"], message: report)
            #expect(
                answer.decision.outcome == .relay
                    && answer.decision.modifications == plain.decision.modifications)
            #expect(answer.decision.reasons.map(\.code) == [.operatorMail, .complaint])
        }
        #expect(fixture.directory.complaints == [Fixture.anna.number])
    }

    /// Only the inbox's side knows a return path or a reverse address, so no one else can complain
    /// in a user's name.
    @Test(arguments: [
        "annarelay2@relay.example", "x@elsewhere.example",
        "xm" + String(repeating: "a", count: 40) + "@relay.example", "<>", "",
    ])
    func complaint_withoutOurToken_isOperatorMail(about address: String) {
        let report = Self.report(
            "Original-Mail-From: \(address)\r\n", about: "From: \(address)\r\n")
        let answer = fixture.play(
            from: "fbl@provider.example", to: ["abuse@relay.example"], message: report)
        #expect(
            answer.decision.reasons.map(\.code) == [.operatorMail]
                && answer.decision.outcome == .relay)
        #expect(fixture.directory.complaints.isEmpty)
    }

    @Test func complaint_withoutReportType_isOperatorMail() {
        let report = Self.report("Original-Mail-From: <\(path())>\r\n")
            .replacing("multipart/report; report-type=feedback-report", with: "multipart/mixed")
        let answer = fixture.play(
            from: "fbl@provider.example", to: ["abuse@relay.example"], message: report)
        #expect(answer.decision.reasons.map(\.code) == [.operatorMail])
        #expect(fixture.directory.complaints.isEmpty && fixture.engine.replyMemory.inUse == 0)
    }

    @Test func complaint_tooLargeForMemory_isOperatorMail() {
        let small = Fixture(evidence: .init(), replyMemory: 4_000_000)
        let report = Self.report("Original-Mail-From: <\(path())>\r\n", padding: 200_000)
        let answer = small.play(
            from: "fbl@provider.example", to: ["abuse@relay.example"], message: report)
        #expect(
            answer.decision.outcome == .relay
                && answer.decision.reasons.map(\.code) == [.operatorMail])
    }

    /// A report at a return path has no other recipient, so it waits. The operator's mail never
    /// waits.
    @Test func complaint_storeAway_isDeferredOrRelayed() {
        let (path, report) = (path(), Self.report("Original-Mail-From: <\(path())>\r\n"))
        fixture.directory.goDown()
        let direct = fixture.play(from: "", to: [path], message: Self.report())
        guard case .refuse(let refusal) = direct.decision.outcome, refusal.isTemporary else {
            Issue.record("\(direct.decision.outcome)")
            return
        }
        let answer = fixture.play(
            from: "fbl@provider.example", to: ["abuse@relay.example"], message: report)
        #expect(
            answer.decision.outcome == .relay
                && reasons(answer)[1].hasPrefix("complaint: not written down"))
    }

    /// Feedback loops also report that a message is not spam, or a failed check of it. People also
    /// write about abuse.
    @Test(arguments: ["not-spam", "auth-failure", "opt-out", "virus", "other"])
    func feedback_ofAnotherKind_isNotCounted(_ type: String) {
        let report = Self.report("Original-Mail-From: <\(path())>\r\n").replacing(
            "Feedback-Type: abuse", with: "Feedback-Type: " + type)
        let answer = fixture.play(
            from: "fbl@provider.example", to: ["abuse@relay.example"], message: report)
        #expect(reasons(answer).last == "complaint: of another kind")
        _ = fixture.play(from: "", to: [path()], message: report)
        let prose =
            "From: a@b.example\r\nSubject: x\r\n\r\nThis is an email abuse complaint about you.\r\n"
        #expect(fixture.play(from: "", to: [path()], message: prose).decision.outcome == .discard)
        guard
            case .refuse = fixture.play(from: "a@b.example", to: [path()], message: prose).decision
                .outcome
        else {
            Issue.record("a person's letter to a return path is refused")
            return
        }
        #expect(fixture.directory.complaints.isEmpty)
    }
}
