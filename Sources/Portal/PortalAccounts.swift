// Relay addresses on the page: messages received, forwarding, apps, and writing to a team first.

import Accounts
import HTTP
import Hummingbird
import InternetMessage
import PersonalData
import RelayCore
import SignIn

/// The forms on an address's page that can report an error in the input.
enum AccountForm: Hashable {
    case notes, day, write, block
    /// Of the decision with this identifier.
    case objection(String)
}

/// One relay address of the user, as lists and its own page show it.
struct AddressCard: Sendable {
    /// The team that the app moved to, with the user's consent.
    struct Move: Sendable {
        /// The user's account with that team.
        let number: Int64
        let team: String
        let app: String
        let on: String
        let until: String
    }

    let number: Int64
    let team: String
    let title: String
    let ownName: String?
    let note: String?
    /// A letter in place of the icon.
    let initial: String
    /// The identifier of the app whose icon is shown.
    let icon: String?
    let address: String?
    let isOn: Bool
    /// Whether forwarding is on, although the user blocks every sender of the team.
    let isBlocked: Bool
    let isActive: Bool
    /// When and why forwarding was turned off; nil while it is on, or if that is not known.
    let offSince: String?
    /// Some senders of the team are blocked.
    let blocked: String?
    /// Messages that were refused in seven days.
    let refused: String?
    /// How many others used it in 30 days.
    let others: String?
    /// When the last message came; nil if that is not known.
    let lastAt: String?
    let lastSender: String?
    /// The last action here.
    let told: String?
    /// Whether apps of the team are used without a relay address.
    let isOpen: Bool
    let isEnded: Bool
    let isPast: Bool
    /// Whether the team was given the user's own address.
    let isReal: Bool
    let hasNoAddress: Bool
    let since: String
    let switches: String?
    let messagesLeft: String?
    let used: String?
    /// The inbox, if it is not the default one.
    let otherInbox: String?
    let apps: String?
    /// The data that the team knows about the user.
    let known: String?
    let hasTraffic: Bool
    let toYou: String
    let fromYou: String
    let move: Move?
}

/// An inbox in a list to choose from.
struct InboxOption: Sendable {
    let number: Int64
    let address: String
    let isChosen: Bool

    init(_ inbox: Inbox, isChosen: Bool) {
        number = inbox.number
        address = PortalText.address(inbox.address)
        self.isChosen = isChosen
    }
}

/// The page of one relay address.
struct AccountView: PageView {
    struct Choice: Sendable {
        let isDefaultChosen: Bool
        let inboxes: [InboxOption]
    }

    struct Written: Sendable {
        let to: String
        let reverse: String
    }

    struct Consent: Sendable {
        let group: Int64
        let names: String
        let isLive: Bool
        let since: String
        let last: String
    }

    struct Month: Sendable {
        let month: String
        let toYou: String
        let fromYou: String
    }

    struct Refusal: Sendable {
        let why: String
        let sender: String
        let week: String
        let month: String
        let quarter: String
    }

    /// The use of one address by others.
    struct Others: Sendable {
        /// Nil for the current address.
        let earlierAddress: String?
        let summary: String?
        let senders: [OtherSender]
        let unproved: String?
    }

    /// A domain whose signature proves that it used the address.
    struct OtherSender: Sendable {
        let domain: String
        let selector: String
        let firstAt: String
        let lastDay: String
        let count: String
    }

    struct Check: Sendable {
        let decision: String
        let at: String
        let event: String
        let asked: String
        let end: String
        let why: [String]
        let objected: String?
        /// The words that the user wrote.
        let words: String?
        let problem: String?
        let typed: String?
    }

    struct Block: Sendable {
        let sender: String
    }

    /// The last action, next to its subject.
    struct Notices: Sendable {
        let ofHead: String?
        let ofForwarding: String?
        let ofOwn: String?
        let ofApps: String?
        let ofChecks: String?
        let ofSenders: String?

        init(_ request: PortalRequest) {
            ofHead = request.notice(.head)
            ofForwarding = request.notice(.forwarding)
            ofOwn = request.notice(.own)
            ofApps = request.notice(.apps)
            ofChecks = request.notice(.checks)
            ofSenders = request.notice(.senders)
        }
    }

    static let template = PageTemplate.account
    static let hasScript = true
    let card: AddressCard
    let notices: Notices
    let inbox: String?
    let choice: Choice?
    let dayLists: [DayList]
    /// The number of messages after which forwarding turns off.
    let after: Int?
    let dayProblem: String?
    let typedName: String
    let typedNote: String
    let notesProblem: String?
    let written: Written?
    let canWrite: Bool
    let sources: [String]
    let typed: String?
    let problem: String?
    let consents: [Consent]
    let months: [Month]
    let totalToYou: String
    let totalFromYou: String
    let refusals: [Refusal]
    let uses: [Others]
    let checks: [Check]
    let canBlock: Bool
    let blocks: [Block]
    let typedSender: String?
    let blockProblem: String?
}

/// Asks the user to confirm that they stop using an app.
struct StopView: PageView {
    static let template = PageTemplate.stop
    let number: Int64
    let group: Int64
    let names: String
    let team: String
    let isLast: Bool
    let isReal: Bool
    let address: String?
}

extension PortalPage {
    /// The days that count as "lately".
    static let recentDays: Int64 = 30

    /// The account in the path, if it belongs to the user.
    func account(_ request: PortalRequest, _ session: PageSession) async throws -> UserExportAccount
    {
        guard let account = try await accounts(session, [request.number("account")]).first else {
            throw PortalRefusal.notFound
        }
        return account
    }

    /// The data shown for these accounts of the user.
    func accounts(_ session: PageSession, _ numbers: [Int64]) async throws -> [UserExportAccount] {
        let time = now()
        return try await pool.run {
            try store.persons.accounts(
                user: session.userID, numbers: numbers,
                since: Day.number(time) - Self.recentDays + 1, now: time)
        }
    }

    /// - Parameter told: the last action there.
    func card(
        _ account: UserExportAccount, inboxes: [Inbox], told: String? = nil, _ words: PortalText
    ) -> AddressCard {
        let inbox = inboxes.first { $0.number == account.inboxNumber && !$0.isDefault }
        let apps = account.consents.filter(\.isLive).compactMap(\.title)
        let known = knowledge(account, inboxes: inboxes, words)
        let hasConsents = !account.consents.isEmpty
        return AddressCard(
            number: account.number, team: account.team.name, title: account.title,
            ownName: account.notes.name.isEmpty ? nil : account.notes.name,
            note: account.notes.note.isEmpty ? nil : account.notes.note,
            initial: PortalText.initial(account.title),
            icon: account.consents.filter(\.isLive).lazy.compactMap(\.icon).first,
            address: account.address?.wireForm,
            isOn: account.isForwardingOn,
            isBlocked: account.isForwardingOn && account.blocks.isEverySender,
            isActive: account.isActive,
            offSince: account.isForwardingOn
                ? nil : account.switched.map { Self.sentence($0, words) },
            blocked: account.blocks.count == 0 || account.blocks.isEverySender
                ? nil : words.count("{n} senders blocked", account.blocks.count),
            refused: account.refusedOfWeek == 0
                ? nil : words.count("{n} refused in 7 days", account.refusedOfWeek),
            others: account.usingDomains == 0
                ? nil
                : words.language.text(
                    "Other senders in 30 days: {n}", ["n": words.number(account.usingDomains)]),
            lastAt: account.lastMail.map { words.time($0.at) },
            lastSender: account.lastMail?.sender, told: told,
            isOpen: account.hasConsent && account.address == nil,
            isEnded: !account.hasConsent && account.move == nil, isPast: !account.hasConsent,
            isReal: hasConsents && account.emailKind == .real,
            hasNoAddress: hasConsents && account.emailKind == .none,
            since: words.date(account.createdAt),
            switches: account.switchesAt.map(words.date),
            messagesLeft: account.messagesLeft.map(words.messages),
            used: account.lastUsedDay.map(words.day),
            otherInbox: inbox.map { PortalText.address($0.address) },
            apps: apps.isEmpty ? nil : words.list(apps),
            known: known.isEmpty ? nil : words.list(known),
            hasTraffic: account.recent.forwarded + account.recent.replied > 0,
            toYou: words.messages(account.recent.forwarded),
            fromYou: words.messages(account.recent.replied),
            move: account.move.map { move in
                AddressCard.Move(
                    number: move.account, team: move.team,
                    app: move.app?.title
                        ?? words.language.text("Mail of {team}", ["team": account.team.name]),
                    on: words.date(move.movedAt), until: words.date(move.endsAt))
            })
    }

    /// The cause and the time at which forwarding was turned off.
    private static func sentence(_ switched: ForwardingSwitch, _ words: PortalText) -> String {
        let day = ["day": words.date(switched.at)]
        return switch switched.cause {
        case .user: words.language.text("You turned it off on {day}.", day)
        case .administrator: words.language.text("An administrator turned it off on {day}.", day)
        case .day: words.language.text("It turned off on {day}, as you had chosen.", day)
        case .count:
            words.language.text(
                "It turned off on {day}, after as many messages as you had chosen.", day)
        }
    }

    /// The user data that the team was given. The team keeps it even after the user stops.
    private func knowledge(
        _ account: UserExportAccount, inboxes: [Inbox], _ words: PortalText
    ) -> [String] {
        let language = words.language
        guard !account.consents.isEmpty else { return [] }
        var known: [String] = []
        if account.emailKind == .real {
            // The inbox that the user shared. It may be gone now, but a later default inbox never
            // replaces it.
            let inbox = inboxes.first {
                account.hasOwnInbox && $0.number == account.inboxNumber && $0.isVerified
            }
            known.append(
                inbox.map {
                    language.text(
                        "your own address ({address})", ["address": PortalText.address($0.address)])
                }
                    ?? language.text("your own address"))
        }
        if let name = account.teamName?.full {
            known.append(language.text("your name ({name})", ["name": name]))
        }
        return known
    }

    func showAccount(
        _ request: PortalRequest, _ session: PageSession,
        problem: (form: AccountForm, text: String)? = nil,
        status: HTTPResponse.Status = .ok, written: AccountView.Written? = nil
    ) async throws -> Response {
        let account = try await account(request, session)
        let (counters, inboxes, sources, blocks) = try await pool.run {
            (
                try store.counters.counters(account: account.number, since: 0),
                try store.inboxes.inboxes(user: session.userID),
                try store.sources.sources(teamNumber: account.team.number),
                try store.persons.blocks(account: account.number)
            )
        }
        let (words, language) = (request.words, request.language)
        func text(_ form: AccountForm) -> String? { problem?.form == form ? problem?.text : nil }
        let isOfDay = problem?.form == .day
        let areNotesTyped = problem?.form == .notes
        let objection: (String, String, String)? =
            if let problem, case .objection(let decision) = problem.form {
                (decision, problem.text, request.typed("words"))
            } else { nil }
        let view = AccountView(
            card: card(account, inboxes: inboxes, words), notices: AccountView.Notices(request),
            inbox: inboxes.first { $0.number == account.inboxNumber }.map {
                PortalText.address($0.address)
            },
            choice: choice(of: account, inboxes),
            dayLists: words.lists(
                for: Self.switchDays(now()),
                chosen: isOfDay
                    ? FormDay(request.typed) : FormDay(number: account.switchesAt.map(Day.number)),
                isInvalid: isOfDay),
            after: account.messagesLeft, dayProblem: text(.day),
            typedName: areNotesTyped ? request.typed("name") : account.notes.name,
            typedNote: areNotesTyped ? request.typed("note") : account.notes.note,
            notesProblem: text(.notes), written: written,
            canWrite: account.isActive && !sources.isEmpty,
            sources: sources.map { $0.kind == .domain ? "…@\($0.value)" : $0.value },
            typed: problem?.form == .write ? request.typed("correspondent") : nil,
            problem: text(.write),
            consents: account.consents.map { consent in
                AccountView.Consent(
                    group: consent.group.number,
                    names: consent.apps.isEmpty
                        ? language.text("Mail only, without an app")
                        : words.list(consent.apps.map(\.title)),
                    isLive: consent.isLive, since: words.date(consent.firstAuthorizedAt),
                    last: words.date(consent.lastAuthorizedAt))
            },
            months: words.months(counters), totalToYou: words.number(account.total.forwarded),
            totalFromYou: words.number(account.total.replied),
            refusals: try await refusals(of: account, words),
            uses: try await uses(of: account, words),
            checks: try await checks(of: account, words, problem: objection),
            canBlock: account.address != nil,
            blocks: blocks.map(AccountView.Block.init),
            typedSender: problem?.form == .block ? request.typed("sender") : nil,
            blockProblem: text(.block))
        return try request.html(view, title: account.title, status: status)
    }

    // MARK: Apps

    private func consent(
        _ request: PortalRequest, _ account: UserExportAccount
    ) throws -> UserExportConsent {
        let number = try request.number("group")
        guard
            let consent = account.consents.first(where: { $0.group.number == number && $0.isLive })
        else {
            throw PortalRefusal.notFound
        }
        return consent
    }

    func askToStop(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let consent = try consent(request, account)
        let names =
            consent.apps.isEmpty
            ? request.language.text("mail from {team}", ["team": account.team.name])
            : request.words.list(consent.apps.map(\.title))
        return try request.html(
            StopView(
                number: account.number, group: consent.group.number, names: names,
                team: account.team.name,
                isLast: account.consents.filter(\.isLive).count == 1,
                isReal: account.emailKind == .real,
                address: account.address?.wireForm),
            title: request.language.text("Stop using {names}?", ["names": names]))
    }

    func stop(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let consent = try consent(request, account)
        try await pool.run {
            _ = try store.grants.revoke(
                account: account.number, group: consent.group, Self.change(session, now()))
        }
        return request.redirect(
            "/me/addresses/\(account.number)", told: .stopped, of: account.number)
    }

    // MARK: Writing first

    /// The address at which the user reaches a person of the team who has not written yet.
    func writeFirst(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let typed = request.typed("correspondent").trimmingCharacters(in: .whitespaces)
        guard account.isActive, let relayAddress = account.address else {
            throw PortalRefusal.notFound
        }
        guard let correspondent = try? AddrSpec.typed(typed) else {
            return try await showAccount(
                request, session,
                problem: (
                    .write,
                    request.language.text(
                        "That is not a valid email address. Enter only the address, as in help@example.com."
                    )
                ),
                status: .unprocessableContent)
        }
        let covers = try await pool.run {
            try store.sources.teams(registering: correspondent).contains(account.team.number)
        }
        guard covers else {
            return try await showAccount(
                request, session,
                problem: (
                    .write,
                    request.language.text(
                        "{team} has not registered that address: you can write only to those listed below.",
                        ["team": account.team.name])
                ),
                status: .unprocessableContent)
        }
        guard let number = UInt64(exactly: account.number).flatMap(AccountNumber.init) else {
            throw PortalRefusal.notFound
        }
        let token = tokens().reverse(account: number, correspondent: correspondent)
        if let address = StoredAddress(token) {
            let isStored = try await pool.run {
                try store.tokens.store(
                    [address], account: number, day: Day.number(now()),
                    newPerDay: RelayLimits().storedAddressesPerDay, now: now()
                )
            }
            guard isStored else {
                return try await showAccount(
                    request, session,
                    problem: (
                        .write,
                        request.language.text(
                            "Too many new addresses today; try again after midnight (UTC).")
                    ),
                    status: .unprocessableContent)
            }
        }
        return try await showAccount(
            request, session,
            written: AccountView.Written(
                to: correspondent.wireForm,
                reverse: AddrSpec(localPart: token.localPart, domain: relayAddress.domain).wireForm)
        )
    }

    /// Attributes a change on the page to the user, for the audit.
    static func change(_ session: PageSession, _ now: Int64) -> Change {
        Change(actor: "user:\(session.userID)", now: now)
    }
}
