// The envelope senders of mail systems.

import MailAuth
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct MailSystemTests {
    private func isMailSystem(_ sender: String) -> Bool {
        MailSystem.isSender(
            SMTPClientIdentity(address: "192.0.2.1", helo: "mx.inbox.example", mailFrom: sender))
    }

    @Test(arguments: [
        "mailer-daemon@inbox.example", "MAILER-DAEMON@mx.inbox.example", "MAILER-DAEMON",
        "postmaster@inbox.example",
        "MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@inbox.example",
        "microsoftexchange@inbox.example",
        "MDaemon@inbox.example",
    ])
    func isSender_mailSystem_isOne(sender: String) { #expect(isMailSystem(sender)) }

    @Test(arguments: [
        "", "anna@inbox.example", "postmaster.anna@inbox.example", "mailer-daemons@inbox.example",
        "microsoftexchangefan@inbox.example", "anna@postmaster",
        "\"mailer-daemon\u{212A}\"@inbox.example",
    ])
    func isSender_anyOther_isNone(sender: String) { #expect(!isMailSystem(sender)) }
}
