// The relay under a limit on address space, where the database file cannot be mapped as a whole.

import Foundation
import PostfixHarness
import Testing

@Suite struct AddressSpaceTests {
    /// The descriptor for the mapping that failed was closed, and with it ended all locks of the process on the file: another
    /// process, the last one out as far as it could see, would have removed the log that this one writes.
    @Test func withoutTheMappingTheDatabaseStaysLocked() throws {
        let runner = try CommandRunner.initialised()
        let socket = NSTemporaryDirectory() + "postern-\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(socket) }
        let process = try ManagedProcess(
            "/bin/sh",
            [
                "-c", "ulimit -v 32000000; exec \"$0\" \"$@\"", CommandRunner.executable.path, "serve", "--config",
                runner.configuration, "--set",
                "milter.socket=unix:\(socket)", "--set", "http.listen=127.0.0.1:0", "--set", "http.public_url=http://127.0.0.1",
            ])
        defer { process.end() }
        _ = try process.waitForLine(containing: "notice serving")

        let database = (runner.configuration as NSString).deletingLastPathComponent + "/postern.db"
        let maps = try String(contentsOfFile: "/proc/\(process.identifier)/maps", encoding: .utf8).split(separator: "\n")
        let lengths = maps.filter { $0.hasSuffix("/postern.db") }.compactMap { line -> Int? in
            let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { Int($0, radix: 16) }
            return ends.count == 2 ? ends[1] - ends[0] : nil
        }
        #expect(lengths.allSatisfy { $0 < 1 << 34 }, "the limit is above what a mapping takes")

        let descriptor = open(database, O_RDWR)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        // Who is in the way of one who wants all of it for itself.
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        try #require(fcntl(descriptor, F_GETLK, &lock) == 0)
        #expect(lock.l_type == Int16(F_RDLCK) && lock.l_pid == process.identifier)

        process.signal(SIGTERM)
        #expect(try process.waitForExit() == 0)
    }
}
