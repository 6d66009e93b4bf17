// Inboxes on the page: adding one, verifying it again, and choosing where mail goes.

import Accounts
import Database
import HTTP
import Hummingbird
import InternetMessage
import Languages
import PersonalData
import SignIn

struct InboxesView: PageView {
    struct Item: Sendable {
        let number: Int64
        let address: String
        /// Whether mail goes to this inbox by default; such an inbox cannot be removed.
        let isDefault: Bool
        let isVerified: Bool
        let isReplyOnly: Bool
        /// Whether the user signed in with it.
        let isCurrent: Bool
        /// Whether a code was sent and not entered yet.
        let isUnderWay: Bool
        let canBeUsed: Bool
        let since: String
        let itemProblem: String?
        /// The last action.
        let told: String?
    }

    static let template = PageTemplate.inboxes
    static let place = PagePlace.inboxes
    let inboxes: [Item]
    /// Whether the user gets messages about refused mail.
    let isTold: Bool
    let toldOfRefusals: String?
    let typed: String?
    let problem: String?
}

/// Asks the user to confirm that the inbox of this session is removed.
struct RemoveInboxView: PageView {
    static let template = PageTemplate.remove
    static let place = PagePlace.inboxes
    let number: Int64
    let address: String
}

extension PortalPage {
    func showInboxes(
        _ request: PortalRequest, _ session: PageSession, problem: String? = nil,
        about inbox: Int64? = nil,
        status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let limits = mailer.settings.limits
        let (rows, isTold) = try await pool.run {
            let rows = try store.inboxes.inboxes(user: session.userID).map { inbox in
                (
                    inbox,
                    inbox.isVerified
                        ? nil
                        : try store.verifications.state(
                            user: session.userID, inbox: inbox.number, limits: limits, now: now())
                )
            }
            return (rows, try store.persons.wantsRefusals(user: session.userID))
        }
        let words = request.words
        let view = InboxesView(
            inboxes: rows.map { item, state in
                InboxesView.Item(
                    number: item.number, address: PortalText.address(item.address),
                    isDefault: item.isDefault && item.isVerified, isVerified: item.isVerified,
                    isReplyOnly: item.isReplyOnly, isCurrent: item.number == session.inboxNumber,
                    isUnderWay: (state?.triesLeft ?? 0) > 0,
                    canBeUsed: item.isVerified && !item.isDefault && !item.isReplyOnly,
                    since: words.date(item.verifiedAt ?? item.createdAt),
                    itemProblem: item.number == inbox ? problem : nil,
                    told: request.notice(.inbox, of: item.number))
            }, isTold: isTold, toldOfRefusals: request.notice(.refusals),
            typed: problem != nil && inbox == nil ? request.typed("email") : nil,
            problem: inbox == nil ? problem : nil)
        return try request.html(
            view, title: request.language.text("Your inboxes"), status: status,
            notice: request.notice(.page))
    }

    /// Adds an inbox and sends a message to it. The response does not reveal
    /// whether another user has it.
    func addInbox(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let typed = request.typed("email").trimmingCharacters(in: .whitespaces)
        guard let address = try? AddrSpec.typed(typed) else {
            return try await showInboxes(
                request, session,
                problem: request.language.text(
                    "That is not a valid email address. Enter only the address, as in name@example.com."
                ),
                status: .unprocessableContent)
        }
        guard !store.inboxes.isRelayed(InboxAddress(address)) else {
            return try await showInboxes(
                request, session,
                problem: request.language.text(
                    "That is a relay address, which hides an inbox. Enter the address of your own inbox."
                ),
                status: .unprocessableContent)
        }
        do {
            let change = Self.change(session, now())
            let pending = try await pool.run {
                let inbox = try store.inboxes.add(
                    user: session.userID, InboxAddress(address), isVerified: false,
                    isReplyOnly: false, change)
                return try store.verifications.begin(
                    user: session.userID, .number(inbox.number), limits: mailer.settings.limits,
                    change)
            }
            try write(pending, in: request.language)
            return request.redirect("/me/inboxes", told: .codeSent, of: pending.inbox.number)
        } catch let refusal as StoreFailure where refusal.isRefusal {
            let problem =
                switch refusal.code {
                case .refused(.exists): request.language.text("You have added this inbox already.")
                case .refused(.limit):
                    request.language.text(
                        "You have as many inboxes as one can have. Remove one, or try again in an hour."
                    )
                default: request.sentence(refusal)
                }
            return try await showInboxes(request, session, problem: problem, status: .conflict)
        }
    }

    func sendAgain(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let number = try request.number("inbox")
        do {
            let change = Self.change(session, now())
            let pending = try await pool.run {
                try store.verifications.begin(
                    user: session.userID, .number(number), limits: mailer.settings.limits, change)
            }
            try write(pending, in: request.language)
            return request.redirect("/me/inboxes", told: .codeSent, of: number)
        } catch let refusal as StoreFailure
            where refusal.isRefusal && refusal.code != .refused(.notFound)
        {
            let problem =
                refusal.code == .refused(.limit)
                ? request.language.text(
                    "Too many messages went to this inbox. Try again in an hour.")
                : request.sentence(refusal)
            return try await showInboxes(
                request, session, problem: problem, about: number, status: .conflict)
        }
    }

    private func write(_ pending: PendingConfirmation, in language: Catalogue) throws {
        guard
            sendLater(
                "no verification message was sent",
                { try mailer.send(pending, in: language, now: now()) })
        else {
            throw PortalRefusal.busy
        }
    }

    func enterCode(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let (number, code) = (try request.number("inbox"), request.typed("code"))
        do {
            // The second press of the button sends the same wrong code. It does not count as a
            // second try.
            if request.repetition == .refused,
                let refusal = try await wrongCode(inbox: number, session)
            {
                throw refusal
            }
            _ = try await pool.run {
                try store.verifications.confirm(
                    user: session.userID, .number(number), code: code,
                    limits: mailer.settings.limits, Self.change(session, now())
                )
            }
            return request.redirect("/me/inboxes", told: .confirmed, of: number)
        } catch let refusal as StoreFailure
            where refusal.isRefusal && refusal.code != .refused(.notFound)
        {
            return try await showInboxes(
                request, session, problem: request.sentence(refusal), about: number,
                status: .unprocessableContent)
        }
    }

    /// The store's error for the wrong code that was just entered; nil if the inbox waits for no
    /// code.
    private func wrongCode(
        inbox number: Int64, _ session: PageSession
    ) async throws -> StoreFailure? {
        let limits = mailer.settings.limits
        return try await pool.run {
            try store.verifications.state(
                user: session.userID, inbox: number, limits: limits, now: now()
            )
            .map { InboxConfirmationRepository.wrongCode(triesLeft: $0.triesLeft) }
        }
    }

    /// Makes another inbox the default; the old one is notified, in case someone else did this.
    func makeDefault(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let number = try request.number("inbox")
        let change = Self.change(session, now())
        let old = try await pool.run {
            let old = try store.inboxes.inboxes(user: session.userID).first {
                $0.isDefault && $0.isVerified
            }
            try store.inboxes.makeDefault(user: session.userID, .number(number), change)
            guard let old, old.number != number else {
                return nil as (inbox: Inbox, staysFor: Bool)?
            }
            // Addresses for which the user chose the old inbox keep it.
            return (old, try store.persons.isChosen(user: session.userID, inbox: old.number))
        }
        if let old {
            let language = request.language
            _ = sendLater("no message about the change was sent") {
                try mailer.sendChange(
                    to: old.inbox.address, of: old.staysFor ? .most : .all, in: language, now: now()
                )
            }
        }
        return request.redirect("/me/inboxes", told: .mailLed, of: number)
    }

    func removeInbox(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let number = try request.number("inbox")
        let change = Self.change(session, now())
        let isSure = request.form["sure"] == "yes"
        let isRemoved = try await pool.run {
            let inboxes = try store.inboxes.inboxes(user: session.userID)
            guard let inbox = inboxes.first(where: { $0.number == number }) else {
                throw PortalRefusal.notFound
            }
            guard !(inbox.isDefault && inbox.isVerified) else {
                throw StoreFailure.refused(
                    .unmet, "mail goes to this inbox: choose another inbox for your mail first")
            }
            // This ends the current session, so the first button is not enough.
            guard number != session.inboxNumber || isSure else { return false }
            try store.inboxes.remove(user: session.userID, .number(number), change)
            return true
        }
        guard isRemoved else { return try await askToRemove(request, session) }
        return request.redirect("/me/inboxes", told: .inboxRemoved)
    }

    private func askToRemove(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        let inboxes = try await pool.run { try store.inboxes.inboxes(user: session.userID) }
        guard let inbox = inboxes.first(where: { $0.number == session.inboxNumber }) else {
            throw PortalRefusal.notFound
        }
        let address = PortalText.address(inbox.address)
        return try request.html(
            RemoveInboxView(number: inbox.number, address: address),
            title: request.language.text("Remove {address}?", ["address": address]))
    }
}
