// The reasons of the relay's decisions; each is declared here once.

/// The reason for an answer: a stable word for logs, counters and `explain`, and a
/// sentence for the operator.
package struct RelayReason: Sendable, Hashable {
    package let code: Code
    /// For the log only. Contains no inbox address.
    package let detail: String

    package init(_ code: Code, _ detail: String = "") {
        self.code = code
        self.detail = detail
    }

    /// As in `daily-limit: the account has …`; only the word if there is no detail.
    package var text: String { detail.isEmpty ? code.rawValue : "\(code.rawValue): \(detail)" }

    /// The raw values are in logs, metrics and the API: stable between releases.
    package enum Code: String, Encodable, Sendable, Hashable, CaseIterable, CustomStringConvertible
    {
        // Refusals. `RefusalReply` lists the reasons of each reply.
        case unknownAddress = "unknown-address"
        case badReturnPath = "bad-return-path"
        case anotherUsersAddress = "another-users-address"
        case otherScope = "other-scope"
        case tooManyRecipients = "too-many-recipients"
        case fanOutRefused = "fan-out-refused"
        case fanOutFailed = "fan-out-failed"
        case mixedAccounts = "mixed-accounts"
        case forgedCopy = "forged-copy"
        case forwardingOff = "forwarding-off"
        case senderBlocked = "sender-blocked"
        case addressRetired = "address-retired"
        case userFrozen = "user-frozen"
        case teamFrozen = "team-frozen"
        case inboxUnverified = "inbox-unverified"
        case inboxSuspended = "inbox-suspended"
        case dailyLimit = "daily-limit"
        case storedAddressLimit = "stored-address-limit"
        case deliverySlowed = "delivery-slowed"
        case deliveryHeld = "delivery-held"
        case warmUp = "warm-up"
        case unregisteredSource = "unregistered-source"
        case unclearAuthor = "unclear-author"
        case unsafeHeader = "unsafe-header"
        case repeatedField = "repeated-field"
        case proofFailed = "proof-failed"
        case dkimFailed = "dkim-failed"
        case spfFailed = "spf-failed"
        case dmarcFailed = "dmarc-failed"
        case badReverseAddress = "bad-reverse-address"
        case replyNotProved = "reply-not-proved"
        case accountDeleted = "account-deleted"
        case notTheUsersInbox = "not-the-users-inbox"
        case answerNotRead = "answer-not-read"
        case notTheVerifiedInbox = "not-the-verified-inbox"
        case dnsTrouble = "dns-trouble"
        case storeTrouble = "store-trouble"
        case notConfigured = "not-configured"
        case replyMemory = "reply-memory"
        case forwardMemory = "forward-memory"
        case malformedHeader = "malformed-header"
        case headerLimit = "header-limit"
        case malformedBody = "malformed-body"
        case messageTooLarge = "message-too-large"
        case tooManyAddresses = "too-many-addresses"
        case fieldTooLong = "field-too-long"
        case listedTwice = "listed-twice"
        case loop
        case partialMessage = "partial-message"
        case unrewritablePart = "unrewritable-part"
        /// An incident: a reply that counted as rewritten contained the inbox. Logged as an error.
        case leakIncident = "leak-incident"
        case tooMuchWork = "too-much-work"
        case signedReply = "signed-reply"
        case encryptedReply = "encrypted-reply"

        // Relayed mail, and its changes.
        case forwarded, replied
        case bodyRewritten = "body-rewritten"
        /// A forward has links that bypass the relay.
        case linksLeft = "links-left"
        /// A field that leads away from the team, and that its signature does not cover.
        case fieldUnsigned = "field-unsigned"
        case listMailto = "list-mailto"
        case automaticNeutral = "automatic-neutral"
        case quotationNeutral = "quotation-neutral"
        case quotationRemoved = "quotation-removed"
        case typedBound = "typed-bound"
        case calendarRebuilt = "calendar-rebuilt"
        case pictureMetadata = "picture-metadata"
        case reportRelayed = "report-relayed"
        case inboxNowSuspended = "inbox-now-suspended"
        case operatorMail = "operator-mail"
        case complaint
        case dmarcReport = "dmarc-report"
        /// Only `explain` reads mail to domains that are not the relay's.
        case elsewhere

        // Mail that the relay accepted and did not relay.
        case automaticLimit = "automatic-limit"
        case automaticAnswer = "automatic-answer"
        case answerTold = "answer-told"
        case ownAddress = "own-address"
        case returnPathDiscarded = "return-path-discarded"
        case handedOver = "handed-over"

        package var description: String { rawValue }

        /// Whether there is a fault here that needs the operator's attention.
        package var needsOperator: Bool {
            [.leakIncident, .listedTwice, .forgedCopy].contains(self)
        }
    }
}
