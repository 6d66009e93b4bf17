// Settings of one address: forwarding, the user's name and note for it, and the inbox.

import Accounts
import Database
import Hummingbird
import PersonalData
import SignIn
import Support

/// Asks the user to confirm the replacement of an address.
struct ReplaceView: PageView {
    static let template = PageTemplate.replace
    let number: Int64
    let team: String
    let address: String
}

extension PortalPage {
    func switchForwarding(_ request: PortalRequest, _ session: PageSession) async throws -> Response
    {
        let account = try await account(request, session)
        guard let address = account.address, let state = request.form["state"]?.text,
            ["on", "off"].contains(state)
        else {
            throw PortalRefusal.notFound
        }
        try await pool.run {
            _ = try store.addresses.setForwarding(
                address, on: state == "on", by: .user, Self.change(session, now()))
        }
        // The redirect leads back to the page with the button.
        return request.redirect(
            Self.listPath(request.form["back"]?.text) ?? "/me/addresses/\(account.number)",
            told: state == "on" ? .forwardingOn : .forwardingOff, of: account.number)
    }

    /// Schedules a switch of forwarding on a day or after a number of messages;
    /// cancels it if neither is given.
    func scheduleSwitch(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        guard account.isActive else { throw PortalRefusal.notFound }
        let (typed, after, time) = (FormDay(request.typed), request.typed("after"), now())
        let (day, count) = (typed.number, TypedCode.number(after))
        func refuse(_ text: String) async throws -> Response {
            try await showAccount(
                request, session, problem: (.day, text), status: .unprocessableContent)
        }
        guard typed.isEmpty || typed.isIncomplete || day != nil else {
            return try await refuse(request.language.text("This day does not exist."))
        }
        guard typed.isEmpty || day.map({ Self.switchDays(time).contains($0) }) == true else {
            return try await refuse(
                request.language.text("Choose a day from tomorrow on, within a year."))
        }
        guard
            after.isEmpty
                || account.isForwardingOn && count.map({ (1...10_000).contains($0) }) == true
        else {
            return try await refuse(
                request.language.text("Choose a number of messages from 1 to 10,000."))
        }
        try await pool.run {
            try store.addresses.switchForwarding(
                account: account.number, at: day.map { $0 * 86_400 }, after: count,
                Self.change(session, time))
        }
        return request.redirect(
            "/me/addresses/\(account.number)", told: .scheduled, of: account.number)
    }

    /// Days on which forwarding may switch by itself: days since 1970 UTC.
    static func switchDays(_ now: Int64) -> ClosedRange<Int64> {
        Day.number(now) + 1...Day.number(now) + 366
    }

    func askToReplace(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        guard account.isActive, let address = account.address else { throw PortalRefusal.notFound }
        return try request.html(
            ReplaceView(number: account.number, team: account.team.name, address: address.wireForm),
            title: request.language.text("Replace this address?"))
    }

    /// Replaces an address that too many people know.
    func replace(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        guard account.isActive else { throw PortalRefusal.notFound }
        try await pool.run {
            _ = try store.addresses.replace(account: account.number, Self.change(session, now()))
        }
        return request.redirect(
            "/me/addresses/\(account.number)", told: .replaced, of: account.number)
    }

    /// The app gets a relay address from now on, not the user's own address.
    func hide(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let change = Self.change(session, now())
        try await pool.run { try store.addresses.hide(account: account.number, change) }
        return request.redirect(
            "/me/addresses/\(account.number)", told: .hidden, of: account.number)
    }

    /// A name and a note that only the user sees.
    func setNotes(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        do {
            try await pool.run {
                let notes = try AccountNotes(
                    name: request.typed("name"), note: request.typed("note"))
                try store.persons.setNotes(user: session.userID, account: account.number, notes)
            }
        } catch let refusal as StoreFailure where refusal.isRefusal {
            return try await showAccount(
                request, session, problem: (.notes, request.sentence(refusal)),
                status: .unprocessableContent)
        }
        return request.redirect("/me/addresses/\(account.number)", told: .noted, of: account.number)
    }

    /// Directs mail for this address to a separate inbox, or to the default one. The inbox
    /// used so far is notified.
    func chooseInbox(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let chosen = request.typed("inbox")
        guard account.address != nil, chosen == "default" || Int64(chosen) != nil else {
            throw PortalRefusal.notFound
        }
        let change = Self.change(session, now())
        let old = try await pool.run {
            let old = try store.inboxes.inboxes(user: session.userID).first {
                $0.number == account.inboxNumber
            }
            let new = try store.inboxes.lead(
                account: account.number, user: session.userID,
                to: Int64(chosen).map { .number($0) }, change)
            return new == old?.number ? nil : old
        }
        if let old {
            let language = request.language
            _ = sendLater("no message about the change was sent") {
                try mailer.sendChange(to: old.address, of: .one, in: language, now: change.now)
            }
        }
        return request.redirect("/me/addresses/\(account.number)", told: .led, of: account.number)
    }

    /// The inboxes that can be chosen for an address; nil if there is no choice.
    func choice(of account: UserExportAccount, _ inboxes: [Inbox]) -> AccountView.Choice? {
        let possible = inboxes.filter { $0.isVerified && !$0.isReplyOnly }
        guard account.isActive, account.emailKind != .real, possible.count > 1 else { return nil }
        return AccountView.Choice(
            isDefaultChosen: !account.hasOwnInbox,
            inboxes: possible.map {
                InboxOption($0, isChosen: account.hasOwnInbox && $0.number == account.inboxNumber)
            })
    }
}
