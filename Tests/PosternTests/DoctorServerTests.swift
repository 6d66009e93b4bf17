// The doctor on PostgreSQL: settings that lose confirmed changes, or leave no room.

import Doctor
import Foundation
import PostfixHarness
import PostgresHarness
import TestSupport
import Testing

@Suite struct DoctorServerTests {
    /// A server as docs/OPERATING-POSTGRESQL.md wants it.
    private func healthy() -> ServerFacts {
        var facts = ServerFacts()
        facts.settings = [
            "fsync": "on", "full_page_writes": "on", "synchronous_commit": "on",
            "synchronous_standby_names": "ANY 1 (a, b)", "max_pred_locks_per_transaction": "256",
            "max_connections": "100", "superuser_reserved_connections": "3",
        ]
        (facts.servers, facts.synchronousStandbys, facts.hosts, facts.connections) = (3, 2, 2, 10)
        return facts
    }

    private func verdicts(_ change: (inout ServerFacts) -> Void) -> [String: Check.Verdict] {
        var facts = healthy()
        change(&facts)
        let checks = ServerChecks.judge(facts)
        #expect(Set(checks.map(\.name.kind)) == [.databaseDurability, .databaseSettings])
        for check in checks { #expect((check.remedy == nil) == (check.verdict == .ok)) }
        return Dictionary(checks.map { ($0.name.text, $0.verdict) }, uniquingKeysWith: max).filter {
            $0.value != .ok
        }
    }

    @Test func server_eachSetting_hasItsVerdict() {
        let (durability, settings) = ("database durability", "database settings")
        #expect(verdicts { _ in } == [:])
        #expect(verdicts { $0.settings["fsync"] = "off" } == [durability: .broken])
        #expect(verdicts { $0.settings["full_page_writes"] = "off" } == [durability: .warning])
        for level in ["local", "remote_write"] {
            #expect(
                verdicts { $0.settings["synchronous_commit"] = level } == [durability: .warning])
        }
        #expect(verdicts { $0.settings["synchronous_commit"] = "remote_apply" } == [:])
        #expect(
            verdicts { $0.settings["synchronous_standby_names"] = "" } == [durability: .warning])
        // One server has no failover.
        #expect(
            verdicts {
                $0.settings["synchronous_standby_names"] = ""
                $0.servers = 1
            } == [:])
        #expect(verdicts { $0.synchronousStandbys = 0 } == [durability: .broken])
        // This user may not see the standbys.
        #expect(verdicts { $0.synchronousStandbys = nil } == [:])
        #expect(
            verdicts { $0.settings["max_pred_locks_per_transaction"] = "64" }
                == [settings: .warning])
        #expect(verdicts { $0.settings["max_connections"] = "31" } == [:])
        #expect(verdicts { $0.settings["max_connections"] = "30" } == [settings: .warning])
        #expect(verdicts { $0.hosts = 7 } == [settings: .warning])
        #expect(verdicts { $0.settings = [:] } == [durability: .warning])
    }
}

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct DoctorServerCommandTests {
    /// The doctor itself must not wait for a standby that is gone.
    @Test func doctor_synchronousStandbyAway_saysSo() throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let runner = try CommandRunner()
        try runner.succeed(
            "init", "--directory", "data", "--relay-domain", "relay.example", "--database",
            server.url(schema: "relay"))
        try server.psql("ALTER SYSTEM SET synchronous_standby_names = 'elsewhere'")
        try server.psql("SELECT pg_reload_conf()")
        try wait("the setting is in force", atMost: standardTimeout) {
            try server.psql("SHOW synchronous_standby_names").hasPrefix("elsewhere")
        }
        let doctor = try runner.run([
            "doctor", "--skip", "postfix", "--skip", "probe", "--skip", "outside",
        ])
        #expect(doctor.status == 1)
        #expect(doctor.output.contains("each change waits"), "\(doctor.output)")
        #expect(doctor.output.contains("fsync is off"), "the tests' servers are without it")
    }

    /// The commands that list read at the standby if it has everything, and lose nothing if not.
    @Test func listings_standbyPausedOrFollowing_areComplete() throws {
        let primary = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let runner = try CommandRunner()
        try runner.succeed(
            "init", "--directory", "data", "--relay-domain", "relay.example", "--database",
            primary.url(schema: "relay"))
        let standby = try PostgresServer(standbyOf: primary)
        let setting = "database_replica=\(standby.url(of: "relay"))"
        func doctor() throws -> String {
            try runner.run([
                "doctor", "--skip", "postfix", "--skip", "probe", "--skip", "outside", "--set",
                setting,
            ]).output
        }
        func audit() throws -> String { try runner.succeed("audit", "--set", setting) }
        try wait("the standby is used", atMost: standardTimeout) {
            try doctor().contains("listings are read at the standby")
        }
        try standby.psql("SELECT pg_wal_replay_pause()")
        try wait("the replay is paused", atMost: standardTimeout) {
            try standby.psql("SELECT pg_get_wal_replay_pause_state()").hasPrefix("paused")
        }
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        #expect(try audit().contains("team:juice"))
        #expect(try doctor().contains("listings are read at the primary"))
        try standby.psql("SELECT pg_wal_replay_resume()")
        try runner.succeed("team", "add", "milk", "--name", "Milk")
        #expect(try audit().contains("team:milk"))
        standby.stop()
        #expect(try audit().contains("team:milk"))
        #expect(try doctor().contains("listings are read at the primary"))
        try runner.fail(
            "audit", "--set", "database_replica=elsewhere", status: 78,
            saying: "database_replica: give a URL of PostgreSQL")
        let alone = try CommandRunner.initialised()
        try alone.fail(
            "audit", "--set", setting, status: 78, saying: "only a database on PostgreSQL")
    }
}
