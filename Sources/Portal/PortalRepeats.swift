// A button that is pressed twice acts once: the second form gets the outcome of the first.

import HTTPTypes
import Hummingbird
import SignIn

extension PortalPage {
    /// How long the second form waits for the answer to the first.
    private static let patience: Duration = .seconds(8)
    private static let pause: Duration = .milliseconds(50)

    /// Answers a form, once. The same form within ten seconds leads to the page of the first form.
    /// If the first form did not lead to a page of the user, the second is answered too.
    /// `request.repetition` then has the outcome of the first.
    /// - Parameters:
    ///   - cookie: the cookie of the browser that sent the form.
    ///   - isSignedIn: whether the cookie is that of a session. The pages to which such forms lead
    ///     need no other cookie.
    func once(
        _ request: PortalRequest, cookie: String, isSignedIn: Bool,
        _ answer: (PortalRequest) async throws -> Response
    ) async throws -> Response {
        let mark = store.page.formMark(
            cookie: cookie, path: request.request.uri.path, body: request.form.octets)
        var turn = try await pool.run { try store.page.beginForm(mark, now: now()) }
        let end = ContinuousClock.now + Self.patience
        while turn == .underWay {
            guard ContinuousClock.now < end else { throw PortalRefusal.busy }
            try await Task.sleep(for: Self.pause)
            turn = try await pool.run { try store.page.turn(of: mark) }
        }
        switch turn {
        case .first, .underWay:
            do {
                let response = try await answer(request)
                let outcome = outcome(of: response, isSignedIn: isSignedIn)
                try await pool.run { try store.page.endForm(mark, outcome) }
                return response
            } catch {
                try? await pool.run { try store.page.endForm(mark, nil) }
                throw error
            }
        case .repeated(.led(let path, let telling)): return request.redirect(path, telling: telling)
        case .repeated(let outcome):
            var request = request
            request.repetition = outcome
            return try await answer(request)
        }
    }

    /// Answers the form of a person who may not be signed in yet.
    func once(
        _ request: PortalRequest, _ answer: (PortalRequest) async throws -> Response
    ) async throws -> Response {
        guard let cookie = request.sessionToken ?? request.browser else {
            return try await answer(request)
        }
        return try await once(request, cookie: cookie, isSignedIn: false, answer)
    }

    private func outcome(of response: Response, isSignedIn: Bool) -> FormOutcome? {
        switch response.status.kind {
        case .serverError: nil
        case .clientError: .refused
        case .redirection where isSignedIn:
            // Only the user's own pages, because their addresses contain nothing that gives access.
            response.headers[.location].flatMap {
                $0 == "/me" || $0.hasPrefix("/me?") || Self.lasting.contains(where: $0.hasPrefix)
                    ? FormOutcome.led(to: $0, telling: cookies.telling(set: response.headers)) : nil
            } ?? .done
        default: .done
        }
    }

    private static let lasting = ["/me/addresses/", "/me/inboxes", "/me/security", "/me/data"]
}
