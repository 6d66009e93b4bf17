// A store with two teams, keys of every kind, and the routes of some modules, called without a
// listener.

import Accounts
import Database
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import InternetMessage
import Logging
import PosternSQLite
import StoreTesting
import Support
import Synchronization
import TestSupport
import Testing

/// The answer to a request.
struct Response: Sendable {
    let status: Int
    let headers: HTTPFields
    let body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
    /// The body as JSON, or null.
    var json: JSONValue { (try? StrictJSON.parse(body, limit: body.count)) ?? .null }
    /// The last part of a problem's type; nil for other answers.
    var problem: String? {
        guard headers[.contentType] == "application/problem+json",
            case .string(let type) = json["type"]
        else { return nil }
        return type.split(separator: ":").last.map(String.init)
    }
}

extension JSONValue {
    /// A member of an object, or null.
    subscript(_ name: String) -> JSONValue {
        if case .object(let members) = self { members[name] ?? .null } else { .null }
    }
    /// The items of an array; empty for anything else.
    var items: [JSONValue] { array ?? [] }
}

/// The time of a fixture: seconds since 1970, and those of a clock that only goes forward.
final class RigClock: Sendable {
    let time: Mutex<Int64>
    let uptime = Mutex<Double>(0)
    var now: Int64 { time.withLock { $0 } }

    init(_ start: Int64) { time = Mutex(start) }
}

/// Teams `juice` and `soda`, and the routes under test.
final class APIFixture: Sendable {
    static let start: Int64 = 1_790_000_000
    static let change = Change(actor: "uid:0", now: start)

    let folder: URL
    let store: Store
    let pool = BlockingPool(.requests, threads: 2)
    let cursors = Cursors(key: [UInt8](repeating: 7, count: 32))
    let log = LogRecorder()
    let keys: KeyCache
    /// Separate from the fixture, so that routes that know the time do not keep the fixture, its
    /// files and its threads alive.
    private let hands = RigClock(start)
    private let settings: APISettings
    private let router: Mutex<(responder: RouterResponder<APIContext>, routes: [RouteEntry])?> =
        Mutex(nil)

    /// Seconds since 1970; moves only when it is set.
    var now: Int64 {
        get { hands.now }
        set { hands.time.withLock { $0 = newValue } }
    }

    /// Moves both clocks on.
    func wait(seconds: Int) {
        now += Int64(seconds)
        hands.uptime.withLock { $0 += Double(seconds) }
    }

    var parts: RouteParts { RouteParts(store: store, pool: pool, cursors: cursors, now: clock.now) }
    var clock: APIClock {
        APIClock(
            now: { [hands] in hands.now }, monotonic: { [hands] in hands.uptime.withLock { $0 } })
    }

    /// - Parameter modules: the routes, made of the fixture's store, pool, cursors and clock.
    convenience init(
        requestsPerSecond: Int = 100_000, bodyLimit: Int = 65_536,
        modules: (APIFixture) throws -> [any RouteModule]
    ) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-api-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let database = try MigratedStore.sqlite(
            at: folder.appendingPathComponent("postern.db").path)
        let ring = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
        let store = Store(database: database, keys: ring, relayDomains: ["relay.example"])
        try self.init(
            folder: folder, store: store, requestsPerSecond: requestsPerSecond,
            bodyLimit: bodyLimit, modules: modules)
    }

    /// Over an existing store; the folder is removed with the fixture.
    init(
        folder: URL, store: Store, requestsPerSecond: Int = 100_000, bodyLimit: Int = 65_536,
        modules: (APIFixture) throws -> [any RouteModule]
    ) throws {
        self.folder = folder
        self.store = store
        keys = KeyCache(store.apiKeys, pool: pool)
        settings = APISettings(
            host: "127.0.0.1", port: 0, bodyLimit: bodyLimit, requestsPerSecond: requestsPerSecond)
        _ = try store.teams.add(id: "juice", name: "The Juice Company", Self.change)
        _ = try store.teams.add(id: "soda", name: "Soda", Self.change)
        let made = APIService.router(
            settings: settings, modules: try modules(self), keys: keys, clock: clock,
            logger: log.logger)
        router.withLock { $0 = made }
    }

    deinit {
        Task.detached { [pool] in await pool.stop() }
        try? store.database.close()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Every route that was added.
    var routes: [RouteEntry] { router.withLock { $0?.routes ?? [] } }

    /// An unencrypted key, known to the routes at once. Nil for `team` makes an operator's.
    func key(_ team: String?, _ scopes: [Scope]? = nil, expiresAt: Int64? = nil) throws -> String {
        let scopes = scopes ?? Scope.available(to: team == nil ? .operator : .team)
        let issued = try store.apiKeys.issue(
            team: team, scopes: Set(scopes), expiresAt: expiresAt, note: "", Self.change)
        try keys.refresh()
        return issued.text.revealed
    }

    /// A user with one verified inbox, and a relay address for a team.
    func address(
        user: String, team: String, inbox: String? = nil, app: String? = nil
    ) throws -> RelayAddress {
        if (try? store.users.user(user)) == nil {
            _ = try store.users.add(
                id: user, name: nil,
                inbox: InboxAddress(try AddrSpec.typed(inbox ?? "\(user)@home.example")),
                isVerified: true,
                Self.change)
        }
        return try store.addresses.issue(team: team, user: user, app: app, Self.change).address
    }

    /// Sends a request. A body is sent as application/json unless the headers give a type.
    func ask(
        _ method: HTTPRequest.Method, _ path: String, key: String? = nil, body: String? = nil,
        headers: [String: String] = [:]
    ) async throws -> Response {
        let responder = try #require(router.withLock { $0?.responder })
        var fields = HTTPFields()
        if let key { fields[.authorization] = "Bearer \(key)" }
        if body != nil { fields[.contentType] = "application/json" }
        for (name, value) in headers { fields[try #require(HTTPField.Name(name))] = value }
        let (sent, method) = (fields, method)
        return try await Application(responder: responder, logger: log.logger).test(.router) {
            client in
            try await client.execute(
                uri: path, method: method, headers: sent, body: body.map { ByteBuffer(string: $0) }
            ) {
                response in
                Response(
                    status: response.status.code, headers: response.headers,
                    body: Array(response.body.readableBytesView))
            }
        }
    }
}
