// A private PostgreSQL in a temporary folder: started by the first test that needs it, ended with
// the process.

import Concurrency
import Foundation

/// A separate server on a unix socket, without a network port.
package final class PostgresServer: @unchecked Sendable {
    package struct Failure: Error, CustomStringConvertible { package let description: String }

    /// Contains the socket, the server's log and, unless another folder is given, the data. Deleted
    /// at the end.
    package let folder: URL
    private let data: String
    /// Further settings, `name=value`.
    private let settings: [String]
    /// On 127.0.0.1; nil if it listens only on its socket.
    package private(set) var port: UInt16?
    private let binaries: String
    private let account: String?
    private let lock = NSLock()
    /// The guardian process, and our end of the pipe (a pair of sockets) that it reads.
    private var running: (end: Monitor<Int32?>, pipe: Int32)?

    /// Runs the server, and ends it with the signal that a line of standard input names. The end of
    /// the input means that this process ended in any way; it ends the server at once and deletes
    /// the folder. (A parent-death signal would come when the *thread* that started the server
    /// ends, and threads of a pool may end at any time.)
    private static let guardian = """
        exec 3<&0
        folder=$1; shift
        "$@" 3<&- </dev/null &
        server=$!
        (
            if read -r signal <&3; then kill -"$signal" $server; exit 0; fi
            trap "" TERM
            kill -QUIT $server
            exit 3
        ) &
        reader=$!
        wait $server
        status=$?
        kill $reader 2>/dev/null
        wait $reader
        [ $? = 3 ] && rm -rf "$folder"
        exit $status
        """

    /// One for all tests of the process; nil if PostgreSQL's server is not installed.
    package static let shared: PostgresServer? = {
        guard let binaries = installed else { return nil }
        let server = try? PostgresServer(binaries: binaries)
        if server != nil { atexit { PostgresServer.shared?.remove() } }
        return server
    }()

    /// The folder of the newest installed server.
    package static var installed: String? {
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        guard let newest = versions.compactMap({ Int($0) }).max() else { return nil }
        let folder = "\(root)/\(newest)/bin"
        return FileManager.default.isExecutableFile(atPath: folder + "/postgres") ? folder : nil
    }

    /// Creates a database cluster and starts its server.
    /// - Parameters:
    ///   - tls: certificate and key (PEM) for a port on loopback, in addition to the socket.
    ///   - data: folder of the data, which is kept; existing data is used. Nil for a folder within
    ///     `folder`.
    ///   - settings: settings of the server, `name=value`.
    package init(
        binaries: String, tls: (certificate: String, key: String)? = nil, data: String? = nil,
        settings: [String] = []
    ) throws {
        // Short, because the path of a socket has at most 107 octets.
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "pg-\(UUID().uuidString.prefix(8))")
        self.binaries = binaries
        // PostgreSQL does not run as root.
        account = getuid() == 0 ? "postgres" : nil
        self.data = data ?? folder.appendingPathComponent("data").path
        self.settings = settings
        try makeFolder(folder.path)
        if let data, !FileManager.default.fileExists(atPath: data) { try makeFolder(data) }
        if !FileManager.default.fileExists(atPath: self.data + "/PG_VERSION") {
            try run(
                "initdb",
                ["-D", self.data, "-U", "postern", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"])
        }
        if let tls {
            for (path, name) in [(tls.certificate, "server.crt"), (tls.key, "server.key")] {
                let copy = "\(self.data)/\(name)"
                try FileManager.default.copyItem(atPath: path, toPath: copy)
                guard chmod(copy, 0o600) == 0,
                    account.flatMap({ getpwnam($0) }).map({
                        chown(copy, $0.pointee.pw_uid, $0.pointee.pw_gid) == 0
                    }) ?? true
                else { throw Failure(description: "\(name) cannot be made") }
            }
            port = try Self.freePort()
        }
        try start()
    }

    /// A hot standby of another server, which follows it until it is promoted.
    package init(standbyOf primary: PostgresServer) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "pg-\(UUID().uuidString.prefix(8))")
        binaries = primary.binaries
        account = primary.account
        data = folder.appendingPathComponent("data").path
        settings = primary.settings
        try makeFolder(folder.path)
        try run(
            "pg_basebackup",
            [
                "-D", data, "-h", primary.folder.path, "-U", "postern", "-R", "-X", "stream", "-c",
                "fast",
            ])
        try start()
    }

    private func makeFolder(_ path: String) throws {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        guard let account, let entry = getpwnam(account) else { return }
        guard chown(path, entry.pointee.pw_uid, entry.pointee.pw_gid) == 0 else {
            throw Failure(description: "the folder cannot be given to \(account)")
        }
    }

    /// The folder of the socket unchanged in a URL.
    package var host: String {
        folder.path.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    private static func freePort() throws -> UInt16 {
        let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(file) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(file, $0, length) == 0 && getsockname(file, $0, &length) == 0
            }
        }
        guard isBound else { throw Failure(description: "no free port") }
        return UInt16(bigEndian: address.sin_port)
    }

    /// Starts the server, or starts it again after `stop`; returns when it accepts connections.
    package func start() throws {
        let words = command(
            "postgres", guarded: true,
            [
                "-D", data, "-k", folder.path, "-c",
                "listen_addresses=\(port == nil ? "" : "127.0.0.1")", "-p",
                "\(port ?? 5432)",
                "-c", "ssl=\(port == nil ? "off" : "on")", "-c", "max_connections=500",
                "-c", "fsync=off", "-c", "shared_buffers=64MB", "-c",
                "max_locks_per_transaction=256",
                // If these are used up by other tests, a lock on a row becomes one on its table.
                "-c", "max_pred_locks_per_transaction=256",
            ] + settings.flatMap { ["-c", $0] })
        let log = folder.appendingPathComponent("server.log")
        if !FileManager.default.fileExists(atPath: log.path) {
            _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        }
        let output = open(log.path, O_WRONLY | O_APPEND | O_CLOEXEC)
        guard output >= 0 else { throw Failure(description: "\(log.path) cannot be opened") }
        defer { close(output) }
        // Closed in every other child, which would keep it open for longer than this process lives.
        var ends: [Int32] = [-1, -1]
        guard
            socketpair(
                AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else {
            throw Failure(description: "no pipe")
        }
        defer { close(ends[0]) }
        let process: SystemProcess
        do { process = try spawn(words, (ends[0], output, output)) } catch {
            close(ends[1])
            throw error
        }
        let end = Monitor<Int32?>(nil)
        SystemThread.detach {
            let status = process.wait()
            end.with { $0 = status }
        }
        lock.withLock { running = (end, ends[1]) }
        // pg_isready reports it; called repeatedly, because there is nothing to wait on.
        for _ in 0..<600 {
            if (try? run(
                "pg_isready",
                [
                    "-q", "-h", folder.path, "-p", "\(port ?? 5432)", "-U", "postern", "-d",
                    "postgres",
                ]))
                != nil
            {
                return
            }
            guard end.with({ $0 == nil }) else { break }
            usleep(20_000)
        }
        throw Failure(
            description:
                "PostgreSQL did not start: \((try? String(contentsOf: log, encoding: .utf8)) ?? "")"
        )
    }

    /// Ends the server: its sessions are cut (fast), or everything ends at once as in a crash
    /// (immediate).
    package func stop(immediately: Bool = false) {
        end(saying: immediately ? "QUIT\n" : "INT\n")
    }

    /// Kills the server with SIGKILL: it can neither write nor say anything more.
    package func kill() { end(saying: "KILL\n") }

    /// Makes a standby the primary; returns when it accepts writes. The way that failover programs
    /// take (`pg_ctl promote`).
    package func promote() throws { try run("pg_ctl", ["promote", "-D", data, "-w", "-t", "300"]) }

    /// The effect of a kill of this process on the server: no process has the pipe open.
    package func abandon() { end(saying: "") }

    private func end(saying line: String) {
        guard
            let running = lock.withLock({ () -> (end: Monitor<Int32?>, pipe: Int32)? in
                defer { self.running = nil }
                return self.running
            })
        else { return }
        _ = line.withCString { write(running.pipe, $0, strlen($0)) }
        close(running.pipe)
        _ = running.end.wait(atMost: nil) { $0 != nil }
    }

    /// Ends the server and deletes its folder with the data, unless the data has a separate folder.
    package func remove() {
        stop(immediately: true)
        try? FileManager.default.removeItem(at: folder)
    }

    deinit { remove() }

    /// A URL of a new empty schema.
    package func url(schema: String, user: String = "postern") throws -> String {
        try run(
            "psql",
            [
                "-q", "-h", folder.path, "-p", "\(port ?? 5432)", "-U", "postern", "-d", "postgres",
                "-c",
                "CREATE SCHEMA IF NOT EXISTS \"\(schema)\"",
            ])
        return url(of: schema, user: user)
    }

    /// The URL of a schema, which need not exist.
    package func url(of schema: String, user: String = "postern") -> String {
        "postgresql://\(user)@\(host)/postgres?options=-csearch_path%3D\(schema)"
    }

    /// The SQL that creates a schema with all its content, without psql's own commands.
    package func dump(schema: String) throws -> String {
        let text = try run(
            "pg_dump",
            [
                "-h", folder.path, "-p", "\(port ?? 5432)", "-U", "postern", "-d", "postgres", "-n",
                schema, "--inserts",
                "--no-owner", "--no-comments",
            ])
        return text.split(separator: "\n").filter { !$0.hasPrefix("\\") && !$0.hasPrefix("--") }
            .joined(separator: "\n")
    }

    /// Runs SQL as the superuser, in one transaction, and returns psql's unaligned output.
    @discardableResult
    package func psql(_ sql: String, database: String = "postgres") throws -> String {
        try run(
            "psql",
            [
                "-qAt", "-v", "ON_ERROR_STOP=1", "-h", folder.path, "-p", "\(port ?? 5432)", "-U",
                "postern", "-d", database,
                "-c", sql,
            ])
    }

    /// Runs one of PostgreSQL's programs to its end.
    @discardableResult
    package func run(_ program: String, _ arguments: [String]) throws -> String {
        let output = try SystemProcess.pipe()
        let input = open("/dev/null", O_RDONLY | O_CLOEXEC)
        defer { close(input) }
        let reader = FileHandle(fileDescriptor: output.read, closeOnDealloc: true)
        let process: SystemProcess
        do {
            process = try spawn(command(program, arguments), (input, output.write, output.write))
        } catch {
            close(output.write)
            throw error
        }
        close(output.write)
        let text = String(decoding: reader.readDataToEndOfFile(), as: UTF8.self)
        guard process.wait() == 0 else { throw Failure(description: "\(program): \(text)") }
        return text
    }

    private func command(
        _ program: String, guarded: Bool = false, _ arguments: [String]
    ) -> [String] {
        var words = ["\(binaries)/\(program)"] + arguments
        if let account {
            words =
                ["/usr/bin/setpriv", "--reuid", account, "--regid", account, "--clear-groups"]
                + words
        }
        if guarded {
            words = ["/bin/sh", "-c", Self.guardian, "postgres-guardian", folder.path] + words
        }
        return words
    }

    private func spawn(
        _ words: [String], _ descriptors: (Int32, Int32, Int32)
    ) throws -> SystemProcess {
        try SystemProcess(
            words[0], Array(words.dropFirst()), environment: ProcessInfo.processInfo.environment,
            directory: folder.path,
            descriptors: descriptors)
    }
}
