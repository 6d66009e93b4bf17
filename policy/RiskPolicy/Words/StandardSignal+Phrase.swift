// The words for Postern's own signals, each declared once.

extension StandardSignal {
    /// The words for it in sentences.
    package var phrase: SignalPhrase {
        switch self {
        case .event:
            SignalPhrase(
                "the event",
                .word(
                    PolicyEvent.allCases.map { event in
                        (
                            event.rawValue,
                            .init(
                                "the event is \(event.wordWithArticle)",
                                "the event is not \(event.wordWithArticle)")
                        )
                    }))
        case .tokenAge:
            .age(
                "the identity token", event: "the issue of the identity token", unit: 1,
                known: .init("an identity token was sent", "no identity token was sent"))
        case .signInMethods:
            SignalPhrase(
                "the list of methods of the sign-in",
                .list(
                    has: .init("the user signed in with", "the user did not sign in with"),
                    labels: [
                        ("otp", "a one-time code"), ("mfa", "several factors"),
                        ("pwd", "a password"), ("pin", "a PIN"),
                        ("face", "face recognition"), ("fpt", "a fingerprint"),
                        ("hwk", "a key in hardware"),
                        ("swk", "a key in software"), ("sms", "a text message"),
                        ("tel", "a phone call"),
                    ]))
        case .sinceSignIn: .since("the user signed in", event: "the sign-in", unit: 1)
        case .realUserStatus: Self.status("the user's status")
        case .priorStatus: Self.status("the user's status before the consent was revoked")
        case .rejoins: .count("return", "after a revocation within 30 days")
        case .age: .age("the account", event: "the first authorization of the account")
        case .state:
            SignalPhrase(
                "the state of the account",
                .word([
                    ("new", .init("the account is new", "the account is not new")),
                    (
                        "pending",
                        .init(
                            "the check required at sign-up is not passed yet",
                            "no check required at sign-up is outstanding")
                    ),
                    ("active", .init("the account is active", "the account is not active")),
                    (
                        "consent_revoked",
                        .init(
                            "the user has revoked the consent",
                            "the user has not revoked the consent")
                    ),
                ]))
        case .hasEmail:
            .flag(
                "whether the app has an address of the user", "the app has an address of the user",
                "the app has no address of the user")
        case .forwardingOn:
            .flag(
                "whether mail reaches the user", "mail to the relay address reaches the user",
                "mail to the relay address does not reach the user")
        case .managed:
            .flag(
                "whether the account is a work or school account",
                "the account is a work or school account",
                "the account is not a work or school account")
        case .sinceSeen:
            .since(
                "the account was last seen", event: "the last visit of the account",
                notFor: "the account was not seen for",
                known: .init(
                    "the account was seen before", "it is not known when the account was last seen")
            )
        case .visit:
            .since(
                "this visit of the account began",
                event: "the beginning of this visit of the account",
                known: .init(
                    "a visit of the account began within the last day",
                    "no visit of the account began within the last day"))
        case .sinceTransfer:
            .since(
                "the app moved to another team", event: "the app's move to another team",
                known: .init(
                    "the app has moved to another team", "the app has not moved to another team"))
        case .bounces: .count("permanent bounce", "of the account's mail within a week")
        case .replies, .userReplies:
            .count("reply", "of the user to mail within 30 days", many: "replies")
        case .toggles: .count("change", "of forwarding by the user within a week")
        case .riskEvents: .count("risk event", "of the account within 30 days")
        case .lastRiskEvent:
            SignalPhrase(
                "the last risk event of the account",
                .word([
                    (
                        "none",
                        .init(
                            "the account had no risk event within 30 days",
                            "the account had a risk event within 30 days")
                    )
                ]))
        case .inboxAge: .since("the inbox was confirmed", event: "the confirmation of the inbox")
        case .inboxSignUps: .count("sign-up", "with the inbox within a day")
        case .inboxDeletions: .count("deleted account", "of the inbox within 30 days")
        case .inboxBounces: .count("permanent bounce", "of the inbox within a week")
        case .inboxDomainClass:
            SignalPhrase(
                "the class of the inbox's domain",
                .word([
                    (
                        "provider",
                        .init(
                            "the inbox is at a mail provider", "the inbox is not at a mail provider"
                        )
                    ),
                    (
                        "relay",
                        .init(
                            "the inbox is at a relay service", "the inbox is not at a relay service"
                        )
                    ),
                    ("disposable", .init("the inbox is disposable", "the inbox is not disposable")),
                    (
                        "own",
                        .init(
                            "the inbox is at a domain of its own",
                            "the inbox is not at a domain of its own")
                    ),
                ]))
        case .failedChecks: .count("failed check", "within a day")
        case .failedChecksOfMonth: .count("failed check", "within 30 days")
        case .passedChecks: .count("passed check", "within 90 days")
        case .sinceHumanCheck: Self.passed("human_check")
        case .sinceEmailCode: Self.passed("email_code")
        case .sinceReauthenticate: Self.passed("reauthenticate")
        case .observedChecks: .count("passed check", "that Postern carried out within 90 days")
        case .sinceObserved:
            .since(
                "Postern last saw a check passed", event: "the last pass that Postern saw",
                known: .init(
                    "Postern saw a check passed before", "Postern never saw a check passed"))
        case .sinceProofOfWork:
            .since(
                "a proof of work was last accepted", event: "the last proof of work",
                known: .init(
                    "a proof of work was accepted before", "no proof of work was ever accepted"))
        case .deviceAttested:
            .flag(
                "whether the device has attested the app", "the device has attested the app",
                "the device has not attested the app")
        case .deviceAssertions: .count("accepted assertion", "of the device")
        case .deviceAccounts: .count("account", "of the app on the device within 90 days")
        case .appSignUps: .count("sign-up", "for the app within an hour")
        case .appBaseline:
            SignalPhrase("the usual number of sign-ups for the app in an hour", .number)
        case .signInMethod:
            SignalPhrase(
                "the way of the sign-in",
                .word([
                    (
                        "mail",
                        .init("the user signed in by mail", "the user did not sign in by mail")
                    ),
                    (
                        "passkey",
                        .init(
                            "the user signed in with a passkey",
                            "the user did not sign in with a passkey")
                    ),
                    (
                        "upstream",
                        .init(
                            "the user signed in through the OpenID provider",
                            "the user did not sign in through the OpenID provider")
                    ),
                ]))
        case .signInVerified:
            .flag(
                "whether the person was verified", "the device or the provider verified the person",
                "neither the device nor the provider verified the person")
        case .passkeyAge:
            .since(
                "the passkey of this sign-in was made",
                event: "the creation of the passkey of this sign-in")
        case .passkeySynced:
            .flag(
                "whether the passkey is synced", "the passkey of this sign-in is synced",
                "the passkey of this sign-in is not synced")
        case .passkeyAttested:
            .flag(
                "whether the passkey is attested",
                "the maker of the device vouched for the passkey of this sign-in",
                "the maker of the device did not vouch for the passkey of this sign-in")
        case .userAge:
            .since("the user signed up with Postern", event: "the user's sign-up with Postern")
        case .userManaged:
            .flag(
                "whether the user has a work or school account",
                "the user has a work or school account",
                "the user has no work or school account")
        case .userTeams: .count("team", "with the user's consent", isNow: true)
        case .newTeams:
            .count("team", "that got the user's first consent within a day", isNow: true)
        case .legitimateOutcomes: .count("decision", "that teams labelled legitimate", isNow: true)
        case .fraudulentOutcomes: .count("decision", "that teams labelled fraudulent", isNow: true)
        }
    }

    private static func status(_ noun: String) -> SignalPhrase {
        SignalPhrase(
            noun,
            .codes(
                PolicyStatus.allCases.map { .init(value: Int64($0.code), word: "\"\($0.words)\"") })
        )
    }

    private static func passed(_ check: String) -> SignalPhrase {
        .since(
            "\(check) was last passed", event: "the last pass of \(check)",
            known: .init("\(check) was passed before", "\(check) was never passed"))
    }
}

extension PolicyStatus {
    /// In sentences.
    package var words: String {
        switch self {
        case .unsupported: "unsupported"
        case .unknown: "unknown"
        case .likelyReal: "likely real"
        }
    }
}

extension PolicyEvent {
    /// In sentences: `sign-up`.
    package var word: String {
        switch self {
        case .signUp: "sign-up"
        case .signIn: "sign-in"
        case .upgrade: "upgrade"
        case .sensitiveAction: "sensitive action"
        }
    }

    var wordWithArticle: String { (self == .upgrade ? "an " : "a ") + word }

    /// `sign-ups, sign-ins and upgrades`, in the order of the events; `every event` for all four.
    static func words(_ events: some Collection<PolicyEvent>) -> String {
        events.count == allCases.count
            ? "every event"
            : NumberWords.list(allCases.filter(events.contains).map { $0.word + "s" })
    }
}

extension PolicyCounter {
    /// The words for its count in sentences.
    package var phrase: SignalPhrase {
        let all = PolicyEvent.allCases.filter(events.contains)
        let isAnyEvent = all.count == PolicyEvent.allCases.count
        let one = isAnyEvent ? "question" : NumberWords.list(all.map(\.word), "or")
        let many = isAnyEvent ? "questions" : NumberWords.list(all.map { $0.word + "s" }, "or")
        let rest = "\(key.preposition) within \(DurationWords.text(window))"
        guard let distinct else { return .count(one, rest, many: many) }
        let among = isAnyEvent ? many : NumberWords.list(all.map { $0.word + "s" })
        let noun = distinct.noun
        return .count(
            "different \(noun.one)", "in the \(among) \(rest)", many: "different \(noun.many)")
    }
}

extension PolicyCounter.Key {
    /// The common property of the counted requests.
    fileprivate var preposition: String {
        switch self {
        case .account: "of the account"
        case .inbox: "with the inbox"
        case .inboxDomain: "of the inbox's domain"
        case .device: "from the device"
        case .context(let name): "with the same \(ContextWords.name(name))"
        }
    }

    fileprivate var noun: (one: String, many: String) {
        switch self {
        case .account: ("account", "accounts")
        case .inbox: ("inbox", "inboxes")
        case .inboxDomain: ("domain of inboxes", "domains of inboxes")
        case .device: ("device", "devices")
        case .context(let name):
            ("value of \(ContextWords.name(name))", "values of \(ContextWords.name(name))")
        }
    }
}

/// The operator's own signals, by the names that they declare.
enum ContextWords {
    /// `ip_prefix` as `ip prefix`. Names have only letters, digits and `_`.
    static func name(_ name: String) -> String {
        String(name.map { $0 == "_" || $0 == "." ? " " : $0 })
    }

    static func phrase(_ signal: SignalDeclaration) -> SignalPhrase {
        let name = name(String(signal.name.dropFirst(ContextSignals.prefix.count)))
        let noun = "the \(name) from the app"
        let known = SignalPhrase.Pair(
            "the app sent the \(name)", "the app did not send the \(name)")
        return switch signal.type {
        case .bool:
            SignalPhrase(
                "\"\(name)\" from the app",
                .flag(
                    .init("\"\(name)\" from the app is true", "\"\(name)\" from the app is false")),
                known: .init("the app sent \"\(name)\"", "the app did not send \"\(name)\""))
        case .list:
            SignalPhrase(
                "the list of \(name) from the app",
                .list(
                    has: .init(
                        "the list of \(name) from the app has",
                        "the list of \(name) from the app does not have"),
                    labels: []), known: known)
        case .string: SignalPhrase(noun, .word([]), known: known)
        default: SignalPhrase(noun, .number, known: known)
        }
    }
}

extension Policy {
    /// The words for the signal of a slot.
    func phrase(slot: Int) -> SignalPhrase? {
        guard signals.indices.contains(slot) else { return nil }
        return switch signals[slot].source {
        case .postern(let signal): signal.phrase
        case .context: ContextWords.phrase(signals[slot])
        case .counter: counters.first { $0.signal == signals[slot].name }?.phrase
        }
    }
}
