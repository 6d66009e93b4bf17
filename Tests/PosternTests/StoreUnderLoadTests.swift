// The database as a whole while others write to it, and after an end or a refusal in the middle.

import Accounts
import Database
import Foundation
import InternetMessage
import PosternConfiguration
import PostfixHarness
import PostgresHarness
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct StoreUnderLoadTests {
    private static let mayMount =
        (try? ManagedProcess.run("/usr/bin/unshare", ["-m", "true"]))?.status == 0
    private static let change = Change(actor: "test", now: 1_790_000_000)

    /// An installation with rows in most tables.
    private static func installed() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed("source", "add", "juice", "juice.example")
        try runner.succeed("app", "add", "juice", "com.juice.app")
        try runner.succeed(
            "endpoint", "set", "juice", "https://hooks.juice.example/events", "--app",
            "com.juice.app")
        try runner.succeed("api-key", "issue", "juice", "--scope", "decisions:write")
        try runner.succeed(
            "user", "add", "anna", "--inbox", "anna@home.example", "--verified", "--name",
            "Anna Quiet")
        try runner.succeed("address", "issue", "juice", "anna")
        return runner
    }

    private static func installation(_ runner: CommandRunner) throws -> Installation {
        try Installation.open(flag: runner.configuration, environment: [:], now: change.now)
    }

    /// Every row of every table, in the order of their numbers.
    private static func rows(
        _ database: any Database, tables: [String]
    ) throws -> [String: [String]] {
        try tables.reduce(into: [:]) { all, table in
            all[table] = try database.rows("SELECT * FROM \(raw: table)").map { row in
                row.values.map { "\($0)" }.joined(separator: " ")
            }.sorted()
        }
    }

    private static func tables(_ database: any Database) throws -> [String] {
        try database.values(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
            String.self)
    }

    /// Adds users from a separate thread while `body` runs, at least one before it and one after
    /// it; returns how many.
    private static func whileUsersAreAdded(_ store: Store, _ body: () throws -> Void) throws -> Int
    {
        let isOver = Mutex(false)
        let (first, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let result = Mutex<Result<Int, any Error>>(.success(0))
        Thread.detachNewThread {
            var count = 0
            let outcome = Result {
                while !isOver.withLock({ $0 }) || count < 2 {
                    count += 1
                    let inbox = InboxAddress(
                        AddrSpec(localPart: "w\(count)", domain: "home.example"))
                    _ = try store.users.add(
                        id: "w\(count)", name: "Writer \(count)", inbox: inbox, isVerified: true,
                        change)
                    _ = try store.addresses.issue(
                        team: "juice", user: "w\(count)", app: "com.juice.app", change)
                    if count == 1 { first.signal() }
                }
                return count
            }
            result.withLock { $0 = outcome }
            first.signal()
            end.signal()
        }
        first.wait()
        let outcome = Result { try body() }
        isOver.withLock { $0 = true }
        end.wait()
        try outcome.get()
        return try result.withLock { try $0.get() }
    }

    /// A copy that was made during writes has the state of one moment: whole users, and no earlier
    /// one is missing.
    private static func expectOneMoment(
        _ copied: any Database, of original: any Database, tables: [String]
    ) throws {
        let (was, isThere) = (try rows(original, tables: tables), try rows(copied, tables: tables))
        for table in tables where table != "settings" && table != "service_status" {
            #expect(Set(isThere[table] ?? []).isSubset(of: Set(was[table] ?? [])), "\(table)")
        }
        func count(_ sql: String) throws -> Int64? { try copied.value(SQL(sql, [])) }
        let users = try count("SELECT COUNT(*) FROM users")
        #expect((users ?? 0) >= 2, "who came before is missing")
        #expect(try count("SELECT MAX(id) FROM users") == users)
        #expect(
            try count("SELECT COUNT(*) FROM inboxes i JOIN users u ON u.id = i.user_id") == users)
        let last = try count("SELECT MAX(id) FROM accounts") ?? 0
        #expect(
            try count(
                "SELECT COUNT(*) FROM accounts a JOIN grants g ON g.account_id = a.id JOIN relay_addresses r ON r.account_id = a.id"
            ) == last)
        #expect(last >= (users ?? 0) - 1)
    }

    @Test func restore_backup_hasEveryRow() throws {
        let runner = try Self.installed()
        try runner.succeed("store", "backup", "copy.db")
        let data = runner.folder.appendingPathComponent("data").path
        let before = try DatabaseLocation("postern.db", path: data + "/postern.db", at: "").open()
        let tables = try Self.tables(before)
        let rows = try Self.rows(before, tables: tables)
        try before.close()
        for name in ["postern.db", "postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(atPath: data + "/" + name)
        }
        try runner.succeed("store", "restore", "copy.db")
        let after = try DatabaseLocation("postern.db", path: data + "/postern.db", at: "").open()
        defer { try? after.close() }
        #expect(try Self.tables(after) == tables)
        for (table, content) in try Self.rows(after, tables: tables) {
            #expect(content == rows[table], "\(table)")
        }
        #expect(rows.values.filter { !$0.isEmpty }.count > 12)
    }

    @Test func backup_concurrentWrites_isConsistent() throws {
        let runner = try Self.installed()
        let installation = try Self.installation(runner)
        defer { try? installation.close() }
        let count = try Self.whileUsersAreAdded(installation.store) {
            try runner.succeed("store", "backup", "copy.db")
        }
        #expect(count >= 2)
        let copy = try DatabaseLocation(
            "copy.db", path: runner.folder.appendingPathComponent("copy.db").path, at: ""
        ).open()
        defer { try? copy.close() }
        try Self.expectOneMoment(copy, of: installation.store.database, tables: Self.tables(copy))
    }

    @Test(.enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
    func copy_concurrentWrites_isConsistent() throws {
        let runner = try Self.installed()
        let installation = try Self.installation(runner)
        defer { try? installation.close() }
        let url = try #require(PostgresServer.shared).url(
            schema: "c\(UUID().uuidString.prefix(8).lowercased())")
        let count = try Self.whileUsersAreAdded(installation.store) {
            try runner.succeed("store", "copy", "--live", "--to", url)
        }
        #expect(count >= 2)
        let copy = try DatabaseLocation(url, path: "", at: "").open()
        defer { try? copy.close() }
        // The target has its own history of migrations.
        let tables = try Self.tables(installation.store.database).filter {
            $0 != "schema_migrations"
        }
        try Self.expectOneMoment(copy, of: installation.store.database, tables: tables)
    }

    /// A process that is killed while it moves the log into the database's file leaves whole rows,
    /// and the import can be continued.
    @Test func import_killedInCheckpoint_canBeRepeated() throws {
        let runner = try Self.installed()
        let database = runner.folder.appendingPathComponent("data/postern.db").path
        let count = 4_000
        let lines = (0..<count).map { "k\($0),k\($0)@home.example,juice,com.juice.app" }
        let file = runner.folder.appendingPathComponent("users.csv").path
        try Data(("user,inbox,team,app\n" + lines.joined(separator: "\n") + "\n").utf8).write(
            to: URL(fileURLWithPath: file))
        func size() -> Int {
            (try? FileManager.default.attributesOfItem(atPath: database)[.size] as? Int) ?? 0
        }
        var kills = 0
        for _ in 0..<3 {
            let start = size()
            let process = try ManagedProcess(
                CommandRunner.executable.path, ["import", file, "--config", runner.configuration],
                directory: runner.folder.path)
            // The file grows only in a checkpoint.
            let deadline = ContinuousClock.now + .seconds(60)
            while size() == start, process.isRunning {
                try #require(ContinuousClock.now < deadline, "no checkpoint")
            }
            if process.isRunning { kills += 1 }
            process.signal(SIGKILL)
            _ = try process.waitForExit()
            // The backup checks the whole file.
            try runner.succeed(
                "store", "backup", "copy\(kills)-\(UInt32.random(in: 0 ... .max)).db")
            let installation = try Self.installation(runner)
            defer { try? installation.close() }
            func number(_ sql: String) throws -> Int64? {
                try installation.store.database.value(SQL(sql, []))
            }
            let users = try number("SELECT COUNT(*) FROM users") ?? 0
            for table in ["inboxes", "accounts", "grants", "relay_addresses"] {
                #expect(try number("SELECT COUNT(*) FROM \(table)") == users, "\(table)")
            }
        }
        #expect(kills > 0)
        #expect(try runner.run(["import", file]).status == 0)
        #expect(try runner.succeed("user", "list").split(separator: "\n").count == count + 1)
    }

    /// Every command names the problem of the file system, and a service does not start.
    @Test(
        .enabled(if: mayMount, "a file system is mounted, which is not allowed here"),
        arguments: [["team", "list"], ["serve"], ["store", "backup", "x.db"]])
    func command_readOnlyFileSystem_isReported(_ command: [String]) throws {
        let runner = try Self.installed()
        let data = runner.folder.appendingPathComponent("data").path
        let script =
            "mount --bind '\(data)' '\(data)' && mount -o remount,bind,ro '\(data)' && exec \"$@\""
        let arguments =
            ["-m", "sh", "-c", script, "sh", CommandRunner.executable.path] + command + [
                "--config", runner.configuration,
            ]
        let result = try ManagedProcess.run("/usr/bin/unshare", arguments)
        #expect(result.status == 69, "\(result)")
        #expect(result.output.contains("Read-only file system"), "\(result.output)")
    }
}
