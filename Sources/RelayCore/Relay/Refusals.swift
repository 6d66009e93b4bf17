// Every reply that the relay gives, in one place; docs/OPERATING.md has them as a table.

import InternetMessage

extension Refusal {
    // MARK: At RCPT

    package static func unknownAddress(_ detail: String) -> Refusal {
        Refusal(550, "5.1.1", "No such address here", RelayReason("unknown-address", detail))
    }

    package static func badReturnPath(_ detail: String) -> Refusal {
        Refusal(550, "5.7.1", "This address takes delivery reports only", RelayReason("bad-return-path", detail))
    }

    /// A reverse address of another user at a relay domain, from a text, or from mail sent before such addresses were left out.
    package static let anotherUsersAddress = Refusal(
        550, "5.1.1", "This address stands for another user of this relay; only the team can write to them",
        RelayReason("another-users-address", "a reverse address whose correspondent is at a relay domain"))

    /// An answer to the message that verifies an inbox, whose author had a message about it today.
    package static let answerNotRead = Refusal(
        550, "5.7.1", answerText,
        RelayReason("answer-not-read", "another answer to a verification message on the same day"))

    private static let answerText = "No one reads replies to this message; it says where its code is entered"

    /// An answer to the message that verifies an inbox, of which nothing proves that it comes from there.
    static func answerNotProved(_ reason: RelayReason) -> Refusal { Refusal(550, "5.7.26", answerText, reason) }

    package static let otherScope = Refusal(
        452, "4.5.3", "Recipients of another account go in a transaction of their own; send this one again",
        RelayReason("other-scope", "the transaction already carries another account or the operator's own mail"))

    /// The refusal that a recipient's copy got when the message came before.
    static func toldBefore(_ reply: SMTPReply) -> Refusal {
        let reason = RelayReason("fan-out-told", "the copy for this recipient was refused when the message came before")
        return Refusal(reply, reason)
    }

    /// The sender repeats the message, and learns at RCPT which recipient refused.
    package static let fanOutRefused = Refusal(
        451, "4.3.0", "Not every recipient can have this message; send it again to learn which",
        RelayReason("fan-out-refused", "a recipient was refused; when the message is repeated the sender learns which"))

    /// A reply to all that also names relay addresses of other accounts: answered as `fanOutRefused`, once these are recorded.
    static let mixedAccounts = Refusal(
        451, "4.3.0", "Not every recipient can have this message; send it again to learn which",
        RelayReason("mixed-accounts", "a relay address of another account next to a reverse address"))

    package static let forgedCopy = Refusal(
        451, "4.7.0", "Only copies of messages are taken here",
        RelayReason(
            "forged-copy",
            "a session at the smtpd for copies (fan_out_smtpd) without Postern's login: a local user, or another key file"))

    package static func fanOutFailed(_ detail: String) -> Refusal {
        Refusal(
            451, "4.3.0", "Temporary trouble here with a message to several users; try again later",
            RelayReason("fan-out-failed", detail))
    }

    package static let tooManyRecipients = Refusal(
        452, "4.5.3", "Too many recipients; send the rest in another transaction",
        RelayReason("too-many-recipients", "more recipients of one account than the limit"))

    // MARK: State of an account, for a proved sender only

    package static let forwardingOff = Refusal(
        550, "5.2.1", "The owner of this address has switched forwarding off", RelayReason("forwarding-off", isOfAccount: true))

    package static let senderBlocked = Refusal(
        550, "5.7.1", "The owner of this address does not accept mail from this sender",
        RelayReason("sender-blocked", isOfAccount: true))

    package static let retired = Refusal(
        550, "5.1.6", "This address is no longer in use",
        RelayReason("address-retired", "no grants remain, or the address was retired", isOfAccount: true))

    package static let inboxUnverified = Refusal(
        451, "4.2.1", "The owner of this address has not confirmed it yet; try again later",
        RelayReason("inbox-unverified", isOfAccount: true))

    /// Temporary: once the owner confirms the inbox again, the waiting mail arrives.
    package static let inboxSuspended = Refusal(
        451, "4.2.1", "The mailbox behind this address refuses mail and has to be confirmed again; try again later",
        RelayReason(
            "inbox-suspended", "the inbox refused too much; postern inbox show gives details, inbox confirm ends the suspension",
            isOfAccount: true))

    package static func dailyLimit(_ limit: Int) -> Refusal {
        Refusal(
            452, "4.7.1", "More than \(limit) messages today; try again after midnight (UTC)",
            RelayReason("daily-limit", "the account has reached its limit for this direction and day", isOfAccount: true))
    }

    package static func storedAddressLimit(_ limit: Int) -> Refusal {
        Refusal(
            452, "4.7.1", "More than \(limit) long addresses that are new today; try again after midnight (UTC)",
            RelayReason(
                "stored-address-limit", "the account has reached its limit of new stored addresses for this day",
                isOfAccount: true))
    }

    // MARK: The sender

    package static func unauthorizedSender(_ sender: String, from: String) -> Refusal {
        Refusal(
            550, "5.7.1",
            "<\(printable(sender))>: unauthorized sender; the domain of From (\(printable(from))) has to be registered as an outbound source",
            RelayReason("unregistered-source", "the domain of From is not a registered source of any team"))
    }

    /// The same text for every refused reply, whatever the cause: the cause is in `reason`.
    package static func replyNotProved(_ reason: RelayReason) -> Refusal {
        Refusal(
            550, "5.7.26",
            "Write from the mailbox that this address belongs to; its mail must pass SPF or DKIM for the domain of From",
            reason)
    }

    /// The code is that of a failed proof: no mechanism can prove an author who is not known.
    package static func unreadableFrom(_ defect: AuthorDefect) -> Refusal {
        Refusal(550, "5.7.26", "From cannot be read: \(defect)", RelayReason("unclear-author", "\(defect)"))
    }

    /// What was signed is one of the two, and what a program shows may be the other.
    package static func repeatedField(_ field: OnceField) -> Refusal {
        Refusal(
            550, "5.7.26", "The header section cannot be read safely: more than one \(field.rawValue) field",
            RelayReason("repeated-field", field.rawValue))
    }

    /// A field of any name that two programs read differently.
    package static let unsafeHeader = Refusal(
        550, "5.7.26",
        "The header section cannot be read safely: NUL, bare CR or another octet that programs interpret differently",
        RelayReason("unsafe-header", "NUL, bare CR or another octet that programs interpret differently"))

    package static func proofFailed(_ reason: RelayReason) -> Refusal {
        Refusal(550, "5.7.26", "Neither a valid DKIM signature nor SPF proves the domain of From", reason)
    }

    package static func noValidDKIM(_ reason: RelayReason) -> Refusal {
        Refusal(550, "5.7.20", "No valid DKIM signature of the domain of From", reason)
    }

    package static func spfFailed(_ reason: RelayReason) -> Refusal {
        Refusal(550, "5.7.23", "SPF does not prove the domain of From", reason)
    }

    package static func dmarcFailed(_ reason: RelayReason) -> Refusal {
        Refusal(550, "5.7.26", "DMARC fails, and the domain of From asks that such mail be refused", reason)
    }

    package static func authenticationTrouble(_ detail: String) -> Refusal {
        Refusal(451, "4.4.3", "The sender cannot be checked just now; try again later", RelayReason("dns-trouble", detail))
    }

    package static func storeTrouble(_ detail: String) -> Refusal {
        Refusal(451, "4.3.0", "Temporary trouble here; try again later", RelayReason("store-trouble", detail))
    }

    /// The directory's answer; where it cannot answer now, the message is deferred.
    static func deferring<Value>(_ answer: @autoclosure () throws(DirectoryFailure) -> Value) throws(Refusal) -> Value {
        do { return try answer() } catch { throw .storeTrouble(error.detail) }
    }

    package static func notConfigured(_ detail: String) -> Refusal {
        Refusal(451, "4.3.5", "This host is not set up for that yet; try again later", RelayReason("not-configured", detail))
    }

    // MARK: The message

    package static func malformedHeader(_ detail: String) -> Refusal {
        Refusal(
            550, "5.6.0", "The header section cannot be read safely: \(printable(detail))",
            RelayReason("malformed-header", detail))
    }

    package static func tooManyAddresses(_ limit: Int) -> Refusal {
        Refusal(
            554, "5.5.3", "More than \(limit) long addresses in the header section; write to fewer people at once",
            RelayReason("too-many-addresses", "more addresses that do not fit a reverse address than a message may have"))
    }

    package static func fieldTooLong(_ name: String) -> Refusal {
        Refusal(
            552, "5.3.4",
            "The header field \(printable(name)) is too long once its addresses are rewritten; write to fewer people at once",
            RelayReason("field-too-long", printable(name)))
    }

    package static func malformedBody(_ detail: String) -> Refusal {
        Refusal(550, "5.6.0", "The body cannot be read safely: \(printable(detail))", RelayReason("malformed-body", detail))
    }

    package static func messageTooLarge(_ limit: Int) -> Refusal {
        Refusal(552, "5.3.4", "Larger than \(limit) octets", RelayReason("message-too-large"))
    }

    package static let loop = Refusal(554, "5.4.6", "This message has been here before", RelayReason("loop"))

    /// The mark on the message was made a moment ago, for the same entry of Postfix's queue.
    package static let listedTwice = Refusal(
        554, "5.4.6", "This message has passed here already: Postern is named twice in this Postfix's lists of milters",
        RelayReason("listed-twice", "smtpd_milters or non_smtpd_milters names Postern twice; run postern setup postfix --apply"))

    /// - Parameters:
    ///   - part: for the user: printable, and without any part of an inbox.
    ///   - detail: for the log; `part` where it is nil.
    package static func unrewritable(part: String, detail: String? = nil) -> Refusal {
        Refusal(
            550, "5.7.7",
            "Your own address stands in a part that cannot be rewritten (\(printable(part))); send it as plain text, unsigned and without that part",
            RelayReason("unrewritable-part", detail ?? part))
    }

    /// It is not known whether it holds the user's address: the search would cost more than a message of this size may.
    static let tooMuchWork = Refusal(
        550, "5.7.7",
        "An attachment unpacks to more than can be searched for your own address; send it without, or as files that are not compressed",
        RelayReason(
            "too-much-work",
            "compressed data, or data encoded again and again, beyond what a message of this size may take to search"))

    package static let encryptedReply = Refusal(
        550, "5.7.4",
        "This message is encrypted: it names you by your key, and cannot be checked for your address; send it unencrypted",
        RelayReason("encrypted-reply", "encrypted with PGP or S/MIME"))

    /// Parameters as of `unrewritable`.
    package static func signedReply(part: String, detail: String) -> Refusal {
        Refusal(
            550, "5.7.7",
            "A signature or key names you and cannot be taken out (\(printable(part))); send the text unsigned and without keys",
            RelayReason("signed-reply", detail))
    }

    /// The leak check found what the rewriting had missed. To the user it is an unrewritable part; to the operator it is an
    /// incident.
    package static func leakIncident(place: String) -> Refusal {
        Refusal(unrewritable(part: place).reply, RelayReason(RelayReason.leakIncident, place))
    }

    /// The sender tries again, and finds room: then the message is held from its beginning.
    package static let forwardMemory = Refusal(
        452, "4.3.1", "Too much mail at once; try again later",
        RelayReason("forward-memory", "there was no room to hold a forward that has to be rewritten"))

    package static let replyMemory = Refusal(
        452, "4.3.1", "Too much mail at once; try again later",
        RelayReason("reply-memory", "held bodies of replies are at their limit"))

    /// SMTP text is printable ASCII; other octets, and `%`, which another party could plant, become `?`. At most 120 octets.
    private static func printable(_ text: String) -> String {
        String(
            decoding: text.utf8.prefix(120).map {
                (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "%") ? $0 : UInt8(ascii: "?")
            }, as: UTF8.self)
    }
}
