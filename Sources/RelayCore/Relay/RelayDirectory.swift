// What the relay must know about accounts, and the protocol that provides it. The core itself does no I/O.

import InternetMessage

/// A domain or address from which a team sends.
package struct RegisteredSource: Sendable, Hashable {
    package enum Scope: Sendable, Hashable {
        /// The domain and everything below it; lower-case A-labels.
        case domain(String)
        /// This address alone.
        case address(AddrSpec)
    }

    package let scope: Scope
    /// A foreign envelope domain whose SPF pass proves this source too; explicitly paired by an administrator.
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
    /// Whether forwarding to it is suspended, because it refused too much (`SuspensionRate`). It still proves replies.
    package let isSuspended: Bool

    package init(address: InboxAddress, isVerified: Bool, isSuspended: Bool = false) {
        self.address = address
        self.isVerified = isVerified
        self.isSuspended = isSuspended
    }
}

/// One account as the relay needs it: read in one step, for one recipient.
package struct RelayAccount: Sendable, Hashable {
    package let number: AccountNumber
    /// The address that mail for this account goes to: the one asked for, or the current one, or the last where all are retired:
    /// a late bounce still has to name it.
    package let relayAddress: AddrSpec
    /// The address that the team should use now, where it is known.
    package let currentAddress: AddrSpec?
    package let isForwardingOn: Bool
    /// Whether `relayAddress` is out of use.
    package let isRetired: Bool
    /// Whether the user still uses an app of the account.
    package let hasLiveGrant: Bool
    /// Where forwards go; nil while the user has none.
    package let inbox: UserInbox?
    /// All inboxes of the user, reply-only ones included.
    package let inboxes: [UserInbox]
    /// The user's name where the account shares it.
    package let sharedName: String?
    /// The sources of the account's team.
    package let sources: [RegisteredSource]
    /// The accounts that the address leads to for mail of other teams, for a while after an app moved to one of them.
    package var successors: [RelayAccount]
    /// Whether the user has blocked senders of this account: `RelayDirectory.isBlocked` tells which.
    package let hasBlocks: Bool
    /// The identifier of the account's team, for the log.
    package let team: String?
    /// Messages of the account that were counted on the day of the look-up: forwards, where it was found by its address, and
    /// replies, where by its number.
    package let counted: Int

    package init(
        number: AccountNumber, relayAddress: AddrSpec, currentAddress: AddrSpec? = nil, isForwardingOn: Bool = true,
        isRetired: Bool = false, hasLiveGrant: Bool = true, inbox: UserInbox?, inboxes: [UserInbox], sharedName: String? = nil,
        sources: [RegisteredSource], successors: [RelayAccount] = [], hasBlocks: Bool = false, team: String? = nil,
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

/// The direction of an account's message; each has its own daily limit.
package enum LimitedDirection: String, Sendable, Hashable {
    case forward, reply
}

/// What is counted per account and day; never who wrote to whom.
package enum RelayCounter: String, Sendable, Hashable, CaseIterable {
    case forwarded, replied
    /// A permanent failure of the inbox, once per return path.
    case inboxBounced = "inbox_bounced"
    /// A report that went back to the envelope sender or the user.
    case reportRelayed = "report_relayed"
    /// A report that could not be passed on.
    case reportDropped = "report_dropped"
    /// Automatic mail beyond one per correspondent and day, or unproved at a return path.
    case automaticDropped = "automatic_dropped"
    /// The leak check found what the rewriting had missed; the message was refused.
    case leakIncident = "leak_incident"
}

/// A permanent failure of an inbox, recognized by the return path that it came to.
package struct InboxFailure: Sendable, Hashable {
    /// The nonce of the return path; 40 bits.
    package let nonce: UInt64
    /// Days since 1970: the last day of the return path, when the message was relayed, and today.
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
    /// Known already, or the account is gone.
    case known
    case recorded
    /// Recorded, and the inbox has now passed the rate: forwarding to it is suspended.
    case suspended
}

/// The result of recording an answer to a verification message.
package enum AnswerRecord: Sendable, Hashable {
    /// No verification is in progress under this token, or the author is not the mailbox that was written to.
    case notTheInbox
    /// The first answer of this day; with the user's language, if it is known.
    case first(language: String?)
    case repeated
}

/// An address that does not fit its token.
package struct StoredAddress: Sendable, Hashable {
    /// The key under which it is found (`AddressToken.storageKey`), in lower case.
    package let token: String
    package let address: AddrSpec
    /// Of a return path: days since 1970 after which it may be deleted. Nil for a reverse address.
    package let expiryDay: UInt64?

    package init(token: String, address: AddrSpec, expiryDay: UInt64? = nil) {
        self.token = token
        self.address = address
        self.expiryDay = expiryDay
    }

    /// Nil if the token holds its address.
    package init?(_ minted: MintedToken, expiryDay: UInt64? = nil) {
        guard let address = minted.addressToStore else { return nil }
        self.init(token: minted.storageKey, address: address, expiryDay: expiryDay)
    }
}

/// The directory could not answer just now. Never treated as *there is none*.
package struct DirectoryFailure: Error, Sendable {
    /// For the log; holds no inbox.
    package let detail: String

    package init(_ detail: String) { self.detail = detail }
}

/// Records about accounts: addresses of tokens, counts, marks. May block; callable from any thread.
package protocol RelayRecords: Sendable {
    /// The address stored under a token; the caller checks that it is the one that the token was made for. The look-up keeps
    /// that of a reverse address for another year.
    func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec?

    /// Stores the addresses of tokens, each once, all in one step. Those of reverse addresses are kept for a year from the last
    /// mail that used them, those of return paths some days longer than the message needs. Existing ones are not written again.
    /// - Parameter newPerDay: reverse addresses that may be stored for the account on this day, those of earlier messages
    ///   included.
    /// - Returns: false if there would be more: then nothing was stored.
    func store(_ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int) throws(DirectoryFailure) -> Bool

    /// Counts one message where fewer than `limit` have been counted; false if the limit is reached.
    func reserve(_ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int) throws(DirectoryFailure) -> Bool

    /// Undoes what `reserve` counted, for a message that was not accepted after all. Where this fails, one place is lost.
    func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64)

    /// Whether a copy with this mark was handed over and is remembered.
    func isHandedOver(_ mark: [UInt8], account: AccountNumber, now: Int64) throws(DirectoryFailure) -> Bool

    /// Records all copies that are about to be handed over, in one step and durably, until `until` (seconds since 1970). Where
    /// this fails, no copy may be begun.
    func beginHandOver(_ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64) throws(DirectoryFailure)

    /// Remembers that a copy was handed over, by the marks of its recipients, until `until`. Written at once, so that the end of
    /// this process loses none; where a power failure loses one, that copy comes twice.
    func rememberHandedOver(_ marks: [[UInt8]], account: AccountNumber, until: Int64) throws(DirectoryFailure)

    /// Forgets marks of copies that were handed over. Those that are not known are passed over.
    func forgetHandedOver(_ marks: [[UInt8]], account: AccountNumber) throws(DirectoryFailure)

    /// True for the first automatic message of this account to this correspondent on this day.
    /// - Parameter correspondent: a keyed hash, so that nothing says who wrote to whom.
    func reserveAutomatic(account: AccountNumber, correspondent: [UInt8], day: UInt64) throws(DirectoryFailure) -> Bool

    /// Records a permanent failure of the inbox that this account leads to: once for each return path, as `inboxBounced` of that
    /// day. In the same step forwarding to the inbox is suspended where the rate is passed.
    func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord

    /// Records that the account's user complained about a message of the team (RFC 5965), so that the team is notified: all in
    /// one step, so that a failed call can be repeated.
    /// - Parameter mark: identifies what the complaint names; recorded once a day for each.
    /// - Returns: false if it is known already.
    func recordComplaint(of account: AccountNumber, mark: [UInt8], day: UInt64) throws(DirectoryFailure) -> Bool

    /// Records a receiver's report on mail in a relay domain's name.
    /// - Parameter reporter: the domain that is proved to have written the report.
    /// - Returns: false if it is known already, or there were too many recently.
    func record(_ report: AggregateReport, reporter: String, now: Int64) throws(DirectoryFailure) -> Bool

    /// Adds one; may be written later, off the path of the mail.
    func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64)
}

/// Accounts, and the records about them. May block; callable from any thread.
package protocol RelayDirectory: RelayRecords {
    /// The account of a relay address, by local part (lower case) and relay domain; nil if no such address was ever issued.
    func account(relayAddress localPart: String, domain: String) throws(DirectoryFailure) -> RelayAccount?

    /// The account with this number and with its current relay address; nil if it was deleted.
    func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount?

    /// The sources of any team that cover this address. A domain has few parents: at most one look-up for each.
    func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource]

    /// Whether the account's user has blocked this address, its domain or one above that.
    func isBlocked(_ author: AddrSpec, by account: AccountNumber) throws(DirectoryFailure) -> Bool

    /// Records that the proved author answered a verification message.
    func recordAnswer(to token: AnswerToken, author: AddrSpec) throws(DirectoryFailure) -> AnswerRecord
}
