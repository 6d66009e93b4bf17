// The private PostgreSQL server lives exactly as long as the process.

import Foundation
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct PostgresServerTests {
    @Test("A server that a thread started outlives the thread: it vanished in the middle of a run")
    func server_startingThreadEnded_staysUp() async throws {
        let binaries = try #require(PostgresServer.installed)
        let server = try await withCheckedThrowingContinuation {
            (done: CheckedContinuation<PostgresServer, any Error>) in
            // The parent-death signal is sent when the starting thread ends, so this test needs a
            // thread that ends.
            Thread { done.resume(with: Result { try PostgresServer(binaries: binaries) }) }.start()
        }
        for _ in 0..<3 { #expect(try server.psql("SELECT 40 + 2").contains("42")) }
        // Stopped and started again on other threads, as in tests of a failover.
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            Thread {
                server.stop(immediately: true)
                done.resume(with: Result { try server.start() })
            }.start()
        }
        #expect(try server.psql("SELECT 40 + 2").contains("42"))
        server.stop()
        #expect(throws: PostgresServer.Failure.self) { try server.psql("SELECT 1") }
    }

    @Test("A process that is killed leaves neither server nor folder behind")
    func server_abandoned_leavesNoProcessOrFolder() throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let pid = try #require(
            try String(
                contentsOf: server.folder.appendingPathComponent("data/postmaster.pid"),
                encoding: .utf8
            )
            .split(separator: "\n").first.flatMap { Int32($0) })
        server.abandon()
        #expect(kill(pid, 0) != 0)
        #expect(!FileManager.default.fileExists(atPath: server.folder.path))
    }
}
