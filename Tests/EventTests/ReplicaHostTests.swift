// A host with a standby for listings: what it serves, and what it says about the standby.

import Accounts
import Foundation
import InternetMessage
import PostfixHarness
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct ReplicaHostTests {
    @Test(.timeLimit(.minutes(10)))
    func host_standbyPaused_listsEverythingAndSaysSo() async throws {
        let primary = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let hosts = try await EventHosts(primary, users: 1)
        do { try serve(hosts, primary) } catch {
            await hosts.stop()
            throw error
        }
        await hosts.stop()
    }

    private func serve(_ hosts: EventHosts, _ primary: PostgresServer) throws {
        let standby = try PostgresServer(standbyOf: primary)
        let schema: String? = try hosts.store.database.value("SELECT current_schema()")
        let process = try hosts.serve(
            "mx1", settings: ["database_replica": standby.url(of: try #require(schema))])
        let line = try process.waitForLine(containing: "listening for HTTP")
        let port = try #require(
            line.firstMatch(of: /address=[^ ]*:([0-9]+)/).flatMap { UInt16($0.output.1) })
        let key = try hosts.key("--operator", "--scope", "accounts:read,metrics:read")
        func metric(_ name: String) throws -> Double? {
            let text = try HTTPClient.get(port: port, path: "/metrics", bearer: key)
            return text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap {
                Double($0.dropFirst(name.count + 1))
            }
        }
        /// The number of accounts in the listing.
        func accounts() throws -> Int {
            try HTTPClient.get(port: port, path: "/v1/accounts", bearer: key).matches(
                of: /"sub":/
            ).count
        }
        func add(_ user: String) throws {
            let change = Change(actor: "uid:0", now: 1)
            _ = try hosts.store.users.add(
                id: user, name: nil,
                inbox: InboxAddress(AddrSpec(localPart: user, domain: "home.example")),
                isVerified: true, change)
            _ = try hosts.store.addresses.issue(team: "juice", user: user, change)
        }
        let atStandby = #"postern_listing_reads_total{server="standby"}"#
        try wait("listings are read at the standby", atMost: standardTimeout) {
            #expect(try accounts() == 1)
            return try metric(atStandby) ?? 0 > 0 && metric("postern_replica_lag_seconds") == 0
        }
        try standby.psql("SELECT pg_wal_replay_pause()")
        try wait("the replay is paused", atMost: standardTimeout) {
            try standby.psql("SELECT pg_get_wal_replay_pause_state()").hasPrefix("paused")
        }
        for number in 2...4 {
            try add("further\(number)")
            #expect(try accounts() == number)
        }
        try wait("the host says so", atMost: standardTimeout) {
            try hosts.run(["status"]).output.contains("reads listings at the primary")
        }
        standby.stop(immediately: true)
        #expect(try accounts() == 4)
        try wait("the lag is not known", atMost: standardTimeout) {
            try metric("postern_replica_lag_seconds") == -1
        }
        #expect(process.isRunning)
    }
}
