// A running `postern serve` with its HTTP listener on a free port.

import DNSClient
import DNSTesting
import Foundation
import Glibc
import PostfixHarness
import Testing

final class LiveService: @unchecked Sendable {
    let folder: String
    let program: String
    private(set) var port: UInt16
    let socket: String
    private var process: ManagedProcess
    private let arguments: [String]
    private let dns: TestDNSServer
    private let inboxes: Set<String>

    /// - Parameter inboxes: the inboxes of the test, which no log may contain.
    init(
        inboxes: Set<String> = ["jane.private@home.example"], _ settings: [String: String] = [:]
    ) throws {
        folder = NSTemporaryDirectory() + "postern-live-" + UUID().uuidString.prefix(8).lowercased()
        program = try ManagedProcess.builtProduct("postern")
        dns = try TestDNSServer(zone: ZoneFile(json: Data("{}".utf8)))
        socket = "unix:\(folder)/milter.sock"
        self.inboxes = inboxes
        try InstallationCopy.make(folder, relayDomains: ["relay.example"])
        let all = [
            "milter.socket": socket, "http.listen": "127.0.0.1:0", "dns.servers": "\(dns.address)",
            "http.requests_per_second": "100000",
            "mail.submission": "127.0.0.1:9",
        ].merging(settings) { $1 }
        arguments =
            ["serve", "--config", folder + "/postern.yaml"]
            + all.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
        (process, port) = try Self.start(program, arguments)
    }

    private static func start(
        _ program: String, _ arguments: [String]
    ) throws -> (ManagedProcess, UInt16) {
        let process = try ManagedProcess(program, arguments)
        let line = try process.waitForLine(containing: "listening for HTTP")
        let port = line.split(separator: " ").first { $0.hasPrefix("address=") }?.split(
            separator: ":"
        ).last.flatMap {
            UInt16($0)
        }
        try process.waitForLine(containing: "serving")
        return (process, try #require(port))
    }

    /// Kills the service like a power failure: no part of it runs afterwards.
    func kill() throws {
        process.signal(SIGKILL)
        try process.waitForExit()
        ServiceLogs.keep(process.lines, inboxes: inboxes)
    }

    /// Starts it again on the same folder.
    func restart() throws { (process, port) = try Self.start(program, arguments) }

    deinit {
        process.signal(SIGTERM)
        _ = try? process.waitForExit()
        ServiceLogs.keep(process.lines, inboxes: inboxes)
        dns.stop()
        try? FileManager.default.removeItem(atPath: folder)
    }

    var log: String { process.output }

    /// Waits for a line in the log.
    func waitForLog(_ text: String) throws { try process.waitForLine(containing: text) }

    func signal(_ number: Int32) { process.signal(number) }

    /// Sends SIGHUP, and waits for this line in the log.
    func reload(until text: String) throws {
        let start = process.lines.count
        process.signal(SIGHUP)
        try process.waitForLine(containing: text, from: start)
    }

    @discardableResult
    func run(_ arguments: String...) throws -> String {
        let result = try ManagedProcess.run(
            program, arguments + ["--config", folder + "/postern.yaml"])
        try #require(result.status == 0, "\(result.output)")
        return result.output
    }

    /// An unencrypted key.
    func key(_ arguments: String...) throws -> String {
        let result = try ManagedProcess.run(
            program, ["api-key", "issue"] + arguments + ["--config", folder + "/postern.yaml"])
        return try #require(
            result.output.split(separator: "\n").first { $0.hasPrefix("pk_") }.map(String.init),
            "\(result.output)")
    }

    /// Status and body of one request.
    func ask(
        _ method: String, _ path: String, key: String? = nil, body: String? = nil
    ) throws -> (status: Int, body: String) {
        var text = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        if let key { text += "Authorization: Bearer \(key)\r\n" }
        if let body {
            text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
        }
        let wire = try Wire(port)
        wire.send(text + "\r\n" + (body ?? ""))
        let answer = wire.rest()
        let status = answer.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return (
            status,
            answer.components(separatedBy: "\r\n\r\n").dropFirst().joined(separator: "\r\n\r\n")
        )
    }
}

/// A client's connection; blocks, with a timeout of two minutes.
final class Wire {
    private let descriptor: Int32

    /// - Parameter source: the loopback address of the client.
    init(_ port: UInt16, from source: String = "127.0.0.1") throws {
        descriptor = Glibc.socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        var limit = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        func with(_ host: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
            address.sin_addr.s_addr = inet_addr(host)
            return withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        try #require(with(source) { bind(descriptor, $0, $1) } == 0, "errno \(errno)")
        address.sin_port = port.bigEndian
        try #require(with("127.0.0.1") { connect(descriptor, $0, $1) } == 0, "errno \(errno)")
    }

    deinit { close(descriptor) }

    func send(_ text: String) {
        _ = Glibc.send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL))
    }

    /// The next text; the test ends if nothing comes.
    func next() -> String {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        precondition(count > 0, "the other side closed, or said nothing for two minutes")
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// Everything until the other side closes.
    func rest() -> String {
        var out: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return String(decoding: out, as: UTF8.self) }
            out += buffer[..<count]
        }
    }
}

/// Tries until the condition holds, because a service follows within seconds; false if it never
/// does.
func eventually(_ holds: () throws -> Bool) rethrows -> Bool {
    let end = ContinuousClock.now + .seconds(120)
    while ContinuousClock.now < end {
        if try holds() { return true }
        usleep(50_000)
    }
    return false
}
