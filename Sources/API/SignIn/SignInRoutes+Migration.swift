// POST /auth/usermigrationinfo: identifiers that two teams exchange for a user while an
// app moves between them.

import Accounts
import HTTP
import Hummingbird
import Support

extension SignInRoutes {
    /// The old team sends `sub` and `target` (the new team's identifier) and gets a `transfer_sub`.
    /// The new team sends that and gets the user's new `sub` and address. Both use an access token
    /// of scope `user.migration`.
    func migrationInfo(_ request: Request, _ context: APIContext) async throws -> Response {
        let form = try await form(request, context)
        // The client's secret is in the form; the Authorization field has the access token.
        guard let clientID = form["client_id"]?.text, let secret = form["client_secret"]?.text
        else {
            throw AuthError.invalidClient(
                "client_id and client_secret are required", byHeader: false)
        }
        let client = try await client(id: clientID, secret: secret, byHeader: false)
        guard let token = request.bearerToken else { throw AuthError.invalidToken() }
        let time = parts.now()
        let holder = try await parts.run { try $0.provider.holder(accessToken: token, now: time) }
        guard let holder, holder.clientID == client.clientID, holder.teamID == client.teamID,
            holder.scopes.contains(ProviderScope.migration)
        else { throw AuthError.invalidToken() }
        let change = Change(actor: "client:\(client.clientID)", now: time)
        if let transferSubject = form["transfer_sub"]?.text {
            guard form["sub"] == nil, form["target"] == nil else {
                throw AuthError.invalidRequest("send transfer_sub, or sub and target")
            }
            return try await account(transferSubject, client, change)
        }
        let (sub, target) = (try form.required("sub").text, try form.required("target").text)
        let subject = try await parts.run {
            try $0.transfers.transferSubject(sub: sub, client: client, target: target, change)
        }
        guard let subject else {
            throw AuthError.invalidRequest(
                "unknown sub, or no transfer of this app to this target was started")
        }
        return .unstored(["transfer_sub": .string(subject)])
    }

    private func account(
        _ transferSubject: String, _ client: ProviderClient, _ change: Change
    ) async throws -> Response {
        let found = try await parts.run {
            try $0.transfers.account(transferSubject: transferSubject, client: client, change)
        }
        guard let found else {
            throw AuthError.invalidRequest(
                "transfer_sub is not for this client, the transfer is not finished, or its 60 days are over"
            )
        }
        var object: JSONObject = ["sub": .string(found.sub)]
        object.setEmail(found.email)
        switch found.email {
        case .relay: object["is_private_email"] = .bool(true)
        case .shared: object["is_private_email"] = .bool(false)
        case nil: break
        }
        return .unstored(object)
    }
}
