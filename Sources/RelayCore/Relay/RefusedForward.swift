// The information that teams and users get about a refused forward.

import InternetMessage

/// A forward that was refused or deferred at or after the end of its header section. Contains
/// nothing of the message.
package struct RefusedForward: Sendable, Hashable {
    /// Seconds since 1970.
    package let at: Int64
    package let attribution: ForwardAttribution
    package let reply: RefusalReply
    package let reason: RelayReason.Code
    /// The word in brackets in the reply, which is also in the log.
    package let reference: String
    /// For each of its relay addresses that someone other than the team has.
    package let uses: [UseByOthers]

    /// - Parameter reason: if nil, the default reason of the reply.
    package init(
        at: Int64, attribution: ForwardAttribution, reply: RefusalReply,
        reason: RelayReason.Code? = nil, reference: String, uses: [UseByOthers] = []
    ) {
        self.at = at
        self.attribution = attribution
        self.reply = reply
        self.reason = reason ?? reply.facts.reasons[0]
        self.reference = reference
        self.uses = uses
    }

    /// As in `550 5.7.26`.
    package var status: String { reply.status }
}

/// The author of a forward, proved or not, and the account that it was for.
package struct ForwardAttribution: Sendable, Hashable {
    package let author: AddrSpec
    package let account: AccountNumber
    /// Whether a team, this or another, registered the author.
    package let isRegistered: Bool

    package init(author: AddrSpec, account: AccountNumber, isRegistered: Bool) {
        self.author = author
        self.account = account
        self.isRegistered = isRegistered
    }
}
