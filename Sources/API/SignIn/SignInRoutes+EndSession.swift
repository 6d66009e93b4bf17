// GET and POST /auth/end-session, by which an app requests sign-out, and /auth/signed-out, the
// return from the page.

import Accounts
import HTTP
import HTTPTypes
import Hummingbird
import SignIn
import Support

extension SignInRoutes {
    func addEndSessionRoutes(to routes: Routes) {
        routes.open(bodyLimit: AuthorizationParameters.maximumLength)
            .get(.init(SignInStep.endSession.rawValue), use: endSession)
            .post(.init(SignInStep.endSession.rawValue), use: endSession)
            .get(.init(SignInStep.signedOut.rawValue), use: signedOut)
    }

    /// Checks the request, and passes it to the page, which owns the session.
    func endSession(_ request: Request, _ context: APIContext) async throws -> Response {
        guard let page = settings.signInPage else { throw Problem.notFound() }
        guard let parameters = try await parameters(request, context) else {
            return tell(.notSignedOut(.malformed), request)
        }
        let hint = try await claims(hinted: parameters["id_token_hint"]?.text)
        let registered: [String] =
            if let id = EndSessionRequest.clientID(parameters, hint: hint) {
                try await parts.run { try $0.openIDClients.logoutRedirects(clientID: id) }
            } else { [] }
        let checked: EndSessionRequest
        do {
            checked = try EndSessionRequest(parameters, hint: hint, redirectURIs: registered)
        } catch {
            return tell(.notSignedOut(error), request)
        }
        let (time, network) = (parts.now(), parts.proxies.widestNetwork(of: request, context))
        let handle = try await parts.run { [checked] in
            try $0.authorizations.add(checked, network: network, now: time)
        }
        return .redirect(to: "\(page)\(page.contains("?") ? "&" : "?")end_session=\(handle)")
    }

    /// The browser returns from the page.
    func signedOut(_ request: Request, _ context: APIContext) async throws -> Response {
        let time = parts.now()
        guard let handle = value("request", in: request),
            let ended = try await parts.run({
                try $0.authorizations.openEndSession(handle, now: time)
            }),
            let destination = ended.destination, try await isRegistered(ended)
        else {
            return tell(.signedOut, request)
        }
        return .rendered(.leading(to: destination, words(request)))
    }

    /// Whether the address is still registered for the app. A team may have removed it in the
    /// meantime.
    private func isRegistered(_ ended: EndSessionRequest) async throws -> Bool {
        guard let clientID = ended.clientID, let uri = ended.redirectURI else { return false }
        let registered = try await parts.run {
            try $0.openIDClients.logoutRedirects(clientID: clientID)
        }
        return registered.contains(where: uri.hasSameOctets(as:))
    }
}
