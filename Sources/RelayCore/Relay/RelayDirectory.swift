// The data that the relay needs about accounts, and the protocol that provides it. The core itself
// does no I/O.

import InternetMessage

/// A domain or address from which a team sends.
package struct RegisteredSource: Sendable, Hashable {
    package enum Scope: Sendable, Hashable {
        /// The domain and everything below it; lower-case A-labels.
        case domain(String)
        /// Only this address.
        case address(AddrSpec)
    }

    package let scope: Scope
    /// Another envelope domain with an SPF pass that proves this source too. An administrator pairs
    /// it explicitly.
    package let pairedEnvelopeDomain: String?

    package init(scope: Scope, pairedEnvelopeDomain: String? = nil) {
        self.scope = scope
        self.pairedEnvelopeDomain = pairedEnvelopeDomain
    }
}

/// An inbox of a user.
package struct UserInbox: Sendable, Hashable {
    package let address: InboxAddress
    /// Unverified inboxes are searched for in replies, but prove nothing.
    package let isVerified: Bool
    /// Whether forwarding to it is suspended, because it refused too much (`SuspensionRate`). It
    /// still proves replies.
    package let isSuspended: Bool

    package init(address: InboxAddress, isVerified: Bool, isSuspended: Bool = false) {
        self.address = address
        self.isVerified = isVerified
        self.isSuspended = isSuspended
    }
}

/// What an administrator froze of an account: no mail passes in either direction. The raw values
/// are those of queries.
package enum AccountFreeze: Int64, Sendable, Hashable {
    case user = 1
    case team = 2
}

/// The data of one account that the relay needs: read in one step, for one recipient.
package struct RelayAccount: Sendable, Hashable {
    package let number: AccountNumber
    /// The address that mail for this account goes to: the one of the look-up, or the current one,
    /// or the last one if all are retired. A late bounce must still name it.
    package let relayAddress: AddrSpec
    /// The address that the team should use now, if it is known.
    package let currentAddress: AddrSpec?
    package let isForwardingOn: Bool
    /// Whether `relayAddress` is out of use.
    package let isRetired: Bool
    /// Whether the user still uses an app of the account.
    package let hasLiveGrant: Bool
    /// The inbox that receives forwards; nil while the user has none.
    package let inbox: UserInbox?
    /// All inboxes of the user, reply-only ones included.
    package let inboxes: [UserInbox]
    /// The user's name, if the account shares it.
    package let sharedName: String?
    /// The sources of the account's team.
    package let sources: [RegisteredSource]
    /// For a while after an app moved, the accounts to which the address leads for mail of other
    /// teams.
    package var successors: [RelayAccount]
    /// Whether the user has blocked senders of this account; `RelayDirectory.isBlocked` checks each
    /// one.
    package let hasBlocks: Bool
    /// The identifier of the account's team, for the log.
    package let team: String?
    /// The outgoing identity of the account's team; nil for the standard.
    package let identity: OutgoingIdentityName?
    /// Nil if nothing is frozen.
    package let freeze: AccountFreeze?
    /// Messages of the account that were counted on the day of the look-up: forwards if it was
    /// found by its address, and replies if by its number.
    package let counted: Int

    package init(
        number: AccountNumber, relayAddress: AddrSpec, currentAddress: AddrSpec? = nil,
        isForwardingOn: Bool = true,
        isRetired: Bool = false, hasLiveGrant: Bool = true, inbox: UserInbox?, inboxes: [UserInbox],
        sharedName: String? = nil,
        sources: [RegisteredSource], successors: [RelayAccount] = [], hasBlocks: Bool = false,
        team: String? = nil, identity: OutgoingIdentityName? = nil, freeze: AccountFreeze? = nil,
        counted: Int = 0
    ) {
        self.number = number
        self.relayAddress = relayAddress
        self.currentAddress = currentAddress
        self.isForwardingOn = isForwardingOn
        self.isRetired = isRetired
        self.hasLiveGrant = hasLiveGrant
        self.inbox = inbox
        self.inboxes = inboxes
        self.sharedName = sharedName
        self.sources = sources
        self.successors = successors
        self.hasBlocks = hasBlocks
        self.team = team
        self.identity = identity
        self.freeze = freeze
        self.counted = counted
    }

    /// Whether the address is in use and a grant remains.
    package var isActive: Bool { !isRetired && hasLiveGrant }
}

extension RelayAccount: CustomStringConvertible, CustomReflectable {
    /// Never a name or an inbox.
    package var description: String { "<\(number)>" }
    package var customMirror: Mirror { Mirror(self, children: ["number": number]) }
}

/// The direction of an account's message. Each direction has its own daily limit.
package enum LimitedDirection: String, Sendable, Hashable {
    case forward, reply
}

/// The events that are counted per account and day. They never show who wrote to whom.
package enum RelayCounter: String, Sendable, Hashable, CaseIterable {
    case forwarded, replied
    /// A permanent failure of the inbox, once per return path.
    case inboxBounced = "inbox_bounced"
    /// A report that went back to the envelope sender or the user.
    case reportRelayed = "report_relayed"
    /// A report that could not be relayed.
    case reportDropped = "report_dropped"
    /// Automatic mail beyond one per correspondent and day, or unproved mail at a return path.
    case automaticDropped = "automatic_dropped"
    /// The leak check found text that the rewriting had missed; the message was refused.
    case leakIncident = "leak_incident"
}

/// A permanent failure of an inbox, identified by the return path of the report.
package struct InboxFailure: Sendable, Hashable {
    /// The nonce of the return path; 20 bits.
    package let nonce: UInt64
    /// Three days since 1970: the last day of the return path, the day of the relayed message, and
    /// today.
    package let expiryDay: UInt64
    package let sentDay: UInt64
    package let day: UInt64

    package init(nonce: UInt64, expiryDay: UInt64, sentDay: UInt64, day: UInt64) {
        self.nonce = nonce
        self.expiryDay = expiryDay
        self.sentDay = sentDay
        self.day = day
    }
}

/// The result of recording a reported permanent failure of an inbox.
package enum FailureRecord: Sendable, Hashable {
    /// Already known, or the account was deleted.
    case known
    case recorded
    /// Recorded, and the inbox has now exceeded the rate, so forwarding to it is suspended.
    case suspended
}

/// The result of recording an answer to a verification message.
package enum AnswerRecord: Sendable, Hashable {
    /// No verification is in progress for this token, or the author is not the mailbox that got the
    /// verification message.
    case notTheInbox
    /// The first answer of this day, with the user's language if it is known.
    case first(language: String?)
    case repeated
}

/// An address that does not fit its token.
package struct StoredAddress: Sendable, Hashable {
    /// The key under which it is found (`AddressToken.storageKey`), in lower case.
    package let token: String
    package let address: AddrSpec
    /// For a return path: the day after which it may be deleted, in days since 1970. Nil for a
    /// reverse address.
    package let expiryDay: UInt64?

    package init(token: String, address: AddrSpec, expiryDay: UInt64? = nil) {
        self.token = token
        self.address = address
        self.expiryDay = expiryDay
    }

    /// Nil if the token holds its address.
    package init?(_ minted: MintedToken, expiryDay: UInt64? = nil) {
        guard let address = minted.addressToStore, let key = minted.storageKey else { return nil }
        self.init(token: key, address: address, expiryDay: expiryDay)
    }
}

/// The directory could not answer now. It never means that there is no such entry.
package struct DirectoryFailure: Error, Sendable {
    /// For the log; contains no inbox.
    package let detail: String

    package init(_ detail: String) { self.detail = detail }
}

/// Records about accounts: addresses of tokens, counts, marks. May block; callable from any thread.
package protocol RelayRecords: Sendable {
    /// The address stored under a token. The caller checks that the token was made for it. The
    /// look-up extends the storage of a reverse address by a year.
    func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec?

    /// Stores the addresses of tokens, each once, all in one step. Those of reverse addresses are
    /// kept for a year after the last mail that used them; those of return paths for some days
    /// longer than the message needs. Existing ones are not written again.
    /// - Parameter newPerDay: maximum reverse addresses stored for the account on this day, those
    ///   of earlier messages included.
    /// - Returns: false if this would exceed the limit; then nothing was stored.
    func store(
        _ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int
    ) throws(DirectoryFailure) -> Bool

    /// Counts one message if fewer than `limit` have been counted; false if the limit is reached.
    func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool

    /// Undoes what `reserve` counted, for a message that was not accepted after all. If this fails,
    /// one place is lost.
    func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64)

    /// Counts one forward of a team through a new host on a day (since 1970), if fewer than
    /// `ceiling` were counted in all, and fewer than its share if other teams send too; otherwise
    /// counts that it was deferred. One step for all processes.
    /// - Returns: whether the forward may leave.
    func reserveWarmUp(
        host: String, team: String, day: UInt64, ceiling: Int
    ) throws(DirectoryFailure) -> Bool

    /// Undoes what `reserveWarmUp` counted. If this fails, one place is lost.
    func releaseWarmUp(host: String, team: String, day: UInt64)

    /// Whether a copy with this mark was handed over and is still recorded.
    func isHandedOver(
        _ mark: [UInt8], account: AccountNumber, now: Int64
    ) throws(DirectoryFailure) -> Bool

    /// Records all copies that are about to be handed over, in one step and durably, until `until`
    /// (seconds since 1970). If this fails, no copy may be begun.
    func beginHandOver(
        _ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64) throws(DirectoryFailure)

    /// Records until `until` that a copy was handed over, by the marks of its recipients. Written
    /// at once, so that the end of this process loses none. If a power failure loses one, that copy
    /// is delivered twice.
    func rememberHandedOver(
        _ marks: [[UInt8]], account: AccountNumber, until: Int64) throws(DirectoryFailure)

    /// Deletes marks of copies that were handed over. Ignores unknown marks.
    func forgetHandedOver(_ marks: [[UInt8]], account: AccountNumber) throws(DirectoryFailure)

    /// True for the first automatic message of this account to this correspondent on this day.
    /// - Parameter correspondent: a keyed hash, so that nothing shows who wrote to whom.
    func reserveAutomatic(
        account: AccountNumber, correspondent: [UInt8], day: UInt64
    ) throws(DirectoryFailure) -> Bool

    /// Records a permanent failure of the inbox of this account: once for each return path, as
    /// `inboxBounced` of that day. In the same step, forwarding to the inbox is suspended if the
    /// rate is exceeded.
    func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord

    /// Records that the account's user complained about a message of the team (RFC 5965), and
    /// notifies the team. All in one step, so that a failed call can be repeated.
    /// - Parameters:
    ///   - mark: identifies the subject of the complaint; recorded once a day for each.
    ///   - provider: of the account's inbox; nil if it has none.
    /// - Returns: false if it is already known.
    func recordComplaint(
        of account: AccountNumber, mark: [UInt8], at provider: ProviderFamily?, day: UInt64
    ) throws(DirectoryFailure) -> Bool

    /// Records a receiver's report on mail in a relay domain's name.
    /// - Parameter reporter: the domain that is proved to have written the report.
    /// - Returns: false if it is already known, or if there were too many recently.
    func record(
        _ report: AggregateReport, reporter: String, now: Int64
    ) throws(DirectoryFailure) -> Bool

    /// Adds one. The store may write it later, so that mail does not wait for it.
    func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64)

    /// Adds one forward with this outcome for the account's team. Written later, like `count`.
    /// - Parameter now: seconds since 1970.
    func count(
        _ outcome: DeliveryOutcome, at provider: ProviderFamily, account: AccountNumber, now: Int64)
}

/// Accounts, and the records about them. May block; callable from any thread.
package protocol RelayDirectory: RelayRecords {
    /// The account of a relay address, by local part (lower case) and relay domain; nil if no such
    /// address was ever issued.
    func account(
        relayAddress localPart: String, domain: String
    ) throws(DirectoryFailure) -> RelayAccount?

    /// The account with this number and with its current relay address; nil if it was deleted.
    func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount?

    /// What the senders of an account's return paths are read against; nil if it was deleted.
    func senderContext(_ account: AccountNumber) throws(DirectoryFailure) -> SenderContext?

    /// The sources of any team that cover this address. Makes at most one look-up for each parent
    /// domain, and a domain has few.
    func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource]

    /// Whether the account's user has blocked this address, its domain or a parent domain.
    func isBlocked(_ author: AddrSpec, by account: AccountNumber) throws(DirectoryFailure) -> Bool

    /// Whether a forward of a team may go to a provider now. A message that passes although mail is
    /// slowed uses up one of those of the hour.
    /// - Parameters:
    ///   - team: the team's identifier.
    ///   - perHour: messages of a slowed team.
    ///   - now: seconds since 1970.
    func admission(
        of team: String, to provider: ProviderFamily, perHour: Int, now: Int64
    ) throws(DirectoryFailure) -> DeliveryAdmission

    /// Records that the proved author answered a verification message.
    func recordAnswer(
        to token: AnswerToken, author: AddrSpec
    ) throws(DirectoryFailure) -> AnswerRecord
}
