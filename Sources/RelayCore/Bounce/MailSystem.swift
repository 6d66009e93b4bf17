// The senders of delivery reports: mail systems, by the local part under which they write.

import InternetMessage
import MailAuth
import Support

enum MailSystem {
    private static let localParts = [
        "mailer-daemon", "postmaster", "mail-daemon", "maildaemon", "mailerdaemon", "mdaemon", "microsoftexchange",
    ]

    /// Whether a mail system writes under this local part.
    static func isNamed(_ localPart: String) -> Bool {
        localParts.contains { $0.utf8.elementsEqual(localPart.utf8.lazy.map(\.asciiLowercased)) }
    }

    /// Whether the envelope sender is a mail system. A report has the null sender (RFC 3464 section 2); some systems put their
    /// own address there.
    static func isSender(_ client: SMTPClientIdentity) -> Bool {
        AddrSpec(envelope: client.mailFrom).map { isNamed($0.localPart) } ?? false
    }
}
