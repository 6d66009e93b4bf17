// Listings at a standby: whatever happens to it, they have every confirmed change.

import Accounts
import Database
import Foundation
import PosternPostgres
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct ReplicaTests {
    private struct World {
        let primary: PostgresServer
        let standby: PostgresServer
        let database: PostgresDatabase
        let replica: ReplicaDatabase

        init() throws {
            primary = try PostgresServer(binaries: try #require(PostgresServer.installed))
            database = try PostgresDatabase(url: "postgresql://postern@\(primary.host)/postgres")
            _ = try Migrator().migrate(database, now: 1)
            standby = try PostgresServer(standbyOf: primary)
            replica = ReplicaDatabase(
                primary: database, url: "postgresql://postern@\(standby.host)/postgres")
        }

        func close() {
            try? replica.close()
            try? database.close()
        }

        func add(_ number: Int) throws {
            try database.write(.durable) {
                try $0.run(
                    "INSERT INTO teams (handle, name, created_at) VALUES (?1, ?1, ?2)",
                    [.text("t\(number)"), .integer(Int64(number))])
            }
        }

        /// The number of teams in a listing, and whether the standby answered.
        func list() throws -> (count: Int64, isStandby: Bool) {
            try replica.read { connection throws(StoreFailure) in
                let rows = try connection.rows(
                    "SELECT COUNT(*) AS count, pg_is_in_recovery() AS is_standby FROM teams", [])
                guard let row = rows.first else { return (-1, false) }
                return try (row["count"], row["is_standby"])
            }
        }

        func waitForStandby() throws {
            try wait("the standby answers", atMost: 90) { try list().isStandby }
        }
    }

    @Test func listing_standbyFollows_isReadThereWithEveryChange() throws {
        let world = try World()
        defer { world.close() }
        try world.waitForStandby()
        for number in 1...40 {
            try world.add(number)
            #expect(try world.list().count == Int64(number))
        }
        #expect(world.replica.uses.standby > 0)
        let single: Bool? = try world.replica.value("SELECT pg_is_in_recovery()")
        #expect(single == true)
        try wait("it has all", atMost: 90) { try world.replica.measure() == .following(lag: 0) }
        // It is one snapshot, and counts whole tables too.
        let counted = try world.replica.readAtLength { connection throws(StoreFailure) in
            try connection.value("SELECT COUNT(*) FROM teams", Int64.self)
        }
        #expect(counted == 40)
    }

    @Test func listing_standbyPaused_isReadAtPrimary() throws {
        let world = try World()
        defer { world.close() }
        try world.waitForStandby()
        try world.standby.psql("SELECT pg_wal_replay_pause()")
        try wait("the replay is paused", atMost: 90) {
            try world.standby.psql("SELECT pg_get_wal_replay_pause_state()").hasPrefix("paused")
        }
        for number in 1...5 {
            try world.add(number)
            let listed = try world.list()
            #expect(listed.count == Int64(number) && !listed.isStandby)
        }
        guard case .behind = try world.replica.measure() else {
            Issue.record("\(try world.replica.measure())")
            return
        }
        #expect(try Int64(world.standby.psql("SELECT COUNT(*) FROM teams").prefix(1)) == 0)
        try world.standby.psql("SELECT pg_wal_replay_resume()")
        try world.waitForStandby()
        #expect(try world.list().count == 5)
    }

    @Test func listing_standbyGone_isReadAtPrimaryUntilItIsBack() throws {
        let world = try World()
        defer { world.close() }
        try world.waitForStandby()
        for isCrash in [true, false] {
            world.standby.stop(immediately: isCrash)
            #expect(try !world.list().isStandby)
            guard case .away = try world.replica.measure() else {
                Issue.record("a stopped server is not away")
                return
            }
            try world.add(isCrash ? 1 : 2)
            #expect(try world.list().count == (isCrash ? 1 : 2))
            try world.standby.start()
            try world.waitForStandby()
        }
        // A service begins to use it when it is there.
        world.standby.stop()
        let later = ReplicaDatabase(
            primary: world.database, url: "postgresql://postern@\(world.standby.host)/postgres")
        defer { try? later.close() }
        #expect(try later.value("SELECT pg_is_in_recovery()", Bool.self) == false)
        try world.standby.start()
        try wait("it is used", atMost: 90) {
            try later.value("SELECT pg_is_in_recovery()", Bool.self) == true
        }
    }

    /// After a failover nothing is read at a server that another one has overtaken.
    @Test func listing_standbyPromoted_isReadAtPrimary() throws {
        let world = try World()
        defer { world.close() }
        try world.waitForStandby()
        try world.standby.promote()
        try world.standby.psql("DELETE FROM teams")
        try world.add(1)
        #expect(try world.list() == (1, false))
    }

    @Test func listing_serverOfAnotherCluster_isReadAtPrimary() throws {
        let world = try World()
        defer { world.close() }
        let other = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let wrong = ReplicaDatabase(
            primary: world.database,
            url: "postgresql://postern@\(other.host)/postgres?target_session_attrs=any")
        defer { try? wrong.close() }
        try world.add(1)
        #expect(try wrong.value("SELECT COUNT(*) FROM teams", Int64.self) == 1)
        #expect(try wrong.measure() == .away("the server is no standby of the database's primary"))
    }

    /// A caller that got rows already must not get them twice.
    @Test func listing_standbyEndsWithinRead_failsOrBeginsAgain() throws {
        let world = try World()
        defer { world.close() }
        try world.add(1)
        try world.waitForStandby()
        var rounds = 0
        let error = #expect(throws: StoreFailure.self) {
            try world.replica.read { connection throws(StoreFailure) in
                rounds += 1
                _ = try connection.rows("SELECT 1", [])
                world.standby.stop(immediately: true)
                _ = try connection.rows("SELECT 2", [])
            }
        }
        #expect(error?.code == .temporary(.away) && rounds == 1, "\(String(describing: error))")
        #expect(try world.list() == (1, false))
    }

    @Test func listing_change_isRefused() throws {
        let world = try World()
        defer { world.close() }
        let delete: TransactionBody<Void> = { connection throws(StoreFailure) in
            _ = try connection.run("DELETE FROM teams", [])
        }
        for body in [
            { try world.replica.write(.relaxed, delete) },
            { try world.replica.writeAlone(.durable, delete) },
            { _ = try world.replica.lock("events") },
        ] as [() throws -> Void] {
            #expect(throws: StoreFailure.permanent(.readOnly)) { try body() }
        }
        // The server refuses it too.
        #expect(throws: StoreFailure.self) {
            try world.replica.read(delete)
        }
    }
}
