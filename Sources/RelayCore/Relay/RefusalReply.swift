// Every reply that refuses mail, declared once. Each has its code and text, the reasons in the log,
// the audience, and the remedies for sender and operator. docs/OPERATING-REFUSALS.md shows them as
// a table.

/// A reply to mail that is refused or deferred.
package enum RefusalReply: Sendable, Hashable, CaseIterable {
    // At RCPT
    case unknownAddress, badReturnPath, verificationAnswer, verificationAnswerUnproved,
        anotherUsersAddress
    // The sender
    case unauthorizedSender, unreadableFrom, unsafeHeader, repeatedField
    case proofFailed, dkimFailed, spfFailed, dmarcFailed, replyNotProved
    // The state of an account
    case forwardingOff, senderBlocked, retired, replaced, userFrozen, teamFrozen, replyFrozen,
        inboxUnverified, inboxSuspended,
        dailyLimit, storedAddressLimit, deliverySlowed, deliveryHeld, warmUp
    // Several recipients
    case fanOutFailed, fanOutRefused, otherScope, tooManyRecipients, forgedCopy
    // This host
    case authenticationTrouble, storeTrouble, notConfigured, memory
    // The message
    case malformedBody, malformedHeader, headerTooLarge, messageTooLarge, tooManyAddresses,
        fieldTooLong, listedTwice, loop
    case partialMessage, unrewritable, tooMuchWork, signedReply, encryptedReply

    /// Those who may learn of it, besides the sender's own server.
    package enum Audience: Sendable, Hashable {
        /// Every team that registered the author.
        case teams
        /// The account's own team: the reply says something about the account.
        case ownTeam
    }

    /// The constant data of a reply.
    package struct Facts: Sendable {
        /// Three-digit reply code (RFC 5321) and enhanced status code (RFC 3463).
        package let code: Int
        package let enhanced: String
        /// Printable ASCII; each `{}` is replaced by a value. Contains nothing that would help an
        /// attacker, and never an inbox.
        package let text: String
        /// The words in the log; the first is the default.
        package let reasons: [RelayReason.Code]
        package let audience: Audience
        /// The reason that the user of the account sees; nil if the sender only repeats the
        /// message, or if no forward gets this reply.
        package let forUser: UserRefusal?
        /// The meaning, and the remedy, in Markdown.
        package let meaning: String
        package let remedy: String

        fileprivate init(
            _ code: Int, _ enhanced: String, _ text: String, _ reasons: RelayReason.Code...,
            to audience: Audience = .teams,
            forUser: UserRefusal?, means meaning: String, remedy: String
        ) {
            self.code = code
            self.enhanced = enhanced
            self.text = text
            self.reasons = reasons
            self.audience = audience
            self.forUser = forUser
            self.meaning = meaning
            self.remedy = remedy
        }
    }

    /// As in `550 5.7.26`.
    package var status: String { "\(facts.code) \(facts.enhanced)" }

    /// The text with its values filled in, in order.
    package func text(_ values: [String]) -> String {
        var remaining = values[...]
        var out: [UInt8] = []
        for octet in facts.text.utf8 {
            switch octet {
            case UInt8(ascii: "{"): out += (remaining.popFirst() ?? "").utf8
            case UInt8(ascii: "}"): continue
            default: out.append(octet)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    package var facts: Facts {
        switch self {
        case .unknownAddress:
            Facts(
                550, "5.1.1", "No such address here", .unknownAddress, forUser: .stranger,
                means:
                    "never issued, malformed, or its account was deleted; or the sender is proved, but registered by another team",
                remedy: "the sender: check the address. You: `postern source list TEAM`")
        case .badReturnPath:
            Facts(
                550, "5.7.1", "This address takes delivery reports only", .badReturnPath,
                forUser: nil,
                means:
                    "a return path with a wrong MAC, or an expired one, or mail to it that is not a report",
                remedy: "nothing; return paths are not for people")
        case .verificationAnswer:
            Facts(
                550, "5.7.1", Self.verificationText, .answerNotRead, forUser: nil,
                means:
                    "a user replied again, on the same day, to the message that verifies an inbox",
                remedy: "nothing; the message says where to enter its code")
        case .verificationAnswerUnproved:
            Facts(
                550, "5.7.26", Self.verificationText, .notTheVerifiedInbox, .replyNotProved,
                .unclearAuthor, forUser: nil,
                means:
                    "a reply to the message that verifies an inbox is not proved to come from that inbox",
                remedy: "nothing; the message says where to enter its code")
        case .anotherUsersAddress:
            Facts(
                550, "5.1.1",
                "This is the address of another user of this relay; only the team can write to that user",
                .anotherUsersAddress, forUser: nil,
                means:
                    "a user replies to another user's relay address, taken from older mail or from a text",
                remedy: "nothing: only the team writes to both")
        case .unauthorizedSender:
            Facts(
                550, "5.7.1",
                "<{}>: unauthorized sender; the domain of From ({}) must be registered as an outbound source",
                .unregisteredSource, forUser: .stranger,
                means: "no team has registered the author's domain or address",
                remedy: "`postern source add TEAM DOMAIN`")
        case .unreadableFrom:
            Facts(
                550, "5.7.26", "From cannot be read: {}", .unclearAuthor, forUser: .unproved,
                means:
                    "From has no address, several, or one that programs could read differently; the text names the problem",
                remedy: "the team: write `\"Name\" <address>`")
        case .unsafeHeader:
            Facts(
                550, "5.7.26",
                "The header section cannot be read safely: NUL, bare CR or another octet that programs interpret differently",
                .unsafeHeader, forUser: .unproved,
                means: "a header field contains NUL, bare CR or the like",
                remedy: "the team: see what makes the message")
        case .repeatedField:
            Facts(
                550, "5.7.26", "The header section cannot be read safely: more than one {} field",
                .repeatedField,
                forUser: .unproved,
                means:
                    "a second Subject, Date, To, Sender, Reply-To or Message-ID, or a second MIME-Version, Content-Type, "
                    + "Content-Transfer-Encoding or Content-Disposition with another value: the signature may cover one "
                    + "of the two, while a program shows the other",
                remedy: "the team: send each of them once")
        case .proofFailed:
            Facts(
                550, "5.7.26", "Neither a valid DKIM signature nor SPF proves the domain of From",
                .proofFailed,
                forUser: .unproved, means: "no proof for the author",
                remedy:
                    "the team: sign with its own domain. `postern source check`, `postern verify message`"
            )
        case .dkimFailed:
            Facts(
                550, "5.7.20", "No valid DKIM signature of the domain of From", .dkimFailed,
                forUser: .unproved,
                means: "there are aligned signatures, but none is valid over the whole body",
                remedy:
                    "the team: see the detail in the log (the key record, or a mailing list that changed the mail)"
            )
        case .spfFailed:
            Facts(
                550, "5.7.23", "SPF does not prove the domain of From", .spfFailed,
                forUser: .unproved,
                means: "only the envelope domain is aligned, and SPF does not pass",
                remedy: "the team: add the sending address to SPF, or sign")
        case .dmarcFailed:
            Facts(
                550, "5.7.26", "DMARC fails, and the domain of From asks that such mail be refused",
                .dmarcFailed,
                forUser: .unproved,
                means:
                    "the domain that proves the author (a child or parent under `adkim=s` or `aspf=s`, or a paired envelope domain) is not "
                    + "aligned by the author's own DMARC record, and the record says `quarantine` or `reject` (`t=y` counts one step "
                    + "lower; `sp`, `np` as they apply)",
                remedy:
                    "the team: sign with the domain of From itself. `postern source check`, `postern verify message`"
            )
        case .replyNotProved:
            Facts(
                550, "5.7.26",
                "Write from the mailbox that this address belongs to; its mail must pass SPF or DKIM for the domain of From",
                .replyNotProved, .badReverseAddress, .unclearAuthor, .unsafeHeader, .repeatedField,
                .accountDeleted,
                .notTheUsersInbox, forUser: nil,
                means: "a reply that is refused; the text is the same for all causes",
                remedy:
                    "the log says which cause. For an alias of the user: `postern inbox add USER ADDRESS --reply-only`, then "
                    + "`postern inbox confirm`")
        case .forwardingOff:
            Facts(
                550, "5.2.1", "The owner of this address has switched forwarding off",
                .forwardingOff, to: .ownTeam,
                forUser: .forwardingOff, means: "", remedy: "nothing; it is the user's wish")
        case .senderBlocked:
            Facts(
                550, "5.7.1", "The owner of this address does not accept mail from this sender",
                .senderBlocked, to: .ownTeam,
                forUser: .blocked, means: "",
                remedy: "nothing; the user blocked the domain or address on `/me`")
        case .retired:
            Facts(
                550, "5.1.6", "This address is no longer in use", .addressRetired, to: .ownTeam,
                forUser: .stopped,
                means: "the user has stopped using every app of the team",
                remedy: "the team stops writing there")
        case .replaced:
            // The sender gets the same text, as only an event tells the team that there is another
            // address.
            Facts(
                550, "5.1.6", "This address is no longer in use", .addressRetired, to: .ownTeam,
                forUser: .replaced,
                means: "an earlier address of the account: the user replaced it, or it was retired",
                remedy:
                    "the team: write to the address in the event, or in the response to the next sign-in"
            )
        case .userFrozen:
            Facts(
                550, "5.2.1",
                "The operator of this relay has frozen this address; it takes no mail", .userFrozen,
                to: .ownTeam, forUser: .frozen,
                means: "an administrator froze the user. The team got `email-disabled`",
                remedy:
                    "`postern user show USER`, `postern audit list --action 'user.*freeze'`; `postern user unfreeze USER` ends it"
            )
        case .teamFrozen:
            Facts(
                451, "4.7.1",
                "The operator of this relay has frozen the mail of this sender; ask the operator",
                .teamFrozen, to: .ownTeam, forUser: .frozen,
                means:
                    "an administrator froze the team. Its servers keep the mail, and it arrives if the freeze ends in time",
                remedy:
                    "`postern team show TEAM`, `postern audit list --action 'team.*freeze'`; `postern team unfreeze TEAM` ends it"
            )
        case .replyFrozen:
            Facts(
                550, "5.7.1",
                "The operator of this relay has frozen your account, or those you write to; ask the operator",
                .userFrozen, .teamFrozen, forUser: nil,
                means: "a reply of a frozen user, or to a frozen team; the log says which",
                remedy: "`postern user unfreeze USER`, `postern team unfreeze TEAM`")
        case .inboxUnverified:
            Facts(
                451, "4.2.1", "The owner of this address has not confirmed it yet; try again later",
                .inboxUnverified,
                to: .ownTeam, forUser: .inbox, means: "no verified inbox to forward to",
                remedy: "`postern inbox confirm USER INBOX`")
        case .inboxSuspended:
            Facts(
                451, "4.2.1",
                "The mailbox behind this address refuses mail and must be confirmed again; try again later",
                .inboxSuspended,
                to: .ownTeam, forUser: .inbox,
                means:
                    "the inbox refused too much permanently (`suspension.*`). When the suspension began, the log said "
                    + "`\(RelayReason.Code.inboxNowSuspended)`",
                remedy:
                    "`postern inbox show USER INBOX`. `postern inbox confirm USER INBOX` ends the suspension, and the waiting "
                    + "mail arrives. After an update that counts fewer answers, suspensions of five or more inboxes of one "
                    + "provider within 24 hours end by themselves: `postern status` says so for a week, and the audit "
                    + "(`inbox.resume`)")
        case .dailyLimit:
            Facts(
                452, "4.7.1", "More than {} messages today; try again after midnight (UTC)",
                .dailyLimit, to: .ownTeam,
                forUser: .limit,
                means:
                    "`limits.messages_per_day` for this account and direction; the day ends at 00:00 UTC",
                remedy: "the sender retries; raise the limit if it is too low")
        case .storedAddressLimit:
            Facts(
                452, "4.7.1",
                "More than {} long addresses that are new today; try again after midnight (UTC)",
                .storedAddressLimit, to: .ownTeam, forUser: .limit,
                means: "more than 2,000 new addresses to store, for this account and day",
                remedy: "the sender retries; check what the team sends")
        case .deliverySlowed:
            Facts(
                451, "4.7.1",
                "Mail of this sender is slowed here after complaints or refusals; try again in an hour",
                .deliverySlowed, to: .ownTeam, forUser: .waiting,
                means:
                    "users of the provider complained about mail of this team, or the provider refuses it for its reputation "
                    + "(`delivery.*`); some messages of each hour pass",
                remedy:
                    "the team: send less, and only to people who want it. `postern delivery show --team TEAM`, `postern delivery allow`"
            )
        case .deliveryHeld:
            Facts(
                451, "4.7.1",
                "Mail of this sender waits here after many complaints or refusals; ask the operator of this relay",
                .deliveryHeld, to: .ownTeam, forUser: .waiting,
                means:
                    "the same, and it went on, or was far above the thresholds; or an administrator holds the mail",
                remedy:
                    "`postern delivery show --team TEAM`; then `postern delivery allow TEAM PROVIDER`, or leave it: it ends by itself when the "
                    + "figures recover")
        case .warmUp:
            Facts(
                451, "4.4.5", "This host is new and sends only so much a day; try again later",
                .warmUp, forUser: nil,
                means:
                    "the ceiling of `delivery.warm_up` for this day is reached, or the team's half of it if other teams send too",
                remedy:
                    "nothing: the sender retries, and the ceiling rises each day (UTC). `postern status` shows how often mail waits"
            )
        case .fanOutFailed:
            Facts(
                451, "4.3.0",
                "Temporary trouble here with a message to several users; try again later",
                .fanOutFailed,
                forUser: nil,
                means: "a copy could not be handed to `fan_out_smtpd`; the log says why",
                remedy:
                    "nothing: the message comes again, and users who have it already do not get it twice"
            )
        case .fanOutRefused:
            Facts(
                451, "4.3.0",
                "Not every recipient can get this message; send it again to learn which cannot",
                .fanOutRefused,
                .mixedAccounts, forUser: nil,
                means:
                    "one of several users may not get it, or relay addresses and reverse addresses come together and the sender "
                    + "may not write to one of them",
                remedy:
                    "nothing: when the message is repeated, that recipient gets a transaction of its own, and is refused in it"
            )
        case .otherScope:
            Facts(
                452, "4.5.3",
                "Recipients of another account need a separate transaction; send this one again",
                .otherScope,
                forUser: nil,
                means:
                    "recipients that cannot share a transaction, or no service accepts copies (*A message to several users*)",
                remedy: "nothing: the sending server sends the rest by itself")
        case .tooManyRecipients:
            Facts(
                452, "4.5.3", "Too many recipients; send the rest in another transaction",
                .tooManyRecipients, forUser: nil,
                means: "`limits.recipients`", remedy: "nothing: the same")
        case .forgedCopy:
            Facts(
                451, "4.7.0", "This port accepts only message copies from Postern", .forgedCopy,
                forUser: nil,
                means:
                    "a session at `fan_out_smtpd` without the login that Postern gives: a local user, or a host with another key "
                    + "file",
                remedy: "find out who; *A message to several users*")
        case .authenticationTrouble:
            Facts(
                451, "4.4.3", "The sender cannot be checked just now; try again later", .dnsTrouble,
                forUser: nil,
                means:
                    "no proof passed, but a DNS failure prevented one that could pass; or the DMARC record of the author's "
                    + "domain is needed, but could not be read",
                remedy: "check the resolver if it persists")
        case .storeTrouble:
            Facts(
                451, "4.3.0", "Temporary trouble here; try again later", .storeTrouble,
                forUser: nil,
                means: "the database cannot be read or written",
                remedy: "disk, permissions; `postern doctor`")
        case .notConfigured:
            Facts(
                451, "4.3.5", "This host is not set up for that yet; try again later",
                .notConfigured, forUser: nil,
                means: "`operator_address` is missing, or mail cannot be signed",
                remedy: "the detail says which")
        case .memory:
            Facts(
                452, "4.3.1", "Too much mail at once; try again later", .replyMemory,
                .forwardMemory, forUser: nil,
                means:
                    "`limits.reply_memory` is in use; or a forward must be rewritten, but its beginning was discarded for lack of "
                    + "memory: when it comes again it is held from its beginning",
                remedy: "nothing; raise the limit if it is frequent")
        case .malformedBody:
            Facts(
                550, "5.6.0", "The body cannot be read safely: {}", .malformedBody,
                forUser: .content,
                means:
                    "parts nested deeper than 32, more than 10,000 of them, one with a header section of over 256 kB, or a "
                    + "calendar that cannot be decoded",
                remedy: "the sender's program is at fault")
        case .malformedHeader:
            Facts(
                550, "5.6.0", "The header section cannot be read safely: {}", .malformedHeader,
                forUser: .content,
                means:
                    "octets that two programs read differently, in a report or in mail to the relay itself: NUL or a bare CR in a field",
                remedy: "the sender's program is at fault")
        case .headerTooLarge:
            Facts(
                550, "5.6.0", "The header section is too large: {}", .headerLimit,
                forUser: .content,
                means:
                    "a field of `limits.header_field` octets or more, more fields than `limits.header_fields`, or more octets in "
                    + "all than `limits.header_size`",
                remedy:
                    "a loop of programs that add fields, or a list of thousands of recipients; raise the limit if such mail is wanted"
            )
        case .messageTooLarge:
            Facts(
                552, "5.3.4", "Larger than {} octets", .messageTooLarge, forUser: .content,
                means: "`limits.message_size`, or for a reply a quarter of `limits.reply_memory`",
                remedy: "")
        case .tooManyAddresses:
            Facts(
                554, "5.5.3",
                "More than {} long addresses in the header section; write to fewer people at once",
                .tooManyAddresses, forUser: .content,
                means:
                    "200 addresses in one forward that do not fit a reverse address (too long, upper-case letters, no dot-atom)",
                remedy: "the team: write to fewer people at once")
        case .fieldTooLong:
            Facts(
                552, "5.3.4",
                "The header field {} is too long once its addresses are rewritten; write to fewer people at once",
                .fieldTooLong,
                forUser: .content,
                means: "an outgoing field of more than 65,500 octets, with about 600 recipients",
                remedy: "the sender: write to fewer people at once")
        case .listedTwice:
            Facts(
                554, "5.4.6",
                "This message has already passed Postern: this Postfix's lists of milters name Postern twice",
                .listedTwice,
                forUser: .content,
                means:
                    "`smtpd_milters` or `non_smtpd_milters` names Postern twice, perhaps through a reference to another setting. "
                    + "Postfix's own bounces wait (`451`)",
                remedy: "`postern setup postfix --apply`")
        case .loop:
            Facts(
                554, "5.4.6", "This message has been here before", .loop, forUser: .content,
                means: "Postern's mark is on it, or it has more than `limits.hops` hops",
                remedy: "look for two addresses that forward to each other")
        case .partialMessage:
            Facts(
                550, "5.6.1",
                "This is one piece of a divided message (message/partial), and cannot be checked; send the message whole",
                .partialMessage, forUser: .content,
                means:
                    "the mail program divided a large message (RFC 2046 section 5.2.2): the relay never sees the complete message",
                remedy: "the sender: turn off the division of large messages")
        case .unrewritable:
            Facts(
                550, "5.7.7",
                "Your own address is in a part of the message that cannot be rewritten ({}); send it as plain text, unsigned and without that part",
                .unrewritablePart, .leakIncident, forUser: .content,
                means:
                    "a reply names the inbox in an office file, a PDF…, in encoded text, or in a part whose encoding is broken",
                remedy:
                    "the user: plain text, without that part. The text names the file, or the attachment in words; \"an "
                    + "attachment\" if the file's name reveals the inbox. `\(RelayReason.Code.leakIncident)` means that the leak "
                    + "check found text that the rewriting had missed: report it as a bug")
        case .tooMuchWork:
            Facts(
                550, "5.7.7",
                "An attachment unpacks to more data than can be searched for your own address; send the message without it, or with files that are not "
                    + "compressed",
                .tooMuchWork, forUser: .content,
                means:
                    "a reply has compressed data that takes more work to search than a message of its size may: a decompression "
                    + "bomb, or a file that unpacks to more than some twelve times its size and to more than 5 MB",
                remedy:
                    "the user: send the message without it, or with files that are not compressed")
        case .signedReply:
            Facts(
                550, "5.7.7",
                "A signature or key names you and cannot be removed ({}); send the text unsigned and without keys",
                .signedReply, forUser: .content,
                means:
                    "a reply is an opaque S/MIME signature (`smime-type=signed-data`), nothing but a key, or has a PGP block "
                    + "without its end. Signatures next to the text, and keys next to other parts, are removed silently",
                remedy:
                    "the user: unsigned, or signed in the clear (S/MIME: \"clear text signed message\")"
            )
        case .encryptedReply:
            Facts(
                550, "5.7.4",
                "This message is encrypted: it names you by your key, and cannot be checked for your address; send it unencrypted",
                .encryptedReply, forUser: .content, means: "PGP or S/MIME encrypted it",
                remedy: "the user: send it unencrypted")
        }
    }

    private static let verificationText =
        "No one reads replies to this message; it says where to enter its code"
}

/// The reason why mail to a user was refused, as on the user's page. The raw values are in
/// databases: never change or reuse one.
package enum UserRefusal: Int64, Sendable, Hashable, CaseIterable {
    /// Forwarding was off: set by the user, by a limit of days or messages that the user chose, or
    /// by an administrator.
    case forwardingOff = 1
    /// The user had stopped using every app of the team.
    case stopped = 2
    /// The user's inbox was not confirmed, or refused too many messages.
    case inbox = 3
    /// The daily limit was exceeded.
    case limit = 4
    /// The sender does not belong to the team.
    case stranger = 5
    /// The sender is at a domain of the team, but without proof.
    case unproved = 6
    /// The user had blocked the sender.
    case blocked = 7
    /// The message cannot be read safely, or cannot be rewritten.
    case content = 8
    /// The message went to an earlier address of the account, which was replaced or ended.
    case replaced = 9
    /// The team's mail to the user's provider is slowed or held.
    case waiting = 10
    /// An administrator froze the user or the team.
    case frozen = 11
}
