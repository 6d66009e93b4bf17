// The content of a message to a return path, which says how another message was delivered, as
// values.

/// An enhanced status code (RFC 3463): class, subject, detail.
package struct EnhancedStatus: Sendable, Hashable, CustomStringConvertible {
    package let level: Int
    package let subject: Int
    package let detail: Int

    /// Nil unless the class is 2, 4 or 5 and both other numbers are below 1000.
    package init?(_ level: Int, _ subject: Int, _ detail: Int) {
        guard [2, 4, 5].contains(level), (0..<1000).contains(subject), (0..<1000).contains(detail)
        else { return nil }
        self.level = level
        self.subject = subject
        self.detail = detail
    }

    package var description: String { "\(level).\(subject).\(detail)" }

    /// `X.0.0`, which gives only the class.
    package var isVague: Bool { subject == 0 && detail == 0 }

    /// Whether it says that the mailbox does not exist or is no longer in use: 5.1.x or 5.2.1
    /// (docs/decisions/034). Not 5.1.7 and 5.1.8, which are about the sender's address.
    package var saysNoMailbox: Bool {
        level == 5 && (subject == 1 && detail != 7 && detail != 8 || (subject == 2 && detail == 1))
    }
}

/// The action of RFC 3464 section 2.3.3.
package enum DeliveryAction: String, Sendable, Hashable {
    case failed, delayed, delivered, relayed, expanded
}

/// The part of a report about one recipient.
package struct RecipientReport: Sendable, Hashable {
    /// As written in the report. It is not trusted, and the team never sees it.
    package var address: String
    /// The address that the sender wrote to, as written in the report; empty if the report has none
    /// (RFC 3464 section 2.3.1).
    package var originalAddress = ""
    package var action: DeliveryAction
    package var status: EnhancedStatus
    /// The remote server's reply, unchanged and not yet redacted. Empty if the report does not
    /// quote it.
    package var diagnostic: String
    /// The status, made precise by the text next to it: 5.1.1 if a server states 5.0.0 and says *no
    /// such user*.
    package var understood: EnhancedStatus

    package init(
        address: String, action: DeliveryAction, status: EnhancedStatus, diagnostic: String,
        understood: EnhancedStatus? = nil
    ) {
        self.address = address
        self.action = action
        self.status = status
        self.diagnostic = diagnostic
        self.understood = understood ?? status
    }
}

/// The kind of a message, in the reader's terms.
package enum ReportClass: String, Sendable, Hashable, CaseIterable {
    /// Not delivered, and another attempt will fail too.
    case hard
    /// Not delivered yet, or not delivered for a temporary reason.
    case soft
    /// A vacation note or a receipt.
    case autoReply = "auto-reply"
    /// A complaint of a feedback loop (RFC 5965).
    case feedback = "feedback report"
    /// None of these: success, or no report at all.
    case none
}

/// A message to a return path, as far as Postern could understand it.
package struct DeliveryReport: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// About a delivery; at least one recipient.
        case delivery
        /// Says that it is about a delivery, but not with which result.
        case unclear
        /// An automatic note (RFC 3834).
        case note
        /// A disposition notification (RFC 8098).
        case receipt
        case feedback
        /// A mail program's request to remove its user from a list: feedback that the sender of the
        /// list must receive.
        case optOut
        /// Not a report.
        case other
    }

    package var kind: Kind
    package var recipients: [RecipientReport]
    /// The header section of the message that the report is about; empty if it is not returned.
    package var original: [String: String]

    package init(kind: Kind, recipients: [RecipientReport] = [], original: [String: String] = [:]) {
        self.kind = kind
        self.recipients = recipients
        self.original = original
    }

    /// The most significant recipient: a failure before a delay before a success.
    package var decisive: RecipientReport? {
        for action in [DeliveryAction.failed, .delayed, .relayed, .delivered, .expanded] {
            if let recipient = recipients.first(where: { $0.action == action }) { return recipient }
        }
        return nil
    }

    package var reportClass: ReportClass {
        switch kind {
        case .note, .receipt: return .autoReply
        case .feedback, .optOut: return .feedback
        case .other: return .none
        case .unclear: return .soft
        case .delivery:
            guard let decisive else { return .none }
            switch decisive.action {
            case .delayed: return .soft
            case .delivered, .relayed, .expanded: return .none
            case .failed:
                // The user may empty a full mailbox later, so the server's class does not matter.
                let isFull = decisive.understood.subject == 2 && decisive.understood.detail == 2
                return decisive.status.level == 5 && !isFull ? .hard : .soft
            }
        }
    }

    /// Whether its fields state a user's complaint (RFC 5965 section 7.3). Feedback loops also
    /// report that a message is not spam, or that it failed one of their checks.
    var isComplaint: Bool {
        kind == .feedback
            && ["abuse", "fraud"].contains(original["feedback-type"]?.lowercased() ?? "")
    }
}
