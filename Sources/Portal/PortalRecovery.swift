// Users who lost their second factor on the page: recovery codes, and the wait of days.

import Accounts
import HTTP
import Hummingbird
import Languages
import Mail
import SignIn
import Support

/// Shows new recovery codes, once.
struct RecoveryCodesView: PageView {
    static let template = PageTemplate.recoveryCodes
    static let hasScript = true
    /// One on each line.
    let codes: String
    /// Where the user goes on.
    let onward: String
}

/// Asks whether a wait is to be stopped, and says that it was.
struct StopRecoveryView: PageView {
    static let template = PageTemplate.stopRecovery
    /// Nil once it is stopped.
    let token: String?
}

extension PortalPage {
    // MARK: Recovery codes

    func useRecoveryCode(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        let code = request.typed("recovery")
        let isRight = try await pool.run {
            try store.recoveryCodes.use(session: session, code: code, now: now())
        }
        guard isRight else {
            return try await showSecond(
                request,
                problem: request.language.text("This recovery code is wrong, or was used already."),
                status: .unprocessableContent)
        }
        try await tell(session.userID, .recoveryCodeUsed, in: request.language)
        return request.redirect(
            request.sheet == nil ? "/me/security" : request.step(Self.sheetPath))
    }

    func renewRecoveryCodes(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        // Codes that were made before two factors were on would let in whoever read the inbox then.
        guard level(for: session) > .any else { throw PortalRefusal.notFound }
        return try await showRecoveryCodes(request, session, onward: "/me/security")
    }

    /// New codes, shown once.
    func showRecoveryCodes(
        _ request: PortalRequest, _ session: PageSession, onward: String
    ) async throws -> Response {
        let change = Self.change(session, now())
        let codes = try await pool.run {
            try store.recoveryCodes.renew(user: session.userID, change)
        }
        return try request.html(
            RecoveryCodesView(codes: codes.joined(separator: "\n"), onward: onward),
            title: request.language.text("Keep these recovery codes"))
    }

    // MARK: The wait

    /// Nil where there is no such way, or the session is sure enough already.
    func recoveryWait(
        _ request: PortalRequest, _ session: PageSession
    ) -> SecondFactorView.RecoveryWait? {
        guard recoveryDays > 0, session.level < .twoFactor else { return nil }
        return SecondFactorView.RecoveryWait(
            days: request.language.text("{n} days", count: recoveryDays),
            endsOn: session.recoveryEndsAt.map(request.words.date),
            isOver: session.recoveryEndsAt.map { $0 <= now() } ?? false)
    }

    /// The session of a form of the second-factor page; nil if it is not signed in or has expired.
    private func recoverySession(_ request: PortalRequest) async throws -> PageSession? {
        guard let token = request.sessionToken,
            PortalCSRF.matches(request.form["csrf"], token), recoveryDays > 0
        else { return nil }
        guard let session = try await session(request) else { return nil }
        let factors = try await pool.run { try secondFactors(session) }
        return session.needsTwoFactors || !factors.isEmpty ? session : nil
    }

    func beginRecovery(_ request: PortalRequest) async throws -> Response {
        let back = request.step(Self.secondPath)
        guard let session = try await recoverySession(request) else {
            return request.redirect(back)
        }
        let change = Self.change(session, now())
        let begun = try await pool.run {
            try store.recoveryWaits.begin(user: session.userID, days: recoveryDays, change)
        }
        if let begun {
            let (day, link) = (
                request.words.date(begun.endsAt), "\(origin)/me/recovery/\(begun.token)"
            )
            try await tellEveryInbox(of: session.userID, .recoveryBegun, in: request.language) {
                $0.day = day
                $0.link = link
            }
        }
        return request.redirect(back)
    }

    func finishRecovery(_ request: PortalRequest) async throws -> Response {
        guard let session = try await recoverySession(request) else {
            return request.redirect(request.step(Self.secondPath))
        }
        let change = Self.change(session, now())
        try await pool.run { try store.recoveryWaits.finish(user: session.userID, change) }
        try await tellEveryInbox(of: session.userID, .recovery, in: request.language) { _ in }
        return request.redirect(
            request.step("/me/sign-in"), cookies: [cookies.remove(PortalCookies.session)])
    }

    func stopRecovery(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        let change = Self.change(session, now())
        try await pool.run { try store.recoveryWaits.stop(user: session.userID, change) }
        return request.redirect("/me/security", told: .recoveryStopped)
    }

    func showStopRecovery(_ request: PortalRequest) async throws -> Response {
        let token = try request.token()
        let isThere = try await pool.run { try store.recoveryWaits.isStoppable(token, now: now()) }
        return try request.html(
            StopRecoveryView(token: isThere ? token : nil),
            title: request.language.text(isThere ? "Stop it?" : "It is stopped"))
    }

    /// The link alone is enough: anyone who reads an inbox of the user may stop it.
    func stopRecovery(_ request: PortalRequest) async throws -> Response {
        let token = try request.token()
        try await pool.run { try store.recoveryWaits.stop(token, now: now()) }
        return try request.html(
            StopRecoveryView(token: nil), title: request.language.text("It is stopped"))
    }

    /// Notifies a user at every confirmed inbox.
    private func tellEveryInbox(
        of user: String, _ kind: NoticeKind, in language: Catalogue,
        _ complete: @escaping @Sendable (inout NoticeValues) -> Void
    ) async throws {
        let inboxes = try await pool.run {
            try store.inboxes.inboxes(user: user).filter { $0.isVerified && !$0.isReplyOnly }
        }
        for inbox in inboxes {
            _ = sendLater("no \(kind.rawValue) message was sent") {
                try mailer.tell(kind, to: inbox.address, in: language, now: now(), complete)
            }
        }
    }
}
