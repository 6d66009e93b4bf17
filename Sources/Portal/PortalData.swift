// The user's stored data and its deletion: at once, or on a later day until which it can be cancelled.

import Accounts
import SignIn
import HTTP
import Hummingbird

extension PortalPage {
    /// Asks for confirmation by mail: access to an open session is not enough.
    func sendDeletionLink(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        guard let browser = request.browser else { throw PortalRefusal.foreign }
        let link = try await pool.run {
            try store.page.deletionLink(for: session, browser: browser, limits: mailer.settings.limits, now: now())
        }
        let language = request.language
        guard sendLater("no deletion link was sent", { try mailer.send(link, .deletion, in: language, now: now()) }) else {
            throw PortalRefusal.busy
        }
        return try request.html("delete", ["sent": true], title: request.language.text("Check your inbox"), current: .data)
    }

    func showDeletion(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let (token, browser) = (try request.token(), request.browser)
        let state = try await pool.run { try store.page.state(of: token, .deletion, browser: browser, now: now()) }
        guard state == .good else { return try deadLink(request, state) }
        var values: [String: Any] = ["token": token]
        values["day"] = deletionTime.map(request.words.date)
        return try request.html("delete-now", values, title: request.language.text("Delete everything?"), current: .data)
    }

    func delete(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let token = try request.token()
        guard let browser = request.browser else { throw PortalRefusal.foreign }
        let (time, planned) = (now(), deletionTime)
        let isDone = try await pool.run {
            guard try store.page.useDeletionLink(token, session: session, browser: browser, now: time) else { return false }
            if let planned {
                try store.users.planDeletion(session.userID, at: planned, Self.change(session, time))
            } else {
                try store.users.remove(session.userID, Self.change(session, time))
            }
            return true
        }
        guard isDone else {
            return try request.html("link", title: request.language.text("This link has expired"), status: .gone)
        }
        if let planned {
            try await tell(session.userID, .plannedDeletion, in: request.language) { $0.day = request.words.date(planned) }
            return request.redirect("/me/data", told: "planned")
        }
        return request.redirect(
            "/me/goodbye",
            cookies: [PortalCookies.session, PortalCookies.browser, PortalCookies.known].map(cookies.remove))
    }

    /// When a deletion requested now is due; nil for at once.
    private var deletionTime: Int64? { deletionDays == 0 ? nil : now() + Int64(deletionDays) * 86_400 }

    /// Cancels the scheduled deletion.
    func keepEverything(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        try await pool.run { try store.users.planDeletion(session.userID, at: nil, Self.change(session, now())) }
        return request.redirect("/me/data", told: "kept")
    }

    /// What was just done.
    func showData(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let notice: String? =
            switch request.told {
            case "planned": request.language.text("The day is set. A message tells you so, in case it was not you.")
            case "kept": request.language.text("Nothing is deleted.")
            default: nil
            }
        return try request.html(
            "data", ["is_ending": session.deletesAt != nil], title: request.language.text("Your data"), current: .data,
            notice: notice)
    }
}
