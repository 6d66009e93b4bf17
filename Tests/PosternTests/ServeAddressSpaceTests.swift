// The relay under a limit on address space.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct ServeAddressSpaceTests {
    /// A program that reserves more than it uses cannot be limited (`LimitAS=`). The lock on the
    /// database keeps another process, which seems to be the last, from removing the log that this
    /// one writes.
    @Test func serve_limitedAddressSpace_startsAndLocksDatabase() throws {
        let runner = try CommandRunner.initialised()
        let socket = NSTemporaryDirectory() + "postern-\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(socket) }
        let process = try ManagedProcess(
            "/bin/sh",
            [
                "-c", "ulimit -v 8000000; exec \"$0\" \"$@\"", CommandRunner.executable.path,
                "serve", "--config",
                runner.configuration, "--set",
                "milter.socket=unix:\(socket)", "--set", "http.listen=127.0.0.1:0", "--set",
                "http.public_url=http://127.0.0.1",
            ])
        defer { process.end() }
        _ = try process.waitForLine(containing: "notice serving")

        let database = (runner.configuration as NSString).deletingLastPathComponent + "/postern.db"
        let descriptor = open(database, O_RDWR)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        // The process that prevents an exclusive lock.
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        try #require(fcntl(descriptor, F_GETLK, &lock) == 0)
        #expect(lock.l_type == Int16(F_RDLCK) && lock.l_pid == process.identifier)

        process.signal(SIGTERM)
        #expect(try process.waitForExit() == 0)
    }
}
