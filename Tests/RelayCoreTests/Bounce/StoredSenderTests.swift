// Reports to return paths with a stored sender: each leads to the right sender, and counts once for
// its message.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct StoredSenderTests {
    private static let relay = "annarelay2@relay.example"
    private static let day = UInt64(Fixture.now / 86_400) + 14

    private static func sender(_ number: Int) -> AddrSpec {
        AddrSpec(
            localPart: "bounce+of-the-list-of-customers-number-\(number)", domain: "app.example")
    }

    private static func forward(_ fixture: Fixture, from sender: AddrSpec) throws -> String {
        let decision = fixture.play(
            from: sender.wireForm, to: [relay],
            message: "From: billing@app.example\r\nTo: \(relay)\r\n\r\nHello\r\n"
        ).decision
        let paths = decision.modifications.compactMap {
            if case .changeSender(let path) = $0 { path } else { nil }
        }
        return String(try #require(paths.first).dropFirst().dropLast())
    }

    private static func report(_ fixture: Fixture, to path: String) -> RelayDecision {
        fixture.play(
            from: "", to: [path],
            message: """
                From: MAILER-DAEMON@mx.inbox.example\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
                --b\r\n\r\nSorry\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.inbox.example\r\n\r\n\
                Final-Recipient: rfc822; anna@inbox.example\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n--b--\r\n
                """
        ).decision
    }

    private static func recipients(_ decision: RelayDecision) -> [String] {
        decision.modifications.compactMap {
            if case .addRecipient(let path) = $0 { path } else { nil }
        }
    }

    /// Several messages of the same sender store its address only once.
    @Test func storedSender_severalMessages_isStoredOnce() throws {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let paths = try [1, 2, 1, 1, 2].map { try Self.forward(fixture, from: Self.sender($0)) }
        #expect(fixture.directory.storedCount == 2)
        #expect(
            paths.allSatisfy { $0.hasPrefix("ad") && $0.split(separator: "@")[0].utf8.count == 64 })
        #expect(
            Self.recipients(Self.report(fixture, to: paths[0])) == ["<\(Self.sender(1).wireForm)>"])
        #expect(
            Self.recipients(Self.report(fixture, to: paths[4])) == ["<\(Self.sender(2).wireForm)>"])
    }

    @Test func storedSender_failureOfAMessage_isCountedOnce() throws {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        _ = try Self.forward(fixture, from: Self.sender(1))
        for nonce: UInt64 in [1, 2, 2, 1, 3] {
            let path = fixture.engine.tokens.forwardReturnPath(
                account: Fixture.anna.number, sender: Self.sender(1), nonce: nonce,
                expiryDay: Self.day)
            _ = Self.report(fixture, to: path.localPart + "@relay.example")
        }
        #expect(fixture.directory.counted(.inboxBounced) == 3)
    }

    @Test func storedSender_tokenOfAnotherSender_isNotUsed() throws {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let path = try Self.forward(fixture, from: Self.sender(1))
        guard
            case .token(let token) = fixture.engine.tokens.read(
                String(path.split(separator: "@")[0]))
        else {
            Issue.record("\(path) is no token")
            return
        }
        _ = try fixture.directory.store(
            [
                StoredAddress(
                    token: token.storageKey ?? "", address: Self.sender(2), expiryDay: Self.day)
            ],
            account: token.account,
            day: 1,
            newPerDay: 1)
        #expect(Self.recipients(Self.report(fixture, to: path)).isEmpty)
    }
}
