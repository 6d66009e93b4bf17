// The engines on which the whole suite runs, and a fresh store on one of them.

import Accounts
import Database
import Events
import Foundation
import InternetMessage
import PosternPostgres
import PosternSQLite
import PostgresHarness
import RelayCore
import StoreTesting
import Synchronization
import Testing

/// A database engine under test. To test another engine, add it to `all`.
struct Engine: Sendable, CustomTestStringConvertible {
    let name: String
    /// Opens a database in a folder: a new one, or the one that was created there before.
    let open: @Sendable (URL) throws -> any Database
    /// Creates one with the program's schema in a folder.
    let make: @Sendable (URL) throws -> any Database
    /// Contents of the files with everything that was written to it, including the log.
    let contents: @Sendable (URL) throws -> [Data]

    init(
        name: String, open: @escaping @Sendable (URL) throws -> any Database,
        make: @escaping @Sendable (URL) throws -> any Database,
        contents: @escaping @Sendable (URL) throws -> [Data] = {
            try FileManager.default.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil).map
            { try Data(contentsOf: $0) }
        }
    ) {
        self.name = name
        self.open = open
        self.make = make
        self.contents = contents
    }

    var testDescription: String { name }

    static let sqlite = Engine(name: "sqlite") { folder in
        try SQLiteDatabase(path: folder.appendingPathComponent("postern.db").path, creating: true)
    } make: { folder in
        try MigratedStore.sqlite(at: folder.appendingPathComponent("postern.db").path)
    }

    /// A separate schema for each folder; nil if PostgreSQL's server is not installed.
    static let postgres = PostgresServer.shared.map { server in
        Engine(name: "postgresql") { folder in
            try PostgresDatabase(url: server.url(schema: schema(folder)))
        } make: { folder in
            try MigratedStore.postgres(schema: schema(folder), on: server)
        } contents: { _ in
            throw CocoaError(.featureUnsupported)
        }
    }

    /// A separate server for each folder; its files contain only what one store wrote.
    static let postgresAlone: Engine? = PostgresServer.installed.map { binaries in
        let servers = Mutex<[URL: PostgresServer]>([:])
        return Engine(name: "postgresql") { folder in
            let server = try servers.withLock { servers in
                if let server = servers[folder] { return server }
                let server = try PostgresServer(binaries: binaries)
                servers[folder] = server
                return server
            }
            return try PostgresDatabase(url: "postgresql://postern@\(server.host)/postgres")
        } make: { folder in
            let database = try postgresAlone?.open(folder)
            guard let database else { throw CocoaError(.featureUnsupported) }
            _ = try Migrator().migrate(database, now: TestStore.now)
            return database
        } contents: { folder in
            // The last read of its files: the server ends with the test.
            guard let server = servers.withLock({ $0.removeValue(forKey: folder) }) else {
                return []
            }
            try server.psql("CHECKPOINT")
            let all = FileManager.default.enumerator(
                at: server.folder, includingPropertiesForKeys: [.isRegularFileKey])
            return (all?.compactMap { $0 as? URL } ?? []).filter {
                $0.lastPathComponent != "server.log"
            }
            .compactMap { try? Data(contentsOf: $0) }
        }
    }

    private static func schema(_ folder: URL) -> String {
        "t" + folder.lastPathComponent.lowercased().filter { $0.isLetter || $0.isNumber }
    }

    /// POSTERN_TEST_ENGINES=sqlite leaves PostgreSQL out, as `make check` does.
    static let all = [sqlite, isSQLiteOnly ? nil : postgres].compactMap { $0 }

    /// The engines for tests that read the files.
    static let alone = [sqlite, isSQLiteOnly ? nil : postgresAlone].compactMap { $0 }

    private static let isSQLiteOnly: Bool = {
        if ProcessInfo.processInfo.environment["POSTERN_TEST_ENGINES"] == "sqlite" { return true }
        if PostgresServer.installed == nil {
            print(
                "PostgreSQL's server is not installed: the suite runs on SQLite alone (skipped: postgresql)"
            )
        }
        return PostgresServer.installed == nil
    }()
}

/// A folder that is deleted with its last reference.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

/// A migrated store with team `juice`, in a separate folder.
final class TestStore: Sendable {
    static let now: Int64 = 1_790_000_000
    static let today = Day.number(now)
    static let change = Change(actor: "uid:0", now: now)

    let folder: TemporaryFolder
    let database: any Database
    let store: Store

    init(_ engine: Engine) throws {
        folder = try TemporaryFolder()
        database = try engine.make(folder.url)
        store = Store(
            database: database, keys: Self.keys(),
            relayDomains: ["relay.example", "old-relay.example"])
        _ = try store.teams.add(id: "juice", name: "The Juice Company", Self.change)
    }

    deinit { try? database.close() }

    static func keys(first: UInt8 = 0) -> KeyRing {
        let octets = (0..<96).map { UInt8(truncatingIfNeeded: $0) &+ first }
        return KeyRing(random: octets)!
    }

    /// Adds a user with one verified inbox.
    @discardableResult
    func user(
        _ id: String, inbox: String? = nil, name: String? = nil, isVerified: Bool = true
    ) throws -> User {
        try store.users.add(
            id: id, name: name, inbox: Self.inbox(inbox ?? "\(id)@home.example"),
            isVerified: isVerified, Self.change)
    }

    /// A relay address of a user with a team.
    func address(_ user: String, team: String = "juice", app: String? = nil) throws -> RelayAddress
    {
        try store.addresses.issue(team: team, user: user, app: app, Self.change).address
    }

    /// The lease for event delivery.
    func deliveryLease() throws -> Lease {
        let seen = try store.leases.state(OutboxRepository.lease)
        return try #require(
            try store.leases.take(OutboxRepository.lease, seen: seen, holder: "test"))
    }

    static func inbox(_ text: String) throws -> InboxAddress {
        InboxAddress(try AddrSpec.typed(text))
    }
}

/// Expects a refusal with this code.
func expectRefusal(
    _ code: StoreFailure.Refused, _ body: () throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
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
    /// Values for comparison with failures that have this code.
    static func temporary(_ code: Temporary) -> Self { .temporary(code, "") }
    static func permanent(_ code: Permanent) -> Self { .permanent(code, "") }
}

/// Transactions in which a test may throw any error.
extension Database {
    func read<T>(_ body: (any DatabaseConnection) throws -> T) throws -> T {
        var thrown: (any Error)?
        do {
            return try read { connection throws(StoreFailure) in
                try attempt(body, connection, &thrown)
            }
        } catch { throw thrown ?? error }
    }

    @discardableResult
    func write<T>(
        _ durability: Durability, _ body: (any DatabaseConnection) throws -> T
    ) throws -> T {
        var thrown: (any Error)?
        do {
            return try write(durability) { connection throws(StoreFailure) in
                try attempt(body, connection, &thrown)
            }
        } catch { throw thrown ?? error }
    }

    private func attempt<T>(
        _ body: (any DatabaseConnection) throws -> T, _ connection: any DatabaseConnection,
        _ thrown: inout (any Error)?
    ) throws(StoreFailure) -> T {
        do {
            return try body(connection)
        } catch {
            thrown = error is StoreFailure ? nil : error
            throw error as? StoreFailure ?? .refused(.invalid, "the test threw")
        }
    }
}

extension TestStore {
    /// The account of a row.
    static func number(_ stored: Int64) throws -> AccountNumber {
        try #require(AccountNumber(UInt64(stored)))
    }

    /// A reported failure of a message with this nonce.
    static func failure(_ nonce: UInt64, sentDay: Int64 = today, now: Int64 = now) -> InboxFailure {
        let today = UInt64(Day.number(now))
        return InboxFailure(
            nonce: nonce, expiryDay: today + 12, sentDay: UInt64(sentDay), day: today)
    }

    /// One failure is enough.
    static let anyRate = SuspensionRate(failures: 1, percent: 1, days: 14)
}
