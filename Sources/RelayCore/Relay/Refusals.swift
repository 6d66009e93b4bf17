// Refusals with their details for the log. `RefusalReply` has the constant data of each reply.

import InternetMessage

extension Refusal {
    // MARK: At RCPT

    package static func unknownAddress(_ detail: String) -> Refusal {
        Refusal(.unknownAddress, detail: detail)
    }

    package static func badReturnPath(_ detail: String) -> Refusal {
        Refusal(.badReturnPath, detail: detail)
    }

    /// A reverse address of another user at a relay domain, from a text, or from mail sent before
    /// such addresses were removed.
    package static let anotherUsersAddress = Refusal(
        .anotherUsersAddress, detail: "a reverse address whose correspondent is at a relay domain")

    /// An answer to the message that verifies an inbox. Its author already got a message about it
    /// today.
    package static let answerNotRead = Refusal(
        .verificationAnswer, detail: "another answer to a verification message on the same day")

    /// An answer to the message that verifies an inbox, without proof that it comes from that
    /// inbox.
    static func answerNotProved(_ reason: RelayReason) -> Refusal {
        Refusal(.verificationAnswerUnproved, reason: reason)
    }

    package static let otherScope = Refusal(
        .otherScope,
        detail: "the transaction already carries another account or the operator's own mail")

    /// The sender repeats the message, and learns in separate transactions which recipient refused.
    package static let fanOutRefused = Refusal(
        .fanOutRefused,
        detail: "a recipient was refused; when the message is repeated the sender learns which")

    /// A reply to all that also names relay addresses of other accounts. Answered like
    /// `fanOutRefused`, after these are recorded.
    static let mixedAccounts = Refusal(
        .fanOutRefused,
        reason: RelayReason(
            .mixedAccounts, "a relay address of another account next to a reverse address"))

    package static let forgedCopy = Refusal(
        .forgedCopy,
        detail:
            "a session at the smtpd for copies (fan_out_smtpd) without Postern's login: a local user, or another key file"
    )

    package static func fanOutFailed(_ detail: String) -> Refusal {
        Refusal(.fanOutFailed, detail: detail)
    }

    package static let tooManyRecipients = Refusal(
        .tooManyRecipients, detail: "more recipients of one account than the limit")

    // MARK: State of an account, for a proved sender only

    package static let forwardingOff = Refusal(.forwardingOff)
    package static let senderBlocked = Refusal(.senderBlocked)
    package static let retired = Refusal(.retired, detail: "no grants remain")
    package static let replaced = Refusal(
        .replaced, detail: "the address was replaced, or retired by an administrator")

    /// For an account that is not active.
    static func inactive(_ account: RelayAccount) -> Refusal {
        account.hasLiveGrant ? .replaced : .retired
    }

    /// For a forward. A user's freeze is permanent for the message, as its team gets an event; a
    /// team's mail waits with its sender, as the freeze may end.
    package static func frozenForward(_ freeze: AccountFreeze) -> Refusal {
        switch freeze {
        case .user: Refusal(.userFrozen, detail: "an administrator froze the user")
        case .team: Refusal(.teamFrozen, detail: "an administrator froze the team")
        }
    }

    /// For a reply: the user reads it at once, and not after days.
    package static func frozenReply(_ freeze: AccountFreeze) -> Refusal {
        let code: RelayReason.Code =
            switch freeze {
            case .user: .userFrozen
            case .team: .teamFrozen
            }
        return Refusal(
            .replyFrozen, reason: RelayReason(code, "an administrator froze the user or the team"))
    }

    package static let inboxUnverified = Refusal(.inboxUnverified)

    /// Temporary: after the owner confirms the inbox again, the waiting mail arrives.
    package static let inboxSuspended = Refusal(
        .inboxSuspended,
        detail:
            "the inbox refused too much; postern inbox show gives details, inbox confirm ends the suspension"
    )

    /// - Parameter provider: for the log; the reply does not name it.
    static func delivery(
        _ admission: DeliveryAdmission, at provider: ProviderFamily
    ) -> Refusal? {
        switch admission {
        case .open: nil
        case .slowed:
            Refusal(.deliverySlowed, detail: "the team's mail to \(provider) is slowed")
        case .held: Refusal(.deliveryHeld, detail: "the team's mail to \(provider) is held")
        }
    }

    /// - Parameter provider: for the log; the reply does not name it.
    static let warmUp = Refusal(.warmUp, detail: "the day's messages of this host are used up")

    package static func dailyLimit(_ limit: Int) -> Refusal {
        Refusal(
            .dailyLimit, "\(limit)",
            detail: "the account has reached its limit for this direction and day")
    }

    package static func storedAddressLimit(_ limit: Int) -> Refusal {
        Refusal(
            .storedAddressLimit, "\(limit)",
            detail: "the account has reached its limit of new stored addresses for this day")
    }

    // MARK: The sender

    package static func unauthorizedSender(_ sender: String, from: String) -> Refusal {
        Refusal(
            .unauthorizedSender, printable(sender), printable(from),
            detail: "the domain of From is not a registered source of any team")
    }

    /// Every refused reply gets the same text, regardless of the cause. The cause is in `reason`.
    package static func replyNotProved(_ reason: RelayReason) -> Refusal {
        Refusal(.replyNotProved, reason: reason)
    }

    /// The code is that of a failed proof: no mechanism can prove an unknown author.
    package static func unreadableFrom(_ defect: AuthorDefect) -> Refusal {
        Refusal(.unreadableFrom, "\(defect)", detail: "\(defect)")
    }

    /// The signature may cover one of the two, while a program shows the other.
    package static func repeatedField(_ field: OnceField) -> Refusal {
        Refusal(.repeatedField, field.rawValue, detail: field.rawValue)
    }

    /// A field, of any name, that two programs read differently.
    package static let unsafeHeader = Refusal(
        .unsafeHeader, detail: "NUL, bare CR or another octet that programs interpret differently")

    package static func proofFailed(_ detail: String) -> Refusal {
        Refusal(.proofFailed, detail: detail)
    }
    package static func dkimFailed(_ detail: String) -> Refusal {
        Refusal(.dkimFailed, detail: detail)
    }
    package static func spfFailed(_ detail: String) -> Refusal {
        Refusal(.spfFailed, detail: detail)
    }
    package static func dmarcFailed(_ detail: String) -> Refusal {
        Refusal(.dmarcFailed, detail: detail)
    }

    package static func authenticationTrouble(_ detail: String) -> Refusal {
        Refusal(.authenticationTrouble, detail: detail)
    }

    package static func storeTrouble(_ detail: String) -> Refusal {
        Refusal(.storeTrouble, detail: detail)
    }

    /// The directory's answer. If it cannot answer now, the message is deferred.
    static func deferring<Value>(
        _ answer: @autoclosure () throws(DirectoryFailure) -> Value
    ) throws(Refusal) -> Value {
        do { return try answer() } catch { throw .storeTrouble(error.detail) }
    }

    package static func notConfigured(_ detail: String) -> Refusal {
        Refusal(.notConfigured, detail: detail)
    }

    // MARK: The message

    package static func malformedHeader(_ detail: String) -> Refusal {
        Refusal(.malformedHeader, printable(detail), detail: detail)
    }

    /// - Parameter detail: the limit, as in `more than 1000 fields`.
    package static func headerTooLarge(_ detail: String) -> Refusal {
        Refusal(.headerTooLarge, printable(detail), detail: detail)
    }

    package static func tooManyAddresses(_ limit: Int) -> Refusal {
        Refusal(
            .tooManyAddresses, "\(limit)",
            detail: "more addresses that do not fit a reverse address than a message may have")
    }

    package static func fieldTooLong(_ name: String) -> Refusal {
        Refusal(.fieldTooLong, printable(name), detail: printable(name))
    }

    package static func malformedBody(_ detail: String) -> Refusal {
        Refusal(.malformedBody, printable(detail), detail: detail)
    }

    package static func messageTooLarge(_ limit: Int) -> Refusal {
        Refusal(.messageTooLarge, "\(limit)")
    }

    /// A piece of a message. The joined message could contain what no piece contains, such as an
    /// inbox or an address that bypasses the relay.
    package static let partialMessage = Refusal(.partialMessage)

    package static let loop = Refusal(.loop)

    /// The mark on the message was made a moment ago, for the same entry of Postfix's queue.
    package static let listedTwice = Refusal(
        .listedTwice,
        detail:
            "smtpd_milters or non_smtpd_milters names Postern twice; run postern setup postfix --apply"
    )

    /// - Parameters:
    ///   - part: for the user: printable, and without any part of an inbox.
    ///   - detail: for the log; if nil, `part` is used.
    package static func unrewritable(part: String, detail: String? = nil) -> Refusal {
        Refusal(.unrewritable, printable(part), detail: detail ?? part)
    }

    /// The leak check found text that the rewriting had missed. The user sees an unrewritable part;
    /// the operator sees an incident.
    package static func leakIncident(place: String) -> Refusal {
        Refusal(.unrewritable, printable(place), reason: RelayReason(.leakIncident, place))
    }

    /// The relay cannot know whether it contains the user's address, as the search would cost more
    /// than a message of this size may.
    static let tooMuchWork = Refusal(
        .tooMuchWork,
        detail:
            "compressed data, or data encoded again and again, beyond what a message of this size may take to search"
    )

    package static let encryptedReply = Refusal(
        .encryptedReply, detail: "encrypted with PGP or S/MIME")

    /// Parameters as in `unrewritable`.
    package static func signedReply(part: String, detail: String) -> Refusal {
        Refusal(.signedReply, printable(part), detail: detail)
    }

    /// The sender tries again when there is memory. The message is then kept from its beginning.
    package static let forwardMemory = Refusal(
        .memory,
        reason: RelayReason(
            .forwardMemory, "there was no memory to keep a forward that must be rewritten"))

    package static let replyMemory = Refusal(
        .memory,
        reason: RelayReason(.replyMemory, "the memory limit for the bodies of replies is reached"))

    /// SMTP text is printable ASCII. Other octets, and `%`, which an attacker could add, become
    /// `?`. At most 120 octets.
    private static func printable(_ text: String) -> String {
        String(
            decoding: text.utf8.prefix(120).map {
                (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "%") ? $0 : UInt8(ascii: "?")
            }, as: UTF8.self)
    }
}
