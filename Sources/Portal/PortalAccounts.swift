// Relay addresses on the page: messages received, forwarding, apps, and writing to a team first.

import Accounts
import SignIn
import HTTP
import Hummingbird
import InternetMessage
import PersonalData
import RelayCore

/// The forms on an address's page that can report an error in the input.
enum AccountForm { case notes, day, write, block }

extension PortalPage {
    /// The days that count as "lately".
    static let recentDays: Int64 = 30

    /// The account in the path, if it belongs to the user.
    func account(_ request: PortalRequest, _ session: PageSession) async throws -> UserExportAccount {
        guard let account = try await accounts(session, [request.number("account")]).first else { throw PortalRefusal.notFound }
        return account
    }

    /// The data shown for these accounts of the user.
    func accounts(_ session: PageSession, _ numbers: [Int64]) async throws -> [UserExportAccount] {
        let time = now()
        return try await pool.run {
            try store.persons.accounts(
                user: session.userID, numbers: numbers, since: Day.number(time) - Self.recentDays + 1, now: time)
        }
    }

    func card(
        _ account: UserExportAccount, inboxes: [Inbox], _ words: PortalText
    ) -> [String: Any] {
        var values: [String: Any] = [
            "number": account.number, "team": account.team.name, "title": account.title,
            "initial": PortalText.initial(account.title),
            "on": account.isForwardingOn, "since": words.date(account.createdAt), "is_active": account.isActive,
            "is_open": account.hasConsent && account.address == nil, "is_ended": !account.hasConsent && account.move == nil,
            "to_you": words.messages(account.recent.forwarded), "from_you": words.messages(account.recent.replied),
            "has_traffic": account.recent.forwarded + account.recent.replied > 0,
        ]
        if !account.notes.name.isEmpty { values["own_name"] = account.notes.name }
        if !account.notes.note.isEmpty { values["note"] = account.notes.note }
        if let address = account.address { values["address"] = address.wireForm }
        if let time = account.switchesAt { values["switches"] = words.date(time) }
        if let count = account.messagesLeft { values["messages_left"] = words.messages(count) }
        if let day = account.lastUsedDay { values["used"] = words.day(day) }
        if let inbox = inboxes.first(where: { $0.number == account.inboxNumber }), !inbox.isDefault {
            values["other_inbox"] = PortalText.address(inbox.address)
        }
        if let move = account.move {
            values["move"] =
                [
                    "team": move.team, "number": move.account,
                    "app": move.app?.title ?? words.language.text("Mail of {team}", ["team": account.team.name]),
                    "on": words.date(move.movedAt),
                    "until": words.date(move.endsAt),
                ] as [String: Any]
        }
        values.merge(knowledge(account, inboxes: inboxes, words)) { $1 }
        let apps = account.consents.filter(\.isLive).compactMap(\.title)
        if !apps.isEmpty { values["apps"] = words.list(apps) }
        values["icon"] = account.consents.filter(\.isLive).lazy.compactMap(\.icon).first
        return values
    }

    /// The user data that the team was given. The team keeps it even after the user stops.
    private func knowledge(
        _ account: UserExportAccount, inboxes: [Inbox], _ words: PortalText
    ) -> [String: Any] {
        let language = words.language
        guard !account.consents.isEmpty else { return [:] }
        var known: [String] = []
        if account.emailKind == .real {
            // The inbox that was shared, which may be gone now; never a later default.
            let inbox = inboxes.first { account.hasOwnInbox && $0.number == account.inboxNumber && $0.isVerified }
            known.append(
                inbox.map { language.text("your own address ({address})", ["address": PortalText.address($0.address)]) }
                    ?? language.text("your own address"))
        }
        if let name = account.teamName?.full { known.append(language.text("your name ({name})", ["name": name])) }
        var values: [String: Any] = [
            "is_real": account.emailKind == .real, "has_no_address": account.emailKind == .none, "is_past": !account.hasConsent,
        ]
        if !known.isEmpty { values["known"] = words.list(known) }
        return values
    }

    func showAccount(
        _ request: PortalRequest, _ session: PageSession, problem: (form: AccountForm, text: String)? = nil,
        status: HTTPResponse.Status = .ok, written: (to: String, reverse: String)? = nil
    ) async throws -> Response {
        let account = try await account(request, session)
        let (counters, inboxes, sources) = try await pool.run {
            (
                try store.counters.counters(account: account.number, since: 0),
                try store.inboxes.inboxes(user: session.userID), try store.sources.sources(teamNumber: account.team.number)
            )
        }
        let (words, language) = (request.words, request.language)
        var values = card(account, inboxes: inboxes, words)
        let months = words.months(counters)
        values["months"] = months
        values["has_months"] = !months.isEmpty
        values["total_to_you"] = words.number(account.total.forwarded)
        values["total_from_you"] = words.number(account.total.replied)
        values["consents"] = account.consents.map { consent -> [String: Any] in
            let names = consent.apps.isEmpty ? language.text("Mail only, without an app") : words.list(consent.apps.map(\.title))
            return [
                "group": consent.group.number, "number": account.number, "names": names, "live": consent.isLive,
                "since": words.date(consent.firstAuthorizedAt), "last": words.date(consent.lastAuthorizedAt),
            ]
        }
        values["has_consents"] = !account.consents.isEmpty
        if let inbox = inboxes.first(where: { $0.number == account.inboxNumber }) {
            values["inbox"] = PortalText.address(inbox.address)
        }
        values.merge(choices(of: account, inboxes)) { $1 }
        values["sources"] = sources.map { ["name": $0.kind == .domain ? "…@\($0.value)" : $0.value] }
        values["can_write"] = account.isActive && !sources.isEmpty
        values.merge(try await refusals(of: account, words)) { $1 }
        values.merge(try await checks(of: account, words)) { $1 }
        (values["typed_name"], values["typed_note"]) = (account.notes.name, account.notes.note)
        let isOfDay = problem?.form == .day
        values["day_lists"] = words.lists(
            for: Self.switchDays(now()),
            chosen: isOfDay ? FormDay(request.typed) : FormDay(number: account.switchesAt.map(Day.number)), isInvalid: isOfDay)
        if let count = account.messagesLeft { values["after"] = count }
        switch problem?.form {
        case .day: values["day_problem"] = problem?.text
        case .notes:
            (values["typed_name"], values["typed_note"]) = (request.typed("name"), request.typed("note"))
            values["notes_problem"] = problem?.text
        case .write:
            values["typed"] = request.typed("correspondent")
            values["problem"] = problem?.text
        case .block:
            values["typed_sender"] = request.typed("sender")
            values["block_problem"] = problem?.text
        case nil: break
        }
        if let written {
            values["written"] = true
            values["to"] = written.to
            values["reverse"] = written.reverse
        }
        return try request.html(
            "account", values, title: account.title, status: status, current: .addresses, notice: notice(request, account.title),
            hasScript: true)
    }

    // MARK: Apps

    private func consent(_ request: PortalRequest, _ account: UserExportAccount) throws -> UserExportConsent {
        let number = try request.number("group")
        guard let consent = account.consents.first(where: { $0.group.number == number && $0.isLive }) else {
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
            "stop",
            [
                "number": account.number, "group": consent.group.number, "names": names, "team": account.team.name,
                "is_last": account.consents.filter(\.isLive).count == 1, "is_real": account.emailKind == .real,
            ].merging(account.address.map { ["address": $0.wireForm] } ?? [:]) { $1 },
            title: request.language.text("Stop using {names}?", ["names": names]),
            current: .addresses)
    }

    func stop(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let consent = try consent(request, account)
        try await pool.run {
            _ = try store.grants.revoke(account: account.number, group: consent.group, Self.change(session, now()))
        }
        return request.redirect("/me/addresses/\(account.number)", told: "stopped")
    }

    // MARK: Writing first

    /// The address at which the user reaches a person of the team who has not written yet.
    func writeFirst(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let typed = request.typed("correspondent").trimmingCharacters(in: .whitespaces)
        guard account.isActive, let relayAddress = account.address else { throw PortalRefusal.notFound }
        guard let correspondent = try? AddrSpec.typed(typed) else {
            return try await showAccount(
                request, session,
                problem: (
                    .write,
                    request.language.text("That is not a valid email address. Enter only the address, as in help@example.com.")
                ),
                status: .unprocessableContent)
        }
        let covers = try await pool.run { try store.sources.teams(registering: correspondent).contains(account.team.number) }
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
        guard let number = UInt64(exactly: account.number).flatMap(AccountNumber.init) else { throw PortalRefusal.notFound }
        let token = tokens().reverse(account: number, correspondent: correspondent)
        if let address = StoredAddress(token) {
            let isStored = try await pool.run {
                try store.tokens.store(
                    [address], account: number, day: Day.number(now()), newPerDay: RelayLimits().storedAddressesPerDay, now: now()
                )
            }
            guard isStored else {
                return try await showAccount(
                    request, session,
                    problem: (.write, request.language.text("Too many new addresses today; try again after midnight (UTC).")),
                    status: .unprocessableContent)
            }
        }
        return try await showAccount(
            request, session,
            written: (correspondent.wireForm, AddrSpec(localPart: token.localPart, domain: relayAddress.domain).wireForm))
    }

    /// Attributes a change on the page to the user, for the audit.
    static func change(_ session: PageSession, _ now: Int64) -> Change { Change(actor: "user:\(session.userID)", now: now) }
}
