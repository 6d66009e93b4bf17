// A handler's requirements for the MTA: declared once, requested in the negotiation. Each event or
// reply that is not requested saves a round trip.

/// Events of the SMTP dialogue that a filter can request from an MTA, or request to answer.
package struct MilterEvents: OptionSet, Sendable, Hashable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// The connection; always sent, as it creates the session. If it is among the answers,
    /// `MilterSession.connected` answers it.
    package static let connect = MilterEvents(rawValue: 1 << 0)
    package static let helo = MilterEvents(rawValue: 1 << 1)
    package static let mail = MilterEvents(rawValue: 1 << 2)
    package static let recipient = MilterEvents(rawValue: 1 << 3)
    package static let data = MilterEvents(rawValue: 1 << 4)
    /// A command that the MTA does not know.
    package static let unknown = MilterEvents(rawValue: 1 << 5)
    package static let header = MilterEvents(rawValue: 1 << 6)
    package static let endOfHeaders = MilterEvents(rawValue: 1 << 7)
    package static let body = MilterEvents(rawValue: 1 << 8)

    package static let all: MilterEvents = [
        .connect, .helo, .mail, .recipient, .data, .unknown, .header, .endOfHeaders, .body,
    ]
}

/// Kinds of modification at the end of the message (SMFIF_*).
package struct MilterActionKinds: OptionSet, Sendable, Hashable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// `addHeader` and `insertHeader`.
    package static let addHeaders = MilterActionKinds(rawValue: 1 << 0)
    package static let changeHeaders = MilterActionKinds(rawValue: 1 << 1)
    package static let changeBody = MilterActionKinds(rawValue: 1 << 2)
    package static let changeFrom = MilterActionKinds(rawValue: 1 << 3)
    /// `addRecipient` without arguments.
    package static let addRecipient = MilterActionKinds(rawValue: 1 << 4)
    /// `addRecipient` with ESMTP arguments.
    package static let addRecipientWithArguments = MilterActionKinds(rawValue: 1 << 5)
    package static let deleteRecipient = MilterActionKinds(rawValue: 1 << 6)

    package static let all: MilterActionKinds = [
        .addHeaders, .changeHeaders, .changeBody, .changeFrom, .addRecipient,
        .addRecipientWithArguments, .deleteRecipient,
    ]
}

/// Stages at which an MTA sends macros.
package enum MilterStage: Sendable, Hashable, CaseIterable {
    case connect, helo, mail, recipient, data, endOfHeaders, endOfMessage
}

/// A handler's requirements for the MTA. An MTA that lacks an action is refused in the negotiation,
/// and the reason is logged. Mail then follows Postfix's `milter_default_action`.
package struct MilterNeeds: Sendable, Hashable {
    /// Events to send. The connection, the end of the message, abort and close always come.
    package var events: MilterEvents
    /// Events for which an answer other than `continue` is allowed. The MTA does not wait for an
    /// answer to the others, and a session's result for them is ignored. The end of the message is
    /// always answered.
    package var answers: MilterEvents
    /// Actions that the handler needs in order to work. Only these may be used.
    package var actions: MilterActionKinds
    /// Macros to send at a stage, such as `{daemon_name}` or `i`. A stage that is absent keeps the
    /// MTA's own list. A macro sent at one stage can be read at every later one of the same
    /// message.
    package var macros: [MilterStage: [String]]

    package init(
        events: MilterEvents, answers: MilterEvents, actions: MilterActionKinds,
        macros: [MilterStage: [String]] = [:]
    ) {
        self.events = events
        self.answers = answers
        self.actions = actions
        self.macros = macros
    }

    /// All events, answers and actions.
    package static let everything = MilterNeeds(events: .all, answers: .all, actions: .all)
}
