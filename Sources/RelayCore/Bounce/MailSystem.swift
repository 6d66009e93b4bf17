// The senders of delivery reports: mail systems, recognised by their local parts.

import InternetMessage
import MailAuth
import Support

enum MailSystem {
    private static let localParts = [
        "mailer-daemon", "postmaster", "mail-daemon", "maildaemon", "mailerdaemon", "mdaemon",
    ]
    /// Exchange appends a hexadecimal number to it.
    private static let exchange = Array("microsoftexchange".utf8)

    /// Whether a mail system writes under this local part.
    static func isNamed(_ localPart: String) -> Bool {
        let name = localPart.utf8.map(\.asciiLowercased)
        if name.starts(with: exchange) {
            return name.dropFirst(exchange.count).allSatisfy { $0.hexValue != nil }
        }
        return localParts.contains { name.elementsEqual($0.utf8) }
    }

    /// Whether the envelope sender is a mail system. A report has the null sender (RFC 3464 section
    /// 2), but some systems use their own address.
    static func isSender(_ client: SMTPClientIdentity) -> Bool {
        // `MAIL FROM:<MAILER-DAEMON>` has no domain.
        isNamed(AddrSpec(envelope: client.mailFrom)?.localPart ?? client.mailFrom)
    }
}
