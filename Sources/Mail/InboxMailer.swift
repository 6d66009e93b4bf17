// Sends Postern's own mail to inboxes: verification, sign-in, a request for a new confirmation,
// notice of a change.

import Accounts
import InternetMessage
import Languages
import MailCrypto
import RelayCore
import SignIn
import Support

/// Settings shared by all messages of an installation.
package struct MailerSettings: Sendable {
    /// Author of the messages, at a relay domain.
    package let from: AddrSpec
    /// The name of the service in messages.
    package let service: String
    /// The domain that signs the messages. It is also the domain of their ids, and of the addresses
    /// that receive answers.
    package let relayDomain: String
    /// The public URL of the HTTP service, without `/` at the end. Nil if users cannot reach it:
    /// messages then have no link.
    package let publicURL: String?
    package let limits: NoticeLimits
    /// Where receivers report complaints about these messages; at the relay domain. Nil if no one
    /// would get them.
    package let complaints: AddrSpec?

    package init(
        from: AddrSpec, service: String, relayDomain: String, publicURL: String?,
        limits: NoticeLimits, complaints: AddrSpec? = nil
    ) {
        self.from = from
        self.service = service
        self.relayDomain = relayDomain
        self.publicURL = publicURL
        self.limits = limits
        self.complaints = complaints
    }

    /// The fields by which receivers report spam among our own messages.
    func feedback(_ tokens: TokenMint) -> [HeaderField] {
        [tokens.feedback.identifier(.notice, team: nil)]
            + (complaints.map { [FeedbackFields.complaints(to: $0)] } ?? [])
    }
}

/// The reason why no message was sent.
package enum MailerError: UnsentMail, Sendable, CustomStringConvertible {
    case submission(SubmissionFailure)
    /// A key of the relay domain failed to sign.
    case signing(String)

    /// Whether the mail server permanently refuses messages for the address.
    package var isRecipientRefused: Bool {
        if case .submission(.permanent(let error)) = self {
            error.stage == .recipient
        } else {
            false
        }
    }

    package var namedRecipient: Bool {
        let stage: SubmissionStage
        switch self {
        case .submission(.temporary(let error)): stage = error.stage
        case .submission(.permanent(let error)): stage = error.stage
        case .signing: return false
        }
        switch stage {
        case .connection, .greeting, .ehlo, .tls, .authentication, .mail: return false
        case .recipient, .data, .message: return true
        }
    }

    package var description: String {
        switch self {
        case .submission(let failure): failure.description
        case .signing(let detail): "the message cannot be signed: \(detail)"
        }
    }
}

/// Sends messages. Every call blocks until the mail server has the message.
package struct InboxMailer: Sendable {
    package let settings: MailerSettings
    private let store: Store
    private let tokens: @Sendable () -> TokenMint
    private let signer: (any MessageSigner)?
    private let submission: SMTPSubmission
    private let templates: NoticeTemplates
    /// The languages of the messages.
    package var languages: Languages { templates.languages }

    package init(
        settings: MailerSettings, store: Store, tokens: @escaping @Sendable () -> TokenMint,
        signer: (any MessageSigner)?,
        submission: SMTPSubmission,
        templates: NoticeTemplates
    ) {
        self.settings = settings
        self.store = store
        self.tokens = tokens
        self.signer = signer
        self.submission = submission
        self.templates = templates
    }

    /// Begins the verification of an inbox and writes to it. Refused for a verified inbox and
    /// beyond a limit. Throws `MailerError` if no message was sent, which still counts.
    @discardableResult
    package func sendConfirmation(
        user: String, _ inbox: InboxName, _ change: Change
    ) throws -> Inbox {
        let pending = try store.verifications.begin(
            user: user, inbox, limits: settings.limits, change)
        try send(pending, in: language(of: user), now: change.now)
        return pending.inbox
    }

    /// The user's language, if it is known.
    package func language(of user: String) throws -> Catalogue {
        languages.best([try store.users.language(of: user)].compactMap(\.self), accepted: nil)
    }

    /// Sends the message of a verification.
    package func send(_ pending: PendingConfirmation, in language: Catalogue, now: Int64) throws {
        var answer: AddrSpec?
        if let number = UInt64(exactly: pending.number),
            let nonce = UInt64(exactly: pending.answerNonce)
        {
            let token = AnswerToken(
                number: number, nonce: nonce, expiryDay: UInt64(max(0, pending.expiresAt) / 86_400))
            answer = AddrSpec(localPart: tokens().answer(token), domain: settings.relayDomain)
        }
        try send(
            .verification, to: pending.inbox.address, answer: answer,
            values(
                code: Self.grouped(pending.code, in: language),
                link: settings.publicURL.map { "\($0)/me/confirm/\(pending.linkToken)" },
                seconds: pending.expiresAt - now, in: language), in: language, now: now)
    }

    /// Sends a link to the page. Does nothing if the installation has no public address.
    /// - Parameter language: of the requester.
    package func send(
        _ link: PageLink, _ purpose: PageLinkPurpose, in language: Catalogue, now: Int64
    ) throws {
        guard let url = settings.publicURL else { return }
        let path = purpose == .signIn ? "sign-in" : "delete"
        try send(
            purpose == .signIn ? .signIn : .deletion, to: link.inbox, answer: nil,
            values(
                code: link.code.map { Self.grouped($0, in: language) },
                link: link.token.map { "\(url)/me/\(path)/\($0)" },
                seconds: link.expiresAt - now,
                in: language), in: language, now: now)
    }

    /// Notifies an inbox that it no longer receives the mail.
    /// - Parameter addresses: the user's addresses that changed.
    package func sendChange(
        to inbox: InboxAddress, of addresses: NoticeValues.Change, in language: Catalogue,
        now: Int64
    ) throws {
        try tell(.change, to: inbox, in: language, now: now) { $0.change = addresses }
    }

    /// Notifies a user of a change to their account that another person may have made, or that may
    /// interest them.
    /// - Parameter complete: adds the values that the message needs besides the
    ///   names of the installation.
    package func tell(
        _ kind: NoticeKind, to inbox: InboxAddress, in language: Catalogue, now: Int64,
        _ complete: (inout NoticeValues) -> Void = { _ in }
    ) throws {
        var values = values(in: language)
        complete(&values)
        try send(kind, to: inbox, answer: nil, values, in: language, now: now)
    }

    /// Sends the code of a check that a team requires.
    /// - Parameter seconds: for which it works.
    package func sendCheck(
        code: String, team: String, to inbox: InboxAddress, seconds: Int64, in language: Catalogue,
        now: Int64
    ) throws {
        var values = values(
            code: Self.grouped(code, in: language), seconds: seconds, in: language)
        values.team = team
        try send(.check, to: inbox, answer: nil, values, in: language, now: now)
    }

    /// Sends the code that lets a team send from an address.
    package func send(_ code: SourceCode, in language: Catalogue, now: Int64) throws {
        var values = values(
            code: Self.grouped(code.code, in: language), seconds: code.expiresAt - now, in: language
        )
        values.team = code.teamName
        try send(
            .source, to: InboxAddress(code.address), answer: nil, values, in: language, now: now)
    }

    private func values(
        code: String? = nil, link: String? = nil, seconds: Int64? = nil, in language: Catalogue
    ) -> NoticeValues {
        NoticeValues(
            service: settings.service, relayDomain: settings.relayDomain, code: code, link: link,
            page: settings.publicURL.map { "\($0)/me" },
            lifetime: seconds.map { Self.duration($0, in: language) })
    }

    /// `123 456`. Between words in a right-to-left script, two numbers with a space between them
    /// change places. With a no-break space they are one number (UAX #9, W4).
    private static func grouped(_ code: String, in language: Catalogue) -> String {
        code.prefix(3) + (language.isRightToLeft ? "\u{A0}" : " ") + code.dropFirst(3)
    }

    /// `24 hours`, `20 minutes`.
    private static func duration(_ seconds: Int64, in language: Catalogue) -> String {
        seconds >= 7200
            ? language.text("{n} hours", count: Int(seconds / 3600))
            : language.text("{n} minutes", count: Int(max(1, (seconds + 59) / 60)))
    }

    private func send(
        _ kind: NoticeKind, to inbox: InboxAddress, answer: AddrSpec?, _ values: NoticeValues,
        in language: Catalogue,
        now: Int64
    ) throws {
        let id = String(decoding: Base32.encode(try SecureRandom.bytes(count: 15)), as: UTF8.self)
        let message = NoticeMessage(
            name: settings.service, from: settings.from, to: inbox, replyTo: answer,
            content: templates.render(kind, values, in: language),
            relayDomain: settings.relayDomain, id: id, now: now,
            feedback: settings.feedback(tokens()))
        let octets: [UInt8]
        do { octets = try message.write(signer: signer) } catch {
            throw MailerError.signing("\(error)")
        }
        do throws(SubmissionFailure) {
            // The address for answers also receives bounces, and forwards none of them. Other
            // messages have the null sender.
            try submission.send(from: answer, to: inbox, message: octets)
        } catch {
            throw MailerError.submission(error)
        }
    }
}
