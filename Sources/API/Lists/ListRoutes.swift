// /v1/lists: a team's own live lists, which its policies read as `lists.NAME` with `of: team`.

import Accounts
import CEL
import Decisions
import HTTP
import Hummingbird
import Support

package struct ListRoutes: RouteModule {
    private let parts: RouteParts

    package init(_ parts: RouteParts) { self.parts = parts }

    /// The most octets in a body: 1,000 entries of the longest kind, with a reason.
    private static let bodyLimit = 2 << 20
    /// The most octets in a body that replaces all entries: 100,000 of them, with short reasons.
    private static let wholeLimit = 8 << 20

    package func addRoutes(to routes: Routes) {
        routes.team(.listsRead).get("/v1/lists", use: list).get("/v1/lists/{name}", use: show)
            .get("/v1/lists/{name}/entries", use: entries)
        routes.team(.listsWrite, bodyLimit: Self.bodyLimit).post("/v1/lists", use: create).delete(
            "/v1/lists/{name}", use: remove
        )
        .post("/v1/lists/{name}/entries", use: add).post(
            "/v1/lists/{name}/entries/remove", use: removeEntries)
        routes.team(.listsWrite, bodyLimit: Self.wholeLimit).put(
            "/v1/lists/{name}/entries", use: replace)
    }

    private struct ListView: Encodable {
        let name: String
        let kind: String
        let entries: Int64
        let createdAt: Timestamp
        let changedAt: Timestamp

        init(_ list: LiveList) {
            name = list.name
            kind = list.kind.rawValue
            entries = list.entries
            createdAt = Timestamp(list.createdAt)
            changedAt = Timestamp(list.changedAt)
        }
    }

    private struct EntryView: Encodable {
        let value: String
        let reason: String
        let addedAt: Timestamp
        let expiresAt: Timestamp?

        init(_ entry: KeptListEntry) {
            value = entry.value
            reason = entry.reason
            addedAt = Timestamp(entry.addedAt)
            expiresAt = Timestamp(entry.expiresAt)
        }
    }

    private struct NewList: Decodable {
        let name: String
        let kind: String
    }
    private struct NewEntry: Decodable {
        let value: String
        let reason: String?
        let expiresAt: String?
    }
    private struct NewEntries: Decodable { let entries: [NewEntry] }
    private struct Values: Decodable { let values: [String] }
    private struct Added: Encodable {
        let added: Int64
        let entries: Int64
    }
    private struct Replaced: Encodable { let entries: Int64 }
    private struct Removed: Encodable {
        let removed: Int64
        let entries: Int64
    }

    // MARK: Lists

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        let team = context.caller.id
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors, listing: "lists team:\(team)")
        // A team has at most fifty lists.
        let all = try await parts.run { try $0.liveLists.lists(team: team) }
        let rest = all.filter { list in page.after.map { list.name > $0 } ?? true }
        return try .json(page.page(rest, position: \.name, item: ListView.init))
    }

    private func show(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let (team, name) = (context.caller.id, try context.pathParameter("name"))
        return try await .json(
            parts.run { ListView(try $0.liveLists.list(team: team, name: name)) })
    }

    private func create(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(NewList.self, context)
        guard let kind = LiveListKind(rawValue: body.kind) else {
            let kinds = LiveListKind.allCases.map(\.rawValue).joined(separator: ", ")
            throw Problem.invalid("must be one of \(kinds)", at: "/kind")
        }
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        let made = try await parts.run { store in
            try store.liveLists.create(team: team, name: body.name, kind: kind, change)
            return ListView(try store.liveLists.list(team: team, name: body.name))
        }
        return try .json(made, status: .created)
    }

    private func remove(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let (team, name) = (context.caller.id, try context.pathParameter("name"))
        let change = context.change(now: parts.now())
        try await parts.run { try $0.liveLists.removeList(team: team, name: name, change) }
        return .empty
    }

    // MARK: Entries

    private func entries(_ request: Request, _ context: TeamContext) async throws -> Response {
        let (team, name) = (context.caller.id, try context.pathParameter("name"))
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors,
            listing: "entries team:\(team) \(name)")
        let now = parts.now()
        let found = try await parts.run {
            try $0.liveLists.entries(
                team: team, name: name, after: page.after ?? "", limit: page.rows, now: now)
        }
        return try .json(page.page(found, position: \.value, item: EntryView.init))
    }

    private func add(_ request: Request, _ context: TeamContext) async throws -> Response {
        let (team, name) = (context.caller.id, try context.pathParameter("name"))
        let (entries, change) = try await newEntries(request, context)
        return try await .json(
            parts.run { store in
                let added = try store.liveLists.add(team: team, name: name, entries, change)
                return Added(
                    added: added, entries: try store.liveLists.list(team: team, name: name).entries)
            })
    }

    /// Replaces all entries: a decision sees either the old or the new ones.
    private func replace(_ request: Request, _ context: TeamContext) async throws -> Response {
        let (team, name) = (context.caller.id, try context.pathParameter("name"))
        let (entries, change) = try await newEntries(request, context)
        return try await .json(
            parts.run { store in
                try store.liveLists.replace(team: team, name: name, entries, change)
                return Replaced(entries: try store.liveLists.list(team: team, name: name).entries)
            })
    }

    /// The entries of a body, and the change that they make.
    private func newEntries(
        _ request: Request, _ context: TeamContext
    ) async throws -> (entries: [LiveListEntry], change: Change) {
        let now = parts.now()
        let body = try await request.decode(NewEntries.self, context)
        let entries = try body.entries.enumerated().map { index, entry in
            LiveListEntry(
                entry.value, reason: entry.reason ?? "",
                expiresAt: try entry.expiresAt.map { text in
                    guard let time = CELTimestamp(text: text), time.seconds > now else {
                        throw Problem.invalid(
                            "must be a time in the future, as in 2026-11-21T07:02:28Z",
                            at: "/entries/\(index)/expires_at")
                    }
                    return time.seconds
                })
        }
        return (entries, context.change(now: now))
    }

    private func removeEntries(_ request: Request, _ context: TeamContext) async throws -> Response
    {
        let (team, name) = (context.caller.id, try context.pathParameter("name"))
        let body = try await request.decode(Values.self, context)
        let change = context.change(now: parts.now())
        return try await .json(
            parts.run { store in
                let removed = try store.liveLists.remove(
                    team: team, name: name, body.values, change)
                return Removed(
                    removed: removed,
                    entries: try store.liveLists.list(team: team, name: name).entries)
            })
    }
}
