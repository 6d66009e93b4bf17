// A server without a free connection: a process that has connections continues with them.

import Database
import Foundation
import PosternPostgres
import PostgresHarness
import Synchronization
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct PostgresPoolTests {
    /// A server that accepts `limit` connections of a user without rights, and a database of that
    /// user. Superusers can still connect.
    private func withServer(
        limit: Int, connections: Int,
        _ body: (PostgresServer, () throws -> PostgresDatabase) throws -> Void
    ) throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        try server.psql(
            "CREATE USER relay CONNECTION LIMIT \(limit); CREATE TABLE t (n BIGINT); GRANT ALL ON t TO relay"
        )
        try body(server) {
            var settings = PostgresDatabase.Settings()
            settings.connections = connections
            settings.timeout = 60
            return try PostgresDatabase(
                url: "postgresql://relay@\(server.host)/postgres", settings: settings)
        }
    }

    private static func add(_ database: any Database) throws {
        try database.write(.relaxed) { _ = try $0.run("INSERT INTO t (n) VALUES (1)") }
    }

    /// Runs each body on a separate thread; returns the result of each.
    private func together(
        _ count: Int, _ body: @escaping @Sendable (Int) throws -> Void
    ) -> [(any Error)?] {
        let results = Mutex([(any Error)?]())
        let group = DispatchGroup()
        for number in 0..<count {
            group.enter()
            Thread.detachNewThread {
                let result = Result { try body(number) }
                results.withLock { all in
                    if case .failure(let error) = result {
                        all.append(error)
                    } else {
                        all.append(nil)
                    }
                }
                group.leave()
            }
        }
        group.wait()
        return results.withLock { $0 }
    }

    /// If a further connection is refused, the caller must wait for one of the pool's connections,
    /// and not fail.
    @Test func pool_serverFull_waitsForOwnConnection() throws {
        try withServer(limit: 3, connections: 10) { _, open in
            let database = try open()
            defer { try? database.close() }
            let errors = together(24) { _ in for _ in 0..<20 { try Self.add(database) } }
            #expect(errors.count == 24)
            for case let error? in errors { Issue.record("\(error)") }
            #expect(try database.value("SELECT COUNT(*) FROM t", Int64.self) == 480)
        }
    }

    /// Requests over HTTP must not take all connections, because then mail would be deferred.
    @Test func pool_manyRequests_leavesConnectionsToMail() throws {
        try withServer(limit: 10, connections: 4) { _, open in
            let database = try open()
            defer { try? database.close() }
            let (entered, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let inside = Mutex(0)
            let requests = Mutex<[(any Error)?]>([])
            let held = Thread { [self] in
                let results = together(4) { _ in
                    try WriteQueue.$isOnSharedThread.withValue(true) {
                        try database.read { _ in
                            inside.withLock { $0 += 1 }
                            entered.signal()
                            release.wait()
                        }
                    }
                }
                requests.withLock { $0 = results }
                entered.signal()
            }
            held.start()
            for _ in 0..<2 { entered.wait() }
            #expect(try database.rows("SELECT 1").count == 1)
            #expect(inside.withLock { $0 } == 2)
            for _ in 0..<4 { release.signal() }
            // The other two, and the end of all.
            for _ in 0..<3 { entered.wait() }
            #expect(requests.withLock { $0.count } == 4)
            for case let error? in requests.withLock({ $0 }) { Issue.record("\(error)") }
        }
    }

    /// A returned connection must wake only one waiting thread. Otherwise all would wait for the
    /// pool's lock while connections are idle, and the last could be served first.
    @Test func pool_severalWait_servesLongestFirst() throws {
        try withServer(limit: 10, connections: 1) { _, open in
            let database = try open()
            defer { try? database.close() }
            let order = Mutex([Int]())
            let ended = DispatchGroup()
            try database.read { _ in
                for number in 0..<20 {
                    let thread = Mutex("")
                    ended.enter()
                    Thread.detachNewThread {
                        let link = try? FileManager.default.destinationOfSymbolicLink(
                            atPath: "/proc/thread-self")
                        thread.withLock { $0 = link ?? "" }
                        do {
                            try database.read { connection in
                                _ = try connection.rows("SELECT 1")
                                order.withLock { $0.append(number) }
                            }
                        } catch { Issue.record("\(error)") }
                        ended.leave()
                    }
                    // The only connection is in use, so a sleeping thread waits for it.
                    try wait("number \(number) waits", atMost: 60) {
                        let status = try? String(
                            contentsOfFile: "/proc/\(thread.withLock { $0 })/stat", encoding: .utf8)
                        return status?.contains(") S ") == true
                    }
                }
            }
            ended.wait()
            #expect(order.withLock { $0 } == Array(0..<20))
        }
    }

    /// Decisions must not get every returned connection, because requests on a full server would
    /// get none.
    @Test(arguments: [2, 3]) func pool_endlessDecisionsOnFullServer_servesOthers(limit: Int) throws
    {
        try withServer(limit: limit, connections: 10) { _, open in
            let database = try open()
            defer { try? database.close() }
            let first = database.first
            let isOver = Mutex(false)
            let decisions = DispatchGroup()
            for _ in 0..<8 {
                decisions.enter()
                Thread.detachNewThread {
                    while !isOver.withLock({ $0 }) { _ = try? first.rows("SELECT 1") }
                    decisions.leave()
                }
            }
            let errors = together(4) { _ in
                for _ in 0..<10 {
                    try WriteQueue.$isOnSharedThread.withValue(true) { try Self.add(database) }
                }
            }
            isOver.withLock { $0 = true }
            decisions.wait()
            for case let error? in errors { Issue.record("\(error)") }
            #expect(try database.value("SELECT COUNT(*) FROM t", Int64.self) == 40)
        }
    }

    @Test func pool_serverLimitRaised_makesConnection() throws {
        try withServer(limit: 1, connections: 4) { server, open in
            let database = try open()
            defer { try? database.close() }
            try database.read { connection in
                _ = try connection.rows("SELECT 1")
                // All connections are in use; a waiting caller gets the one that becomes free at
                // the server.
                let errors = Mutex([(any Error)?]())
                let done = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    let result = self.together(1) { _ in try Self.add(database) }
                    errors.withLock { $0 = result }
                    done.signal()
                }
                try server.psql("ALTER USER relay CONNECTION LIMIT 2")
                #expect(done.wait(timeout: .now() + 90) == .success)
                for case let error? in errors.withLock({ $0 }) { Issue.record("\(error)") }
            }
        }
    }

    /// A caller of a pool without any connection waits for one too; a server that is unavailable is
    /// reported at once.
    @Test func pool_noConnectionPossible_saysServerIsFull() throws {
        try withServer(limit: 0, connections: 2) { server, open in
            let error = #expect(throws: StoreFailure.self) {
                var settings = PostgresDatabase.Settings()
                settings.timeout = 0.2
                try PostgresDatabase(
                    url: "postgresql://relay@\(server.host)/postgres", settings: settings
                ).close()
            }
            #expect(
                error?.message.contains("too many connections") == true,
                "\(String(describing: error))")
        }
    }

    /// If the server ends one connection and the others are closed with it, the reserved ones must
    /// be opened again before the next decision.
    @Test func pool_reservedConnectionsEnded_makesThemAgain() throws {
        try withServer(limit: 20, connections: 9) { server, open in
            let database = try open()
            defer { try? database.close() }
            _ = database.first
            let count = "SELECT 'open=' || COUNT(*) FROM pg_stat_activity WHERE usename = 'relay'"
            // All must be open before they are ended. One that is opened a moment later would be
            // found usable, and the others idle.
            try wait("three connections", atMost: 60) { try server.psql(count).contains("open=3") }
            let before = try server.psql("SELECT 'at ' || now()").trimmingCharacters(
                in: .whitespacesAndNewlines
            ).dropFirst(3)
            try server.psql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'relay'")
            // The next caller finds out.
            _ = try? database.rows("SELECT 1")
            try wait("three new connections", atMost: 60) {
                try server.psql("\(count) AND backend_start > '\(before)'").contains("open=3")
            }
        }
    }

    @Test func pool_othersHoldAll_keepsShareForDecisions() throws {
        try withServer(limit: 20, connections: 4) { _, open in
            let database = try open()
            defer { try? database.close() }
            let first = database.first
            // Other callers use all connections that they may have.
            let (held, isOver) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let ended = DispatchGroup()
            for _ in 0..<6 {
                ended.enter()
                Thread.detachNewThread {
                    try? database.read { connection in
                        _ = try connection.rows("SELECT 1")
                        held.signal()
                        isOver.wait()
                    }
                    ended.leave()
                }
            }
            for _ in 0..<2 { #expect(held.wait(timeout: .now() + 90) == .success) }
            try first.read { outer in
                _ = try outer.rows("SELECT 1")
                let count = try first.read { try $0.rows("SELECT 1").count }
                #expect(count == 1)
            }
            for _ in 0..<6 { isOver.signal() }
            ended.wait()
        }
    }
}
