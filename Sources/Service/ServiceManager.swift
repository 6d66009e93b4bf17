// Notifies systemd of the service's state (sd_notify(3)) with a datagram to the socket
// that NOTIFY_SOCKET names.

import Concurrency
import Foundation
import ServiceLifecycle

/// The service manager that started the process.
package struct ServiceManager: Sendable {
    /// A path, or an abstract name of Linux after an `@`.
    private let socket: String
    /// The interval in which systemd expects a notification; nil if it expects none.
    package let watchdog: Duration?

    /// Nil if there is no service manager to notify.
    package init?(environment: [String: String], pid: Int32 = getpid()) {
        guard let socket = environment["NOTIFY_SOCKET"],
            socket.hasPrefix("/") || socket.hasPrefix("@"),
            // The length that fits into sockaddr_un.
            (2...107).contains(socket.utf8.count)
        else { return nil }
        self.socket = socket
        let isMeant = environment["WATCHDOG_PID"].map { $0 == "\(pid)" } ?? true
        watchdog = environment["WATCHDOG_USEC"].flatMap { Int64($0) }.flatMap {
            isMeant && $0 > 0 ? .microseconds($0) : nil
        }
    }

    /// The service accepts mail.
    package func isReady() { tell("READY=1") }

    /// The service is ending.
    func isStopping() { tell("STOPPING=1") }

    /// The service runs.
    func isAlive() { tell("WATCHDOG=1") }

    /// A notification that cannot be sent is dropped: the manager does not run, and nothing depends
    /// on it.
    private func tell(_ state: String) {
        let descriptor = Glibc.socket(
            AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var path = Array(socket.utf8)
        if path[0] == UInt8(ascii: "@") { path[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        // An abstract name has no terminator, only its length.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let octets = Array(state.utf8)
        withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = sendto(descriptor, octets, octets.count, Int32(MSG_NOSIGNAL), address, length)
            }
        }
    }
}

/// Notifies the manager twice in each interval that the service's tasks still run. A store that
/// hangs is not a reason for a restart: mail waits for it, and `/readyz` reports it.
struct WatchdogService: Service {
    let manager: ServiceManager

    func run() async throws {
        // Ends last: until then the service runs.
        await PeriodicTask.untilShutdown(every: manager.watchdog.map { $0 / 2 } ?? .seconds(3_600))
        { manager.isAlive() }
        manager.isStopping()
    }
}
