// The changes of a request, as a value: created by the service, applied by the store in one
// transaction.

/// A consumed nonce with the answer that it got.
package struct ConsumedNonce: Sendable, Hashable {
    /// `DecisionMarks.nonce`.
    package let mark: [UInt8]
    /// `DecisionMarks.subject`.
    package let subject: [UInt8]
    package let claimedEvent: String
    package let event: String
    package let decisionID: String
    /// The answer as it was sent; empty while it is not ready yet.
    package let answer: String
    /// Seconds since 1970: the token's own expiry plus the allowed leeway.
    package let expiresAt: Int64

    package init(
        mark: [UInt8], subject: [UInt8], claimedEvent: String, event: String, decisionID: String,
        answer: String, expiresAt: Int64
    ) {
        self.mark = mark
        self.subject = subject
        self.claimedEvent = claimedEvent
        self.event = event
        self.decisionID = decisionID
        self.answer = answer
        self.expiresAt = expiresAt
    }
}

/// The basis of a decision. The decision write is refused if it has changed since.
package struct GrantStamp: Sendable, Hashable {
    package let grantNumber: Int64?
    package let isAuthorized: Bool
    package let realUserStatus: Int?
    package let signUpCheck: SignUpCheck
    package let wasAsked: Bool

    package init(_ history: GrantHistory?) {
        grantNumber = history?.grant?.number
        isAuthorized = history?.grant?.isAuthorized ?? false
        realUserStatus = history?.grant?.realUserStatus
        signUpCheck = history?.grant?.signUpCheck ?? .none
        wasAsked = history?.grant?.firstAskedAt != nil
    }
}

/// All changes to be written for one request.
package struct DecisionWrite: Sendable {
    package var team: Int64
    package var group: Int64
    /// The store's number of the app, for its rate of sign-ups.
    package var app: Int64
    /// Nil: the request names no known subject (an upgrade by `app_account`), or no grant may
    /// change.
    package var subject: GrantSubject?
    /// Nil: apply regardless of other changes (requests answered while the store was unavailable).
    package var expected: GrantStamp?
    package var nonce: ConsumedNonce?
    /// Whether a verified token proves the subject. Only then is an external account created.
    package var isVerified: Bool
    /// The user returned with a token issued after the revocation.
    package var isReturn = false
    /// The token's status; stored only if the grant has none.
    package var realUserStatus: Int?
    /// Sign-up required a check: pending until a pass.
    package var makesPending = false
    /// The event is a sign-up: counted for the app and, with a verified token, for the inbox.
    package var isSignUp = false
    /// Seconds since 1970.
    package var now: Int64
    /// The decision to log; its grant is filled in when it is written. Nil for a completion.
    package var record: DecisionRecord?
    /// Binds an app's own account to the grant.
    package var binding: AppAccountBinding?

    package init(
        team: Int64, group: Int64, app: Int64, subject: GrantSubject?, expected: GrantStamp?,
        nonce: ConsumedNonce?,
        isVerified: Bool, now: Int64, record: DecisionRecord?
    ) {
        self.team = team
        self.group = group
        self.app = app
        self.subject = subject
        self.expected = expected
        self.nonce = nonce
        self.isVerified = isVerified
        self.now = now
        self.record = record
    }
}

/// The result of a decision write.
package enum DecisionWriteResult: Sendable, Hashable {
    case written(grant: Int64?)
    /// The nonce was used before; nothing was written.
    case nonceConsumed(ConsumedNonce)
    /// The grant changed since; nothing was written. Read it again and decide again.
    case changed
    /// The app's account is bound to another grant, or by another decision; nothing was written.
    case boundAlready
}

/// The app's own account that an upgrade binds.
package struct AppAccountBinding: Sendable, Hashable {
    /// `DecisionMarks.appAccount`.
    package let mark: [UInt8]
    /// The decision that is completed by the binding.
    package let decisionID: String

    package init(mark: [UInt8], decisionID: String) {
        self.mark = mark
        self.decisionID = decisionID
    }
}
