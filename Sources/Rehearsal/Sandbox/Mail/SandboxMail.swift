// A message in a mailbox of the sandbox, and its readable form.

import InternetMessage
import Support

/// The owner of a mailbox.
package enum MailSide: String, Sendable, Hashable, CaseIterable {
    /// An address of the team, or of another correspondent of users.
    case team
    /// An inbox of a user.
    case user
}

/// A message to one recipient. A message to several recipients becomes one of these for each.
package struct SandboxMail: Sendable {
    /// From 1.
    package let number: Int
    /// Seconds since 1970, by the sandbox's clock.
    package let at: Int64
    package let side: MailSide
    /// The envelope: paths without brackets, the sender empty for a delivery report.
    package let sender: String
    package let recipient: String
    /// As it arrived, lines ended by CRLF.
    package let octets: [UInt8]
    /// The header section in readable form.
    package let from: String
    package let to: String
    package let replyTo: String?
    package let subject: String
    package let messageID: String?
    /// The plain text, lines ended by LF; cut after `maximumText` octets.
    package let text: String
    /// Six digits, if Postern itself sent them: a code for a sign-in, an inbox or an address.
    package let code: String?

    /// Octets of a text that are shown. The whole message has its own address.
    private static let maximumText = 20_000

    /// - Parameter own: the author of Postern's own mail, in the form of an envelope.
    init(
        number: Int, at: Int64, side: MailSide, sender: String, recipient: String, octets: [UInt8],
        own: String
    ) {
        (self.number, self.at, self.side, self.sender, self.recipient) = (
            number, at, side, sender, recipient
        )
        self.octets = octets
        let message = Message.parse(octets)
        func field(_ name: String) -> String? { message.header.first(name)?.decodedValue }
        from = field("From") ?? ""
        to = field("To") ?? ""
        replyTo = field("Reply-To")
        subject = field("Subject") ?? ""
        messageID = message.header.first("Message-ID")?.unfoldedValue
        text = Self.text(of: message)
        let author = message.header.first("From").flatMap {
            AddressList.parse($0.rawValue).mailboxes.first?.addrSpec.wireForm
        }
        code = author?.hasSameOctets(as: own) == true ? Self.code(in: text) : nil
    }

    private static func text(of message: Message) -> String {
        let leaves = MIMEPart.parse(message).flattened.filter { !$0.isComposite }
        let part =
            leaves.first { $0.contentType.matches("text", "plain") }
            ?? leaves.first { $0.contentType.matches("text") }
        guard let part else { return "" }
        let raw = message.bytes[part.bodyRange]
        let octets = part.transferEncoding.decode(raw)?.bytes ?? Array(raw)
        let text =
            Charset.decodeAsShown(octets, part.contentType.charset ?? "utf-8")
            ?? String(decoding: octets, as: UTF8.self)
        let lines = text.utf8.filter { $0 != 0x0D }
        return String(decoding: lines.prefix(maximumText), as: UTF8.self)
    }

    /// The code on a line of its own: `123 456`.
    private static func code(in text: String) -> String? {
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let octets = line.filter { $0 != UInt8(ascii: " ") }
            if octets.count == 6, octets.allSatisfy(\.isASCIIDigit) {
                return String(decoding: octets, as: UTF8.self)
            }
        }
        return nil
    }

    /// The address for a reply, as a mail program reads it: Reply-To, or From; nil for none.
    package var answerAddress: String? {
        let header = Message.parse(octets).header
        return (header.first("Reply-To") ?? header.first("From")).flatMap {
            AddressList.parse($0.rawValue).mailboxes.first?.addrSpec.wireForm
        }
    }
}

/// The newest messages of all mailboxes, and the mailboxes that refuse mail.
package struct SandboxMailboxes: Sendable {
    /// The most messages that are kept.
    package static let maximum = 500
    /// The most mailboxes that refuse at one time.
    package static let maximumRefusing = 100

    /// The oldest first.
    package private(set) var mails: [SandboxMail] = []
    /// Addresses in lower case, and their replies.
    private var refusing: [WireText: String] = [:]
    private var count = 0

    package init() {}

    mutating func add(
        at: Int64, side: MailSide, sender: String, recipient: String, octets: [UInt8], own: String
    ) -> SandboxMail {
        count += 1
        let mail = SandboxMail(
            number: count, at: at, side: side, sender: sender, recipient: recipient, octets: octets,
            own: own)
        mails.append(mail)
        if mails.count > Self.maximum { mails.removeFirst() }
        return mail
    }

    /// The reply of a mailbox that refuses mail; nil if it accepts mail.
    func refusal(of address: String) -> String? { refusing[WireText(address.asciiLowercased)] }

    /// Makes a mailbox refuse mail; nil: accept mail again. False if too many mailboxes refuse.
    mutating func set(refusal: String?, of address: String) -> Bool {
        let key = WireText(address.asciiLowercased)
        guard refusal == nil || refusing[key] != nil || refusing.count < Self.maximumRefusing else {
            return false
        }
        refusing[key] = refusal
        return true
    }

    /// Empties all mailboxes. Numbers continue, so that a new message never has the number of an
    /// old one.
    mutating func clear() {
        mails = []
        refusing = [:]
    }
}
