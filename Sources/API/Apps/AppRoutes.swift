// /v1/apps and /v1/client-keys: a team manages its own apps as OpenID Connect clients.

import Accounts
import HTTP
import Hummingbird
import SignIn
import Support

package struct AppRoutes: RouteModule {
    private let parts: RouteParts

    package init(_ parts: RouteParts) { self.parts = parts }

    package func addRoutes(to routes: Routes) {
        routes.team(.appsRead).get("/v1/apps", use: list).get("/v1/client-keys", use: keys)
        routes.team(.appsWrite).post("/v1/apps/{client_id}/redirect-uris", use: addURI)
            .post("/v1/apps/{client_id}/redirect-uris/remove", use: removeURI)
            .post("/v1/apps/{client_id}/secrets", use: issueSecret)
            .delete("/v1/apps/{client_id}/secrets/{name}", use: revokeSecret)
            .post("/v1/client-keys", use: addKey).delete("/v1/client-keys/{kid}", use: removeKey)
    }

    private struct SecretView: Encodable {
        let name: String
        let createdAt: Timestamp

        init(_ secret: IssuedClientSecret) {
            (name, createdAt) = (secret.name, Timestamp(secret.createdAt))
        }
    }

    private struct AppView: Encodable {
        let clientId: String
        let group: String?
        let name: String?
        let `public`: Bool
        let idTokenAlgorithm: String
        let backchannelLogoutUri: String?
        let redirectUris: [String]
        let postLogoutRedirectUris: [String]
        let secrets: [SecretView]
        let createdAt: Timestamp
    }

    private struct URIs: Encodable {
        let redirectUris: [String]
        let postLogoutRedirectUris: [String]
    }

    private struct NewSecret: Encodable {
        let name: String
        let secret: String
        let createdAt: Timestamp
    }

    private struct KeyView: Encodable {
        let kid: String
        let createdAt: Timestamp

        init(_ key: ClientKey) { (kid, createdAt) = (key.keyID, Timestamp(key.createdAt)) }
    }

    private struct KeyList: Encodable { let items: [KeyView] }
    private struct URI: Decodable {
        let uri: String
        let afterSignOut: Bool?
    }
    private struct NewKey: Decodable {
        let publicKey: String
        let kid: String?
    }

    // MARK: Apps

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        let team = context.caller.id
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors, listing: "apps team:\(team)")
        let views = try await parts.run { store in
            let apps = try store.apps.apps(team: team).sorted { $0.clientID < $1.clientID }
            let redirects = try store.clients.redirects(team: team)
            let rest = apps.filter { app in page.after.map { app.clientID > $0 } ?? true }
            return try rest.prefix(page.rows).map { app in
                let settings = try store.openIDClients.settings(team: team, clientID: app.clientID)
                return AppView(
                    clientId: app.clientID, group: app.group.primaryClientID, name: app.name,
                    public: settings.isPublic,
                    idTokenAlgorithm: settings.algorithm.rawValue,
                    backchannelLogoutUri: settings.logoutURI,
                    redirectUris: redirects[app.clientID] ?? [],
                    postLogoutRedirectUris: try store.openIDClients.logoutRedirects(
                        clientID: app.clientID),
                    secrets: try store.openIDClients.secrets(team: team, clientID: app.clientID)
                        .map(SecretView.init),
                    createdAt: Timestamp(app.createdAt))
            }
        }
        return try .json(page.page(views, position: \.clientId, item: { $0 }))
    }

    private func addURI(_ request: Request, _ context: TeamContext) async throws -> Response {
        try await changeURI(request, context) { store, team, app, body, change in
            if body.afterSignOut == true {
                _ = try store.openIDClients.addLogoutRedirect(
                    team: team, clientID: app, uri: body.uri, change)
            } else {
                try store.clients.addRedirect(team: team, clientID: app, uri: body.uri, change)
            }
        }
    }

    private func removeURI(_ request: Request, _ context: TeamContext) async throws -> Response {
        try await changeURI(request, context) { store, team, app, body, change in
            if body.afterSignOut == true {
                try store.openIDClients.removeLogoutRedirect(
                    team: team, clientID: app, uri: body.uri, change)
            } else {
                try store.clients.removeRedirect(team: team, clientID: app, uri: body.uri, change)
            }
        }
    }

    private func changeURI(
        _ request: Request, _ context: TeamContext,
        _ body:
            @escaping @Sendable (Store, _ team: String, _ app: String, URI, Change) throws -> Void
    ) async throws -> Response {
        let (team, app) = (context.caller.id, try context.pathParameter("client_id"))
        let uri = try await request.decode(URI.self, context)
        let change = context.change(now: parts.now())
        return try await .json(
            parts.run { store in
                try body(store, team, app, uri, change)
                return URIs(
                    redirectUris: try store.clients.redirects(team: team)[app] ?? [],
                    postLogoutRedirectUris: try store.openIDClients.logoutRedirects(clientID: app))
            })
    }

    // MARK: Secrets

    private func issueSecret(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let (team, app) = (context.caller.id, try context.pathParameter("client_id"))
        let change = context.change(now: parts.now())
        let (secret, issued) = try await parts.run {
            try $0.openIDClients.issueSecret(team: team, clientID: app, change)
        }
        let view = NewSecret(
            name: issued.name, secret: secret, createdAt: Timestamp(issued.createdAt))
        return try .json(view, status: .created)
    }

    private func revokeSecret(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let (team, app) = (context.caller.id, try context.pathParameter("client_id"))
        let (name, change) = (try context.pathParameter("name"), context.change(now: parts.now()))
        try await parts.run {
            try $0.openIDClients.revokeSecret(team: team, clientID: app, name: name, change)
        }
        return .empty
    }

    // MARK: Keys

    private func keys(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let team = context.caller.id
        return try await .json(
            parts.run { KeyList(items: try $0.clients.keys(team: team).map(KeyView.init)) })
    }

    private func addKey(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(NewKey.self, context)
        guard !body.publicKey.contains("PRIVATE KEY") else {
            throw Problem.invalid(
                "this is a private key, which must stay with the team: send the public key",
                at: "/public_key")
        }
        let key: VerificationKey
        do { key = try VerificationKey(keyID: body.kid ?? "-", pem: body.publicKey) } catch {
            throw Problem.invalid(
                "this is not a public key on P-256 or of RSA, in PEM", at: "/public_key")
        }
        let (team, change, kid) = (
            context.caller.id, context.change(now: parts.now()), body.kid ?? key.thumbprint
        )
        let added = try await parts.run {
            try $0.clients.addKey(team: team, keyID: kid, pem: body.publicKey, change)
        }
        return try .json(KeyView(added), status: .created)
    }

    private func removeKey(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let (team, kid) = (context.caller.id, try context.pathParameter("kid"))
        let change = context.change(now: parts.now())
        try await parts.run { try $0.clients.removeKey(team: team, keyID: kid, change) }
        return .empty
    }
}
