// A complete message to an inbox, from the store to a mail server: its text, its signature, and the
// destination of a reply.

import Accounts
import Database
import Foundation
import InternetMessage
import MailAuth
import MailCrypto
import PosternSQLite
import PostfixHarness
import RelayCore
import StoreTesting
import TestSupport
import Testing

@testable import Mail

/// Signs with one Ed25519 key of relay.example.
private struct TestSigner: MessageSigner {
    let signer: DKIMSigner

    func begin() -> any SigningSession { Session(signer: signer) }

    private final class Session: SigningSession {
        let signer: DKIMSigner
        let hasher = DKIMBodyHasher()
        init(signer: DKIMSigner) { self.signer = signer }
        func update(body: UnsafeRawBufferPointer) { hasher.update(body: body) }
        func finish(header: HeaderSection, domain: String, now: Int64) throws -> [HeaderField] {
            [try signer.sign(header: header, bodyHash: hasher.finish(), now: now)]
        }
    }
}

@Suite(.blocking) final class MailerTests {
    private static let now: Int64 = 1_790_000_000
    private static let change = Change(actor: "uid:0", now: now)
    private static let keys = TokenKeys(
        keys: [UInt8(ascii: "a"): Array(repeating: 7, count: 32)], active: UInt8(ascii: "a"))!

    private let folder: URL
    private let database: SQLiteDatabase
    private let store: Store
    private let sink: SMTPSink

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-mail-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        database = try MigratedStore.sqlite(at: folder.appendingPathComponent("postern.db").path)
        let ring = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
        store = Store(database: database, keys: ring, relayDomains: ["relay.example"])
        sink = try SMTPSink()
        let inbox = InboxAddress(AddrSpec(localPart: "anna", domain: "home.example"))
        _ = try store.users.add(
            id: "anna", name: "Anna", inbox: inbox, isVerified: false, Self.change)
    }

    deinit {
        sink.stop()
        try? database.close()
        try? FileManager.default.removeItem(at: folder)
    }

    private func mailer(
        signer: (any MessageSigner)? = nil, port: UInt16? = nil,
        url: String? = "https://relay.example"
    ) throws -> InboxMailer {
        try InboxMailer(
            settings: MailerSettings(
                from: AddrSpec(localPart: "postmaster", domain: "relay.example"),
                service: "Fig & Co",
                relayDomain: "relay.example",
                publicURL: url, limits: NoticeLimits(),
                complaints: AddrSpec(localPart: "abuse", domain: "relay.example")),
            store: store, tokens: { TokenMint(keys: Self.keys) }, signer: signer,
            submission: SMTPSubmission(
                host: "127.0.0.1", port: port ?? sink.port, helo: "mx.relay.example", timeout: 120,
                dataTimeout: 120),
            templates: .standard())
    }

    private func part(_ type: String, of message: SinkMessage) throws -> String {
        let text = message.text
        let start = try #require(text.range(of: "Content-Type: \(type)"))
        let head = try #require(text[start.upperBound...].range(of: "\r\n\r\n"))
        let end = try #require(text[head.upperBound...].range(of: "\r\n--=_notice"))
        return String(
            decoding: QuotedPrintable.decode(
                Array(text[head.upperBound..<end.lowerBound].utf8)[...]
            ).bytes, as: UTF8.self)
    }

    @Test func verification_sent_holdsCodeLinkAndReplyAddress() throws {
        try mailer().sendConfirmation(user: "anna", .number(1), Self.change)
        let message = try #require(try sink.wait(for: 1).first)
        let parsed = Message.parse(message.data)
        #expect(parsed.defects.isEmpty)
        func value(_ name: String) -> String { parsed.header.first(name)?.unfoldedValue ?? "" }
        #expect(
            value("From") == "Fig & Co <postmaster@relay.example>"
                && value("To") == "anna@home.example")
        #expect(
            value("Auto-Submitted") == "auto-generated"
                && value("Date") == "Mon, 21 Sep 2026 14:13:20 +0000")
        #expect(value("Message-ID").hasSuffix("@relay.example>"))
        for name in ["Date", "From", "To", "Reply-To", "Subject", "Message-ID"] {
            #expect(parsed.header.all(name).count == 1)
        }
        #expect(message.data.allSatisfy { $0 < 0x80 })

        // The code works, and is unchanged in the text for people.
        let text = try part("text/plain", of: message)
        let code = try #require(text.firstMatch(of: /[0-9]{3} [0-9]{3}/)).output
        let html = try part("text/html", of: message)
        #expect(
            html.contains(code) && html.contains("Fig &amp; Co") && value("Subject").contains(code))
        let link = try #require(
            text.firstMatch(of: /https:\/\/relay.example\/me\/confirm\/([a-z2-7]{32})/)
        ).output.1
        #expect(try store.verifications.inbox(link: String(link), now: Self.now)?.userID == "anna")
        _ = try store.verifications.confirm(
            user: "anna", .number(1), code: String(code), limits: NoticeLimits(), Self.change)
        #expect(try store.inboxes.inboxes(user: "anna").first?.isVerified == true)
    }

    @Test func verification_reply_comesToAnAddressThatTheRelayReads() throws {
        try mailer().sendConfirmation(user: "anna", .number(1), Self.change)
        let message = try #require(try sink.wait(for: 1).first)
        let replyTo = AddressList.parse(
            Message.parse(message.data).header.first("Reply-To")!.rawValue
        ).mailboxes[0].addrSpec
        #expect(message.mailFrom == "<\(replyTo.wireForm)>")
        guard case .answer(let token) = TokenMint(keys: Self.keys).read(replyTo.localPart) else {
            return #expect(Bool(false), "no token for answers")
        }
        let anna = AddrSpec(localPart: "Anna+tag", domain: "home.example")
        #expect(
            try store.verifications.recordAnswer(to: token, author: anna, now: Self.now)
                == .first(language: nil))
        #expect(try store.inboxes.inboxes(user: "anna").first?.isVerified == false)
    }

    @Test(arguments: ["https://relay.example", nil])
    func verification_pageOrNone_saysWhereTheCodeIsEntered(url: String?) throws {
        try mailer(url: url).sendConfirmation(user: "anna", .number(1), Self.change)
        let message = try #require(try sink.wait(for: 1).first)
        for type in ["text/plain", "text/html"] {
            let text = try part(type, of: message)
            #expect(text.contains("https://relay.example/me/inboxes") == (url != nil), "\(text)")
            #expect(
                text.contains("give this code to your administrator") == (url == nil), "\(text)")
            #expect(text.contains("No one reads replies to this message."))
        }
    }

    @Test(arguments: ["https://relay.example", nil])
    func replyNotice_anyInstallation_saysWhereTheCodeIsEntered(
        url: String?
    ) throws {
        let tokens = TokenMint(
            keys: try #require(
                TokenKeys(
                    keys: [UInt8(ascii: "k"): Array(repeating: 7, count: 32)],
                    active: UInt8(ascii: "k"))))
        let notice = ReplyNotice(
            settings: try mailer(url: url).settings, templates: try .standard(.builtIn()),
            tokens: { tokens })
        let anna = AddrSpec(localPart: "anna", domain: "home.example")
        let (header, body) = notice.message(
            to: anna, language: nil, id: "abc", answered: Array("a@home.example".utf8),
            now: Self.now)
        func value(_ name: String) -> String { header.first(name)?.unfoldedValue ?? "" }
        #expect(value("To") == "anna@home.example" && value("Auto-Submitted") == "auto-replied")
        #expect(
            value("Feedback-ID") == tokens.feedback.identifier(.notice, team: nil).unfoldedValue)
        #expect(
            value("In-Reply-To") == "<a@home.example>" && value("References") == "<a@home.example>")
        let text = String(decoding: QuotedPrintable.decode(body[...]).bytes, as: UTF8.self)
        #expect(text.contains("No one reads these replies, and they confirm nothing."))
        #expect(text.contains("https://relay.example/me/inboxes") == (url != nil))
        #expect(
            text.contains("give the code in that message to your administrator") == (url == nil))

        let bare = notice.message(
            to: anna, language: "de", id: "abc", answered: [0x0D, 0x0A], now: Self.now)
        #expect(bare.header.first("In-Reply-To") == nil)
        #expect(bare.header.first("Subject")?.decodedValue.contains("nicht gelesen") == true)
    }

    @Test func verification_withSigner_isSignedByRelayDomain() throws {
        let key = try Ed25519PrivateKey.generate()
        let signer = try DKIMSigner(domain: "relay.example", selector: "s", key: .ed25519(key))
        try mailer(signer: TestSigner(signer: signer)).sendConfirmation(
            user: "anna", .number(1), Self.change)
        let message = Message.parse(try #require(try sink.wait(for: 1).first).data)
        let field = try #require(message.header.first("DKIM-Signature")?.unfoldedValue)
        for name in [
            "d=relay.example", "From", "Reply-To", "Subject", "To", "Feedback-ID", "CFBL-Address",
        ] {
            #expect(field.contains(name), "\(field)")
        }
        #expect(
            message.header.first("CFBL-Address")?.unfoldedValue
                == "abuse@relay.example; report=arf")
        #expect(
            message.header.first("Feedback-ID")?.unfoldedValue
                == FeedbackFields(keys: Self.keys).identifier(.notice, team: nil).unfoldedValue)
    }

    @Test func verification_serverAway_isTemporaryError() throws {
        let port = try ScriptedServer([]).port
        do {
            try mailer(port: port).sendConfirmation(user: "anna", .number(1), Self.change)
            Issue.record("it was sent")
        } catch let error as MailerError {
            guard case .submission(.temporary) = error else {
                return #expect(Bool(false), "\(error)")
            }
            #expect(!"\(error)".contains("anna"))
        }
    }

    @Test func signInLink_sent_goesToInboxWithNullSender() throws {
        _ = try store.inboxes.confirm(user: "anna", .number(1), Self.change)
        let link = try #require(
            try store.page.signInLink(
                for: InboxAddress(AddrSpec(localPart: "anna", domain: "home.example")),
                browser: "b", limits: NoticeLimits(),
                now: Self.now))
        try mailer().send(link, .signIn, in: .english, now: Self.now)
        let token = try #require(link.token)
        let message = try #require(try sink.wait(for: 1).first)
        #expect(message.mailFrom == "<>" && message.recipients == ["<anna@home.example>"])
        #expect(
            try part("text/plain", of: message).contains(
                "https://relay.example/me/sign-in/\(token)"))
        #expect(!"\(link)".contains(token))
    }

    @Test func mailQueue_fullOrStopped_refuses() {
        let queue = MailQueue(capacity: 1)
        let gate = DispatchSemaphore(value: 0)
        let started = DispatchSemaphore(value: 0)
        #expect(
            queue.add {
                started.signal()
                gate.wait()
            })
        started.wait()
        #expect(queue.add {})
        #expect(!queue.add {})
        gate.signal()
        queue.drain()
        queue.stop()
        #expect(!queue.add {})
    }

    /// 2,000 sign-in forms while the mail server is slow with one message.
    @Test func mailQueue_mailBeingSent_doesNotDelayLookUps() {
        let queue = MailQueue(capacity: 10)
        let gate = DispatchSemaphore(value: 0)
        let (started, looked) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        #expect(
            queue.add {
                started.signal()
                gate.wait()
            })
        started.wait()
        for _ in 0..<2_000 {
            #expect(queue.lookUp { looked.signal() })
            looked.wait()
        }
        // The messages of look-ups wait in their own lane.
        #expect(queue.lookUp { _ = queue.add { looked.signal() } })
        gate.signal()
        queue.drain()
        #expect(looked.wait(timeout: .now()) == .success)
        queue.stop()
        #expect(!queue.lookUp {})
    }

    /// If an answer to the recipient did not count, a team could test any number of mailboxes.
    @Test func mailerError_fromRecipientStageOn_namesRecipient() {
        let before: [SubmissionStage] = [
            .connection, .greeting, .ehlo, .tls, .authentication, .mail,
        ]
        for stage in before {
            #expect(!MailerError.submission(.temporary(stage, "down")).namedRecipient, "\(stage)")
            #expect(!MailerError.submission(.permanent(stage, "no")).namedRecipient, "\(stage)")
        }
        let after: [SubmissionStage] = [.recipient, .data, .message]
        for stage in after {
            #expect(MailerError.submission(.temporary(stage, "down")).namedRecipient, "\(stage)")
            #expect(MailerError.submission(.permanent(stage, "no")).namedRecipient, "\(stage)")
        }
        #expect(!MailerError.signing("no key").namedRecipient)
    }
}
