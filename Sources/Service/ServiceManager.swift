// What systemd is told of the service (sd_notify(3)): a datagram to the socket that NOTIFY_SOCKET names.

import Concurrency
import Foundation
import ServiceLifecycle

/// The service manager that started the process.
package struct ServiceManager: Sendable {
    /// A path, or a name of Linux's own behind an `@`.
    private let socket: String
    /// How often it wants to hear that the service runs; nil where it does not.
    package let watchdog: Duration?

    /// Nil where no one wants to be told.
    package init?(environment: [String: String], pid: Int32 = getpid()) {
        guard let socket = environment["NOTIFY_SOCKET"], socket.hasPrefix("/") || socket.hasPrefix("@"),
            // What fits into sockaddr_un.
            (2...107).contains(socket.utf8.count)
        else { return nil }
        self.socket = socket
        let isMeant = environment["WATCHDOG_PID"].map { $0 == "\(pid)" } ?? true
        watchdog = environment["WATCHDOG_USEC"].flatMap { Int64($0) }.flatMap { isMeant && $0 > 0 ? .microseconds($0) : nil }
    }

    /// Mail is taken.
    package func isReady() { tell("READY=1") }

    /// The service ends.
    func isStopping() { tell("STOPPING=1") }

    /// The service runs.
    func isAlive() { tell("WATCHDOG=1") }

    /// What cannot be told now is not told: the manager is not there, and nothing depends on it.
    private func tell(_ state: String) {
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var path = Array(socket.utf8)
        if path[0] == UInt8(ascii: "@") { path[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        // An abstract name has no end but its length.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let octets = Array(state.utf8)
        withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = sendto(descriptor, octets, octets.count, Int32(MSG_NOSIGNAL), address, length)
            }
        }
    }
}

/// Says twice in each interval that the service runs: that its tasks still get their turns. A store that hangs is no reason to
/// start again: mail waits for it, and `/readyz` says so.
struct WatchdogService: Service {
    let manager: ServiceManager

    func run() async throws {
        // Ended last: until then the service runs.
        await PeriodicTask.untilShutdown(every: manager.watchdog.map { $0 / 2 } ?? .seconds(3_600)) { manager.isAlive() }
        manager.isStopping()
    }
}
