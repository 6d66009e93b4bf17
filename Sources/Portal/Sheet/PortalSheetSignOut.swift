// Sign-out at an app's request: `/auth/end-session` passes checked requests here, and
// `/auth/signed-out` leads back.

import HTTP
import Hummingbird
import SignIn

/// Asks the user whether to sign out here too.
struct SignOutView: PageView {
    static let template = PageTemplate.signOut
    let csrf: String
    /// The handle of the app's request.
    let endSession: String
}

extension PortalPage {
    /// Signs out at once if the app's token names the signed-in user; otherwise asks the user.
    func showSignOut(_ request: PortalRequest, _ handle: String) async throws -> Response {
        guard let ended = try await endSession(handle) else { throw PortalRefusal.over }
        guard let session = try await session(request), let token = request.sessionToken else {
            return try await afterSignOut(request, handle, nil)
        }
        let meant = try await pool.run {
            guard let subject = ended.subject, let clientID = ended.clientID else {
                return nil as String?
            }
            return try store.provider.userID(hint: subject, clientID: clientID, now: now())
        }
        guard meant == session.userID else {
            return try request.html(
                SignOutView(csrf: PortalCSRF.token(for: token), endSession: handle),
                title: request.language.text("Sign out?"))
        }
        return try await afterSignOut(request, handle, session)
    }

    func signOut(_ request: PortalRequest, _ handle: String) async throws -> Response {
        guard try await endSession(handle) != nil else { throw PortalRefusal.over }
        let session = try await session(request)
        if session != nil { try request.checkForm() }
        return try await afterSignOut(request, handle, session)
    }

    private func endSession(_ handle: String) async throws -> EndSessionRequest? {
        let time = now()
        return try await pool.run { try store.authorizations.openEndSession(handle, now: time) }
    }

    /// - Parameter session: the session that ends; nil for none.
    private func afterSignOut(
        _ request: PortalRequest, _ handle: String, _ session: PageSession?
    ) async throws -> Response {
        guard let provider else { throw PortalRefusal.over }
        if let session {
            try await pool.run { try store.page.signOut(session, everywhere: false, now: now()) }
        }
        return request.redirect(
            "\(provider.issuer)/auth/signed-out?request=\(handle)",
            cookies: session == nil
                ? []
                : [cookies.remove(PortalCookies.session), cookies.remove(PortalCookies.browser)])
    }
}
