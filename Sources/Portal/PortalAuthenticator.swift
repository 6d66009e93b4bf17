// The authenticator app on the page: set up and removed, and whether every
// sign-in needs two factors.

import Accounts
import HTTP
import Hummingbird
import Languages
import SignIn
import Support

/// Sets up an authenticator app.
struct AuthenticatorView: PageView {
    static let template = PageTemplate.authenticator
    let csrf: String
    /// The secret, sealed for the form.
    let sealed: String
    /// The secret as a person types it, in groups of four characters.
    let secret: String
    let uri: String
    /// Data of an SVG path: the QR code.
    let modules: String
    /// Modules on a side, the margin included.
    let side: Int
    let problem: String?
    /// Where the user goes without one.
    let back: String
}

extension PortalPage {
    /// - Parameter old: the secret that the form had; nil for a new one.
    func showAuthenticator(
        _ request: PortalRequest, old: (secret: [UInt8], sealed: String)? = nil,
        problem: String? = nil
    ) async throws -> Response {
        guard let token = request.sessionToken, let session = try await session(request) else {
            return request.redirect(request.step("/me/sign-in"))
        }
        let (factors, mayChange, inbox) = try await pool.run {
            (
                try secondFactors(session), try mayChangeFactors(session),
                try store.inboxes.inbox(user: session.userID, .number(session.inboxNumber))
            )
        }
        guard factors.authenticatorSince == nil else {
            return request.redirect(
                request.sheet == nil ? "/me/security" : request.step(Self.secondPath))
        }
        guard mayChange else { return request.redirect(changePath(request)) }
        let (secret, sealed) =
            try old ?? store.authenticators.newSecret(session: session, now: now())
        let service = mailer.settings.service
        let account = PortalText.address(inbox.address)
        // A long address does not fit into a code that a phone can read: without it,
        // the app shows the service alone.
        let uri = [account, ""].lazy.map {
            OneTimePassword.setUpURI(secret, service: service, account: $0)
        }
        .first { QRCode($0) != nil }
        guard let uri, let code = QRCode(uri) else { throw Problem.fault() }
        let view = AuthenticatorView(
            csrf: PortalCSRF.token(for: token), sealed: sealed,
            secret: Self.groups(OneTimePassword.text(secret)), uri: uri,
            modules: code.path, side: code.size + 8, problem: problem,
            back: request.sheet == nil ? "/me/security" : request.step(Self.secondPath))
        return try request.html(
            view, title: request.language.text("Set up an authenticator app"),
            status: problem == nil ? .ok : .unprocessableContent)
    }

    /// - Parameter text: ASCII.
    private static func groups(_ text: String) -> String {
        let octets = Array(text.utf8)
        return stride(from: 0, to: octets.count, by: 4)
            .map { String(decoding: octets[$0..<min($0 + 4, octets.count)], as: UTF8.self) }.joined(
                separator: " ")
    }

    func addAuthenticator(_ request: PortalRequest) async throws -> Response {
        guard let token = request.sessionToken, let session = try await session(request) else {
            return request.redirect(request.step("/me/sign-in"))
        }
        let again = request.step(Self.authenticatorPath)
        guard PortalCSRF.matches(request.form["csrf"], token) else {
            return request.redirect(again)
        }
        let (factors, mayChange) = try await pool.run {
            (try secondFactors(session), try mayChangeFactors(session))
        }
        let onward = request.sheet == nil ? "/me/security" : request.step(Self.sheetPath)
        if request.repetition == .done, factors.authenticatorSince != nil {
            return try await showRecoveryCodes(request, session, onward: onward)
        }
        guard factors.authenticatorSince == nil, mayChange else {
            return request.redirect(again)
        }
        let (sealed, code, time) = (request.typed("secret"), request.typed("code"), now())
        guard let secret = store.authenticators.secret(sealed, session: session, now: time) else {
            return request.redirect(again)
        }
        let isRight = try await pool.run {
            try store.authenticators.add(
                session: session, secret: secret, code: code, Self.change(session, time))
        }
        guard isRight else {
            return try await showAuthenticator(
                request, old: (secret, sealed),
                problem: request.language.text(
                    "This code is wrong. Enter the one that your app shows now."))
        }
        try await tell(session.userID, .newAuthenticator, in: request.language)
        return try await showRecoveryCodes(request, session, onward: onward)
    }

    func removeAuthenticator(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        guard try await pool.run({ try mayChangeFactors(session) }) else {
            return request.redirect("/me/change")
        }
        let change = Self.change(session, now())
        try await pool.run { try store.authenticators.remove(user: session.userID, change) }
        return request.redirect("/me/security", told: .authenticatorRemoved)
    }

    func requireTwoFactors(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        guard let state = request.form["state"]?.text,
            ["on", "off"].contains(where: { $0.hasSameOctets(as: state) })
        else {
            throw PortalRefusal.notFound
        }
        guard try await pool.run({ try mayChangeFactors(session) }) else {
            return request.redirect("/me/change")
        }
        let (isOn, change) = (state.hasSameOctets(as: "on"), Self.change(session, now()))
        try await pool.run { try store.authenticators.require(isOn, user: session.userID, change) }
        guard isOn else { return request.redirect("/me/security", told: .twoFactorsOff) }
        return try await showRecoveryCodes(request, session, onward: Self.secondPath)
    }
}
