// The relay's decision on one message, as a value.

/// The outcome at the end of a message.
package enum RelayOutcome: Sendable, Hashable {
    /// Not for the relay; passes unchanged.
    case untouched
    /// Relayed with the modifications.
    case relay
    /// Accepted and counted, but sent to no one.
    case discard
    case refuse(Refusal)
}

package struct RelayDecision: Sendable, Hashable {
    package let outcome: RelayOutcome
    /// In the order in which they must be applied.
    package let modifications: [Modification]
    /// The reasons; they contain no inbox.
    package var reasons: [RelayReason]
    /// Copies for other recipients, to be handed over first.
    package let copies: [FanOutCopy]

    package init(
        _ outcome: RelayOutcome, modifications: [Modification] = [], reasons: [RelayReason],
        copies: [FanOutCopy] = []
    ) {
        self.outcome = outcome
        self.modifications = modifications
        self.reasons = reasons
        self.copies = copies
    }

    package static func refuse(_ refusal: Refusal) -> RelayDecision {
        RelayDecision(.refuse(refusal), reasons: [refusal.reason])
    }
}
