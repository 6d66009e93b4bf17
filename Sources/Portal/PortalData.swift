// The user's stored data and its deletion: at once, or on a later day until
// which it can be cancelled.

import Accounts
import HTTP
import Hummingbird
import SignIn

struct DataView: PageView {
    static let template = PageTemplate.data
    static let place = PagePlace.data
    /// Whether the deletion is scheduled already.
    let isEnding: Bool
}

/// Asks the user to confirm that everything is deleted; a link by mail follows.
struct DeleteView: PageView {
    static let template = PageTemplate.delete
    static let place = PagePlace.data
    var isSent = false
    /// How long a deletion can be cancelled; nil if it is done at once.
    var days: String?
    /// What is kept after the deletion, and the day until which; nil if nothing is.
    var kept: String?
    var until: String?
}

/// The last page of a person whose account is deleted.
struct GoodbyeView: PageView {
    static let template = PageTemplate.goodbye
    /// What is kept, and the day until which; nil if nothing is.
    var kept: String?
    var until: String?
}

/// The last step: the page that this link opens.
struct DeleteNowView: PageView {
    static let template = PageTemplate.deleteNow
    static let place = PagePlace.data
    let token: String
    /// When everything is deleted; nil for at once.
    let day: String?
}

extension PortalPage {
    func askToDelete(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let language = request.language
        let kept = try await pool.run { try store.holds.kept(ofUser: session.userID) }
        return try request.html(
            DeleteView(
                days: deletionDays > 0 ? language.text("{n} days", count: deletionDays) : nil,
                kept: kept.map(request.words.kinds), until: (kept?.endsAt).map(request.words.date)),
            title: language.text("Delete everything"))
    }

    /// Asks for confirmation by mail: access to an open session is not enough.
    func sendDeletionLink(_ request: PortalRequest, _ session: PageSession) async throws -> Response
    {
        guard let browser = request.browser else { throw PortalRefusal.foreign }
        let link = try await pool.run {
            try store.page.deletionLink(
                for: session, browser: browser, limits: mailer.settings.limits, now: now())
        }
        let language = request.language
        guard
            sendLater(
                "no deletion link was sent",
                { try mailer.send(link, .deletion, in: language, now: now()) })
        else {
            throw PortalRefusal.busy
        }
        return try request.html(
            DeleteView(isSent: true), title: request.language.text("Check your inbox"))
    }

    func showDeletion(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let (token, browser) = (try request.token(), request.browser)
        let state = try await pool.run {
            try store.page.state(of: token, .deletion, browser: browser, now: now())
        }
        guard state == .good else { return try deadLink(request, state) }
        return try request.html(
            DeleteNowView(token: token, day: deletionTime.map(request.words.date)),
            title: request.language.text("Delete everything?"))
    }

    func delete(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let token = try request.token()
        guard let browser = request.browser else { throw PortalRefusal.foreign }
        let (time, planned) = (now(), deletionTime)
        let (isDone, kept) = try await pool.run { () -> (Bool, KeptRecords?) in
            guard
                try store.page.useDeletionLink(token, session: session, browser: browser, now: time)
            else { return (false, nil) }
            let kept = try store.holds.kept(ofUser: session.userID)
            if let planned {
                try store.users.planDeletion(
                    session.userID, at: planned, Self.change(session, time))
            } else {
                try store.users.remove(session.userID, Self.change(session, time))
            }
            return (true, kept)
        }
        guard isDone else {
            return try request.html(
                LinkView(), title: request.language.text("This link has expired"), status: .gone)
        }
        if let planned {
            try await tell(session.userID, .plannedDeletion, in: request.language) {
                $0.day = request.words.date(planned)
                $0.kept = kept.map(request.words.kinds)
                $0.until = (kept?.endsAt).map(request.words.date)
            }
            return request.redirect("/me/data", told: .deletionPlanned)
        }
        return request.redirect(
            "/me/goodbye", told: kept == nil ? nil : .recordsKept, of: kept?.number,
            cookies: [PortalCookies.session, PortalCookies.browser, PortalCookies.known].map(
                cookies.remove))
    }

    /// The page after a deletion. Without a session, it knows from a cookie what is kept.
    func sayGoodbye(_ request: PortalRequest) throws -> Response {
        let kept = request.told == .recordsKept ? request.toldOf.flatMap(KeptRecords.init) : nil
        return try request.html(
            GoodbyeView(
                kept: kept.map(request.words.kinds), until: (kept?.endsAt).map(request.words.date)),
            title: request.language.text("Your account is deleted"))
    }

    /// When a deletion requested now is due; nil for at once.
    private var deletionTime: Int64? {
        deletionDays == 0 ? nil : now() + Int64(deletionDays) * 86_400
    }

    /// Cancels the scheduled deletion.
    func keepEverything(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        try await pool.run {
            try store.users.planDeletion(session.userID, at: nil, Self.change(session, now()))
        }
        return request.redirect("/me/data", told: .kept)
    }

    func showData(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        try request.html(
            DataView(isEnding: session.deletesAt != nil), title: request.language.text("Your data"),
            notice: request.notice(.page)
        )
    }
}
