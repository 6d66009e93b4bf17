// The notifications of `postern serve` to systemd, and the permissions of the unit.

import Foundation
import PostfixHarness
import Service
import TestSupport
import Testing

@Suite(.blocking) struct ServiceManagerTests {
    /// A socket like systemd's, deleted with its last reference.
    private final class NotifySocket {
        let path = NSTemporaryDirectory() + "postern-\(UUID().uuidString.prefix(8)).notify"
        private let descriptor: Int32

        init() throws {
            descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(descriptor >= 0 && bound == 0)
        }

        deinit {
            close(descriptor)
            unlink(path)
        }

        /// The next notification; nil if none comes within 60 s.
        func next() -> String? {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 60_000) == 1 else { return nil }
            var octets = [UInt8](repeating: 0, count: 512)
            let count = recv(descriptor, &octets, octets.count, 0)
            return count > 0 ? String(decoding: octets[..<count], as: UTF8.self) : nil
        }

        /// Whether a notification comes, possibly after others.
        func hears(_ word: String) -> Bool {
            while let heard = next() { if heard == word { return true } }
            return false
        }
    }

    /// With MemoryDenyWriteExecute= as in the unit, if the kernel allows that without systemd.
    @Test func serve_notifySocket_reportsReadyAliveAndStopping() throws {
        let runner = try CommandRunner.initialised()
        let heard = try NotifySocket()
        let socket = NSTemporaryDirectory() + "postern-\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(socket) }
        let launcher = """
            import ctypes, os, sys
            if ctypes.CDLL(None, use_errno=True).prctl(65, 1, 0, 0, 0) != 0: print("without PR_SET_MDWE", flush=True)
            os.execv(sys.argv[1], sys.argv[1:])
            """
        let process = try ManagedProcess(
            "/usr/bin/python3",
            [
                "-c", launcher, CommandRunner.executable.path, "serve", "--config",
                runner.configuration, "--set",
                "milter.socket=unix:\(socket)", "--set", "http.listen=127.0.0.1:0",
            ], environment: ["NOTIFY_SOCKET": heard.path, "WATCHDOG_USEC": "200000"])
        defer { process.end() }
        #expect(heard.hears("READY=1"))
        #expect(FileManager.default.fileExists(atPath: socket))
        for _ in 0..<3 { #expect(heard.hears("WATCHDOG=1")) }
        process.signal(SIGTERM)
        #expect(heard.hears("STOPPING=1"))
        #expect(try process.waitForExit() == 0)
    }

    @Test func serviceManager_invalidEnvironment_isIgnored() {
        for name in ["", "x", "relative", "/" + String(repeating: "a", count: 200)] {
            #expect(ServiceManager(environment: ["NOTIFY_SOCKET": name]) == nil)
        }
        #expect(ServiceManager(environment: [:]) == nil)
        let other = ServiceManager(
            environment: [
                "NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1",
            ], pid: 2)
        #expect(other != nil && other?.watchdog == nil)
        let own = ServiceManager(
            environment: ["NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "2"],
            pid: 2)
        #expect(own?.watchdog == .seconds(1))
        // No process listens: nothing happens.
        own?.isReady()
    }

    /// A database that starts some seconds after the service must not leave the unit failed
    /// permanently.
    @Test func unit_causeThatPasses_isTriedAgainWithoutEnd() throws {
        let lines = try String(
            contentsOf: Folders.package.appending(path: "docs/postern.service"), encoding: .utf8
        )
        .split(separator: "\n").map(String.init)
        let unit = lines.prefix { $0 != "[Service]" }
        #expect(unit.contains("StartLimitIntervalSec=0") && lines.contains("Restart=on-failure"))
        #expect(
            lines.contains { $0.hasPrefix("ExecStartPre=-") }
                && !lines.contains { $0.hasPrefix("ExecStartPre=/") })
        // systemd restarts it after any status except 0.
        let runner = try CommandRunner.initialised()
        let away = "postgresql://postern@127.0.0.1:\(try FreePort.next())/postern"
        let run = try runner.run(["serve", "--set", "database=\(away)"])
        #expect(run.status == 75, "\(run.errors)")
    }

    /// systemd's own measure of the unit: 10 means that everything is allowed.
    @Test(
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze"),
            "skipped: systemd-analyze is not installed"))
    func unit_securityAnalysis_passes() throws {
        let unit = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent(
                "../../docs/postern.service"
            ).standardizedFileURL.path
        let process = try ManagedProcess(
            "/usr/bin/systemd-analyze",
            ["security", "--offline=true", "--no-pager", "--threshold=15", unit])
        #expect(try process.waitForExit() == 0, "\(process.output.suffix(4_000))")
    }
}
