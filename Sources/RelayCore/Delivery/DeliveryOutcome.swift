// What became of forwarded mail, in a few classes: by the status code and the words of the server
// that answered.

/// What is counted about forwards. The raw values are in databases, metrics and commands.
package enum DeliveryOutcome: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Postern accepted the message for forwarding. The other outcomes come later.
    case forwarded
    /// The provider's server accepted it.
    case delivered
    /// It waits, for a reason that is not one of those below.
    case deferred
    /// Refused or deferred because of the reputation of the host or the domain, of users'
    /// complaints, or because the message counts as unsolicited.
    case reputation
    /// Refused or deferred because there was too much mail, or it came too fast.
    case rate
    /// Refused or deferred by a rule: authentication, size, content that is not allowed.
    case policy
    case noSuchUser = "no-such-user"
    /// The mailbox is full.
    case full
    /// Failed for another reason; also one that is no one's fault here, such as the provider's own
    /// trouble.
    case other

    package var description: String { rawValue }
}

/// A server's answer to a message.
package struct DeliveryAnswer: Sendable, Hashable {
    /// The enhanced status code; nil if there is none.
    package let status: EnhancedStatus?
    /// Whether the message was delivered, waits, or failed.
    package let action: DeliveryAction
    /// As the server wrote it. It may contain an inbox.
    package let text: String

    package init(status: EnhancedStatus?, action: DeliveryAction, text: String) {
        (self.status, self.action) = (status, action)
        // `host mx.example[192.0.2.1] said: 550 …`: the words of a host name mean nothing.
        let octets = Array(text.utf8.prefix(Self.longest))
        let said = octets.firstRange(of: Self.said)
        self.text = String(
            decoding: said.map { octets[$0.upperBound...] } ?? octets[...], as: UTF8.self)
    }

    /// Octets of an answer that are read: an SMTP reply line has 512.
    private static let longest = 8_000
    private static let said = Array("] said: ".utf8)

    /// Its class. Words count more than codes, because many servers use 5.7.1 and 5.1.1 for
    /// everything; among the words, those that blame the sender come first.
    package var outcome: DeliveryOutcome {
        switch action {
        case .delivered, .relayed, .expanded: return .delivered
        case .failed, .delayed: break
        }
        let isTemporary = action == .delayed
        if let found = AnswerPhrases.outcome(in: text) { return found }
        let status = status.flatMap { $0.isVague ? nil : $0 } ?? StatusCodes.enhanced(in: text)
        if let found = status.flatMap(Self.outcome(of:)) { return found }
        if isTemporary { return .deferred }
        // A permanent reply without an enhanced code, or a code that says nothing.
        if let code = StatusCodes.replyCode(in: text),
            let found = StatusCodes.status(ofReply: code).flatMap(Self.outcome(of:))
        {
            return found
        }
        return .other
    }

    /// The outcome that an enhanced status alone means (RFC 3463, RFC 7372, and the codes of large
    /// providers); nil if it means nothing in particular.
    private static func outcome(of status: EnhancedStatus) -> DeliveryOutcome? {
        switch (status.subject, status.detail) {
        case (7, 28), (7, 606...649), (7, 650...651), (7, 511): .reputation
        case (7, 500), (4, 5), (2, 120...122): .rate
        case (2, 2): .full
        case (1, 7), (1, 8): .policy
        case (1, _) where status.level == 5, (2, 1) where status.level == 5: .noSuchUser
        case (3, 4), (2, 3): .policy
        case (7, _) where status.level == 5, (7, 20...32), (6, _): .policy
        default: nil
        }
    }
}

extension RecipientReport {
    /// The answer that the report quotes.
    var answer: DeliveryAnswer {
        DeliveryAnswer(
            status: understood.isVague ? status : understood, action: action, text: diagnostic)
    }
}
