// The engines that the whole suite runs on, and a fresh store on one of them.

import Database
import Accounts
import Events
import Foundation
import InternetMessage
import PosternPostgres
import PosternSQLite
import PostgresHarness
import Testing

/// A database engine under test. Another engine joins the suite by joining `all`.
struct Engine: Sendable, CustomTestStringConvertible {
    let name: String
    /// Opens a database in a folder: a new one, or the one that was made there before.
    let open: @Sendable (URL) throws -> any Database
    /// Contents of the files that hold what was written to it, the log included.
    let contents: @Sendable (URL) throws -> [Data]

    init(
        name: String, open: @escaping @Sendable (URL) throws -> any Database,
        contents: @escaping @Sendable (URL) throws -> [Data] = {
            try FileManager.default.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil).map { try Data(contentsOf: $0) }
        }
    ) {
        self.name = name
        self.open = open
        self.contents = contents
    }

    var testDescription: String { name }

    static let sqlite = Engine(name: "sqlite") { folder in
        try SQLiteDatabase(path: folder.appendingPathComponent("postern.db").path, creating: true)
    }

    /// Its own schema for each folder; nil where PostgreSQL's server is not installed.
    static let postgres = PostgresServer.shared.map { server in
        Engine(name: "postgresql") { folder in
            let schema = "t" + folder.lastPathComponent.lowercased().filter { $0.isLetter || $0.isNumber }
            return try PostgresDatabase(url: try server.url(schema: schema))
        } contents: { _ in
            // The whole cluster, write-ahead log included: other tests' schemas hold no more in the clear than this one.
            try server.psql("CHECKPOINT")
            let all = FileManager.default.enumerator(at: server.folder, includingPropertiesForKeys: [.isRegularFileKey])
            // Others use the server meanwhile: a file that was there may be gone when it is read.
            return (all?.compactMap { $0 as? URL } ?? []).filter { $0.lastPathComponent != "server.log" }
                .compactMap { try? Data(contentsOf: $0) }
        }
    }

    static let all: [Engine] = {
        if postgres == nil { print("PostgreSQL's server is not installed: the suite runs on SQLite alone (skipped: postgresql)") }
        return [sqlite, postgres].compactMap { $0 }
    }()
}

/// A folder that is removed with its last reference.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("postern-store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

/// A migrated store with team `juice`, in its own folder.
final class TestStore: Sendable {
    static let now: Int64 = 1_790_000_000
    static let today = Day.number(now)
    static let change = Change(actor: "uid:0", now: now)

    let folder: TemporaryFolder
    let database: any Database
    let store: Store

    init(_ engine: Engine) throws {
        folder = try TemporaryFolder()
        database = try engine.open(folder.url)
        _ = try Migrator().migrate(database, now: Self.now)
        store = Store(
            database: database, keys: Self.keys(), relayDomains: ["relay.example", "old-relay.example"])
        _ = try store.teams.add(id: "juice", name: "The Juice Company", Self.change)
    }

    deinit { try? database.close() }

    static func keys(first: UInt8 = 0) -> KeyRing {
        let octets = (0..<96).map { UInt8(truncatingIfNeeded: $0) &+ first }
        return KeyRing(random: octets)!
    }

    /// Adds a user with one verified inbox.
    @discardableResult
    func user(_ id: String, inbox: String? = nil, name: String? = nil, isVerified: Bool = true) throws -> User {
        try store.users.add(
            id: id, name: name, inbox: Self.inbox(inbox ?? "\(id)@home.example"), isVerified: isVerified, Self.change)
    }

    /// A relay address of a user with a team.
    func address(_ user: String, team: String = "juice", app: String? = nil) throws -> RelayAddress {
        try store.addresses.issue(team: team, user: user, app: app, Self.change).address
    }

    /// The lease of whoever delivers events.
    func deliveryLease() throws -> Lease {
        let seen = try store.leases.state(OutboxRepository.lease)
        return try #require(try store.leases.take(OutboxRepository.lease, seen: seen, holder: "test"))
    }

    static func inbox(_ text: String) throws -> InboxAddress { InboxAddress(try AddrSpec.typed(text)) }
}

/// Expects a refusal with this code.
func expectRefusal(
    _ code: StoreFailure.Refused, _ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) {
    do {
        try body()
        Issue.record("nothing was refused", sourceLocation: sourceLocation)
    } catch let failure as StoreFailure where failure.isRefusal {
        #expect(failure.code == .refused(code), "\(failure)", sourceLocation: sourceLocation)
    } catch {
        Issue.record("not a refusal: \(error)", sourceLocation: sourceLocation)
    }
}

extension StoreFailure {
    /// What failures with this code are equal to.
    static func temporary(_ code: Temporary) -> Self { .temporary(code, "") }
    static func permanent(_ code: Permanent) -> Self { .permanent(code, "") }
}

/// Transactions in which a test may throw what it likes.
extension Database {
    func read<T>(_ body: (any DatabaseConnection) throws -> T) throws -> T {
        var thrown: (any Error)?
        do {
            return try read { connection throws(StoreFailure) in try attempt(body, connection, &thrown) }
        } catch { throw thrown ?? error }
    }

    @discardableResult
    func write<T>(_ durability: Durability, _ body: (any DatabaseConnection) throws -> T) throws -> T {
        var thrown: (any Error)?
        do {
            return try write(durability) { connection throws(StoreFailure) in try attempt(body, connection, &thrown) }
        } catch { throw thrown ?? error }
    }

    private func attempt<T>(
        _ body: (any DatabaseConnection) throws -> T, _ connection: any DatabaseConnection, _ thrown: inout (any Error)?
    ) throws(StoreFailure) -> T {
        do {
            return try body(connection)
        } catch {
            thrown = error is StoreFailure ? nil : error
            throw error as? StoreFailure ?? .refused(.invalid, "the test threw")
        }
    }
}
