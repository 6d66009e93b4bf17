// /v1/keys: API keys that a team issues itself, each with fewer rights than the key that issues it.

import Accounts
import CEL
import HTTP
import Hummingbird
import Support

package struct KeyRoutes: RouteModule {
    private let parts: RouteParts

    package init(_ parts: RouteParts) { self.parts = parts }

    package func addRoutes(to routes: Routes) {
        routes.team(.keysRead).get("/v1/keys", use: list)
        routes.team(.keysWrite).post("/v1/keys", use: issue).delete(
            "/v1/keys/{key_id}", use: revoke)
    }

    private struct KeyView: Encodable {
        let id: String
        let scopes: [String]
        let note: String
        let state: String
        let createdAt: Timestamp
        let expiresAt: Timestamp?
        let issuedBy: String?
        let key: String?

        init(_ key: APIKey, text: APIKeyText? = nil, now: Int64) {
            id = key.id
            scopes = key.scopes.map(\.rawValue).sorted()
            note = key.note
            state = key.state(now: now).rawValue
            createdAt = Timestamp(key.createdAt)
            expiresAt = Timestamp(key.expiresAt)
            issuedBy = key.issuedBy
            self.key = text?.revealed
        }
    }

    private struct NewKey: Decodable {
        let scopes: [String]
        let note: String?
        let expiresAt: String?
    }

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        let (team, now) = (context.caller.id, parts.now())
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors, listing: "keys team:\(team)")
        let keys = try await parts.run { try $0.apiKeys.keys(team: team) }.sorted { $0.id < $1.id }
        let rest = keys.filter { key in page.after.map { key.id > $0 } ?? true }
        return try .json(page.page(rest, position: \.id) { KeyView($0, now: now) })
    }

    private func issue(_ request: Request, _ context: TeamContext) async throws -> Response {
        let now = parts.now()
        let body = try await request.decode(NewKey.self, context)
        let expiresAt = try body.expiresAt.map { text in
            guard let time = CELTimestamp(text: text), time.seconds > now else {
                throw Problem.invalid(
                    "must be a time in the future, as in 2026-11-21T07:02:28Z", at: "/expires_at")
            }
            return time.seconds
        }
        let scopes = Set(body.scopes.map(Scope.init(rawValue:)))
        let (parent, change) = (context.keyID, context.change(now: now))
        let (key, text) = try await parts.run {
            try $0.apiKeys.issueLesser(
                by: parent, scopes: scopes, expiresAt: expiresAt, note: body.note ?? "", change)
        }
        return try .json(KeyView(key, text: text, now: now), status: .created)
    }

    private func revoke(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let (id, parent) = (try context.pathParameter("key_id"), context.keyID)
        let change = context.change(now: parts.now())
        try await parts.run { try $0.apiKeys.revokeLesser(id, by: parent, change) }
        return .empty
    }
}
