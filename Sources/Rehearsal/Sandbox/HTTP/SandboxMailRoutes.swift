// /sandbox/mail: send mail from either side without SMTP, and read what arrived.

import Concurrency
import Database
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import InternetMessage
import MailAuth
import MailCrypto
import NIOCore
import RelayCore
import ServiceLifecycle
import Support

struct SandboxMailRoutes: RouteModule {
    let desk: SandboxDesk
    let pool: BlockingPool

    /// Octets of a message and its surrounding JSON.
    private static let bodyLimit = 12 << 20
    /// The longest wait for a message, in seconds.
    private static let maximumWait: Int64 = 60
    /// The pause between two reads of the mailbox while a client waits.
    private static let pause: Duration = .milliseconds(50)
    /// Recipients of one message.
    private static let maximumRecipients = 50

    func addRoutes(to routes: Routes) {
        routes.open(bodyLimit: Self.bodyLimit).post("/sandbox/mail", use: send)
        routes.open.get("/sandbox/mails", use: list).get("/sandbox/mails/{number}", use: message)
            .post("/sandbox/mailboxes", use: setMailbox)
    }

    private func room() throws -> SandboxMailRoom {
        guard let room = desk.room else { throw Problem.unavailable() }
        return room
    }

    // MARK: Sending

    private struct MailOrder: Decodable {
        let from: String?
        let to: String?
        let subject: String?
        let text: String?
        /// The number of a message that this one answers.
        let replyTo: Int?
        /// The client's address, for SPF.
        let client: String?
    }

    /// The SMTP reply, and the numbers under which the message is shown.
    struct SendView: Encodable {
        struct Recipient: Encodable {
            let to: String
            let code: Int
            let enhanced: String
            let text: String
        }
        let code: Int
        let enhanced: String
        let text: String
        let recipients: [Recipient]
        /// Numbers below `/sandbox/mails`.
        let mails: [Int]
    }

    /// A message with its envelope.
    private struct Letter: Sendable {
        let sender: String
        let recipients: [String]
        let octets: [UInt8]
        let client: String
    }

    private func send(_ request: Request, _ context: APIContext) async throws -> Response {
        let room = try room()
        let isRaw = (request.headers[.contentType] ?? "").asciiLowercased.utf8.starts(
            with: "message/rfc822".utf8)
        let letter =
            isRaw ? try await raw(request, context) : try await written(request, context, room)
        return try .json(await pool.run { Self.send(letter, to: room) })
    }

    /// A whole message; the envelope is in the query.
    private func raw(_ request: Request, _ context: APIContext) async throws -> Letter {
        let query = try request.query(["from", "to", "client"])
        let octets = Array(try await request.collect(context).readableBytesView)
        let recipients = (query["to"]?.text ?? "").split(separator: ",").map(String.init)
        return try letter(
            from: query["from"]?.text ?? "", to: recipients,
            octets: Message.canonicalLineBreaks(octets),
            client: query["client"]?.text)
    }

    /// A message made from its parts.
    private func written(
        _ request: Request, _ context: APIContext, _ room: SandboxMailRoom
    ) async throws -> Letter {
        let order = try await request.decode(MailOrder.self, context)
        let answered = try order.replyTo.map { number in
            guard let mail = room.mailboxes.mails.first(where: { $0.number == number }) else {
                throw Problem.invalid("no message has this number", at: "/reply_to")
            }
            return mail
        }
        let from = order.from ?? answered?.recipient ?? ""
        let to = try Self.addresses(order.to ?? answered?.answerAddress ?? "", "/to")
        guard let author = AddrSpec(envelope: from) else {
            throw Problem.invalid("must be one address", at: "/from")
        }
        let subject = order.subject ?? answered.map { Self.reply(to: $0.subject) } ?? ""
        var fields = [
            HeaderField("Date", MessageDate.format(desk.clock.now)),
            HeaderField.addresses("From", [Mailbox(addrSpec: author)]),
            HeaderField.addresses("To", to.map { Mailbox(addrSpec: $0) }),
            HeaderField.unstructured("Subject", subject),
            HeaderField(
                "Message-ID",
                "<\(try Base32.characters(fromRandom: SecureRandom.bytes(count: 10)))@\(author.domain)>"
            ),
        ]
        if let id = answered?.messageID {
            fields += [HeaderField("In-Reply-To", id), HeaderField("References", id)]
        }
        fields += [
            HeaderField("MIME-Version", "1.0"),
            HeaderField("Content-Type", "text/plain; charset=utf-8"),
            HeaderField("Content-Transfer-Encoding", "quoted-printable"),
        ]
        let text = QuotedPrintable.encode(Array((order.text ?? "").utf8))
        return try letter(
            from: from, to: to.map(\.wireForm),
            octets: HeaderSection(fields).serialized + [0x0D, 0x0A] + text + [0x0D, 0x0A],
            client: order.client)
    }

    private func letter(
        from sender: String, to recipients: [String], octets: [UInt8], client: String?
    ) throws -> Letter {
        for path in [sender] + recipients
        where path.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) {
            throw Problem.invalid("an address must not have spaces or control characters")
        }
        guard (1...Self.maximumRecipients).contains(recipients.count) else {
            throw Problem.invalid("must have 1 to \(Self.maximumRecipients) addresses", at: "/to")
        }
        guard client.map({ IPAddress($0) != nil }) ?? true else {
            throw Problem.invalid(
                "must be the address of the sending machine, as in 192.0.2.7", at: "/client")
        }
        return Letter(
            sender: sender, recipients: recipients, octets: octets, client: client ?? "127.0.0.1")
    }

    /// Sends like a mail server: recipients that need a transaction of their own get one.
    private static func send(_ letter: Letter, to room: SandboxMailRoom) -> SendView {
        var views: [SendView.Recipient] = []
        var mails: [Int] = []
        var end = SandboxReply(451, "4.3.0", "No recipient was accepted")
        var rest = letter.recipients
        while !rest.isEmpty {
            let connection = room.connect(from: letter.client)
            connection.helo("client.sandbox.example")
            connection.mail("<\(letter.sender)>", [])
            var taken: [String] = []
            var later: [String] = []
            for recipient in rest {
                let reply = connection.recipient("<\(recipient)>")
                if reply.isAccepted {
                    taken.append(recipient)
                } else if reply.code == 452, !taken.isEmpty {
                    later.append(recipient)
                } else {
                    views.append(
                        .init(
                            to: recipient, code: reply.code, enhanced: reply.enhanced,
                            text: reply.text))
                    if views.count == letter.recipients.count { end = reply }
                }
            }
            if !taken.isEmpty {
                let (reply, numbers) = connection.message(letter.octets)
                end = reply
                mails += numbers
                views += taken.map {
                    .init(to: $0, code: reply.code, enhanced: reply.enhanced, text: reply.text)
                }
            }
            connection.close()
            rest = later
        }
        return SendView(
            code: end.code, enhanced: end.enhanced, text: end.text, recipients: views, mails: mails)
    }

    private static func addresses(_ text: String, _ pointer: String) throws -> [AddrSpec] {
        let found = AddressList.parse(Array(text.utf8)[...]).mailboxes.map(\.addrSpec)
        guard !found.isEmpty else {
            throw Problem.invalid(
                "must be an address, or several with commas between them", at: pointer)
        }
        return found
    }

    private static func reply(to subject: String) -> String {
        subject.asciiLowercased.utf8.starts(with: "re:".utf8) ? subject : "Re: " + subject
    }

    // MARK: Reading

    struct MailView: Encodable {
        let number: Int
        let at: Timestamp
        let side: String
        let envelopeFrom: String
        let envelopeTo: String
        let from: String
        let to: String
        let replyTo: String?
        let subject: String
        let text: String
        let code: String?
        let messageId: String?

        init(_ mail: SandboxMail) {
            (number, at, side) = (mail.number, Timestamp(mail.at), mail.side.rawValue)
            (envelopeFrom, envelopeTo) = (mail.sender, mail.recipient)
            (from, to, replyTo, subject, text) = (
                mail.from, mail.to, mail.replyTo, mail.subject, mail.text
            )
            (code, messageId) = (mail.code, mail.messageID)
        }
    }

    private struct MailList: Encodable { let items: [MailView] }

    /// The oldest first. With `wait`, answers when there is a message, or after this many seconds.
    private func list(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(["to", "side", "after", "wait"])
        func number(_ name: WireText, _ range: ClosedRange<Int64>) throws -> Int64? {
            guard let text = query[name] else { return nil }
            guard let value = text.integer, range.contains(value) else {
                throw Problem.malformed(
                    "\(name.text) must be \(range.lowerBound) to \(range.upperBound)")
            }
            return value
        }
        let side: MailSide? = try OrderWord.read(query["side"]?.text, "/side")
        let after = try number("after", 0...Int64(Int32.max)) ?? 0
        let wait = try number("wait", 0...Self.maximumWait) ?? 0
        let room = try room()
        let end = ContinuousClock.now + .seconds(wait)
        func found() -> [SandboxMail] {
            room.mailboxes.mails.filter { mail in
                mail.number > after && (side.map { $0 == mail.side } ?? true)
                    && (query["to"].map {
                        $0.text.asciiLowercased.hasSameOctets(as: mail.recipient.asciiLowercased)
                    } ?? true)
            }
        }
        var mails = found()
        while mails.isEmpty, ContinuousClock.now < end {
            guard
                (try? await cancelWhenGracefulShutdown({ try await Task.sleep(for: Self.pause) }))
                    != nil
            else { break }
            mails = found()
        }
        return try .json(MailList(items: mails.map(MailView.init)))
    }

    private func message(_ request: Request, _ context: APIContext) async throws -> Response {
        guard let number = Int(try context.pathParameter("number")),
            let mail = try room().mailboxes.mails.first(where: { $0.number == number })
        else { throw Problem.notFound("no message has this number") }
        return Response(type: "message/rfc822", body: ByteBuffer(bytes: mail.octets))
    }

    private struct MailboxOrder: Decodable {
        let address: String
        /// A code, an enhanced code and a text, as in `550 5.1.1 no such mailbox`; without it the
        /// mailbox accepts mail again.
        let refuse: String?
    }

    private func setMailbox(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(MailboxOrder.self, context)
        if let refuse = order.refuse {
            let words = refuse.utf8.split(separator: 0x20)
            guard words.count >= 3, words[0].count == 3, words[0].first == UInt8(ascii: "5"),
                refuse.utf8.count <= 200,
                refuse.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { throw Problem.invalid("must be as in 550 5.1.1 no such mailbox", at: "/refuse") }
        }
        guard try room().set(refusal: order.refuse, of: order.address) else {
            throw Problem.conflict(
                "\(SandboxMailboxes.maximumRefusing) mailboxes refuse mail already")
        }
        return .empty
    }
}
