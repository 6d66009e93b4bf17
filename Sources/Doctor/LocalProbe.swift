// Gathers the facts about this machine that LocalChecks evaluates.

import Accounts
import Database
import Decisions
import Foundation
import Glibc
import Milter
import Monitoring
import PosternConfiguration
import PostfixSetup
import Relay
import Support

package enum LocalProbe {
    /// The largest database, in octets, that is checked for damage: about ten seconds of work, or
    /// one second before a start.
    private static let (checkedOctets, checkedBeforeStart): (Int64, Int64) = (4 << 30, 256 << 20)

    /// Gathers all facts. Migrates nothing, and writes one row, to see whether the store accepts
    /// changes.
    /// - Parameter isBeforeStart: whether to leave out the running service, and to check only a
    ///   small database for damage.
    package static func gather(
        flag: String?, environment: [String: String], set: [String], now: Int64,
        isBeforeStart: Bool = false
    ) -> LocalFacts {
        var facts = LocalFacts()
        facts.now = now
        let configuration: Configuration
        do {
            let resolved: ResolvedConfiguration
            (configuration, resolved) = try Installation.configuration(
                flag: flag, environment: environment, set: set)
            let paths = [configuration.database.path, configuration.keyFilePath, resolved.path]
                .compactMap { $0 }
            if let user = ServiceUser(
                ownerOf: paths.map { ($0 as NSString).deletingLastPathComponent })
            {
                facts.unreadable = paths.filter { !user.canRead($0) }.map { ($0, user.name) }
            }
        } catch {
            facts.configuration = .trouble("\(error)")
            facts.configurationFault = (error as? ConfigurationError)?.code
            return facts
        }
        facts.hasOperatorAddress = configuration.operatorAddress != nil
        facts.hasUserPage = configuration.publicURL != nil && configuration.http.listen != nil
        facts.databasePath = "\(configuration.database)"
        facts.isOnServer = configuration.database.path == nil
        facts.socket = configuration.milter.socket
        facts.postfixLog = configuration.deliveryLogPath.map { path in
            (path, access(path, R_OK) == 0 ? nil : "\(path): \(String(cString: strerror(errno)))")
        }
        if !isBeforeStart {
            askService(&facts, configuration)
            facts.isClockKept = ClockKeeper.ask()
        }
        var keys: KeyRing?
        do { keys = try KeyFile.read(path: configuration.keyFilePath) } catch {
            facts.keyFile = .trouble("\(error)")
            var status = stat()
            if stat(configuration.keyFilePath, &status) == 0, status.st_mode & 0o077 != 0 {
                facts.openKeyFile = configuration.keyFilePath
            }
        }
        examineDatabase(
            &facts, configuration, keys,
            checking: isBeforeStart ? checkedBeforeStart : checkedOctets, now: now)
        return facts
    }

    private static func askService(_ facts: inout LocalFacts, _ configuration: Configuration) {
        facts.filter = MilterProbe.ask(configuration.milter.socket)
        if let smtpd = configuration.fanOut,
            let outcome = MilterProbe.askCopies(smtpd, MilterPeers(configuration.milter.peers))
        {
            facts.copies = ("\(smtpd.host):\(smtpd.port)", outcome)
        }
        if let listen = configuration.http.listen, listen.port > 0 {
            facts.http = (
                "\(listen.host):\(listen.port)",
                MilterProbe.askHTTP(listen, isEncrypted: configuration.http.certificate != nil)
            )
        }
    }

    private static func examineDatabase(
        _ facts: inout LocalFacts, _ configuration: Configuration, _ keys: KeyRing?,
        checking limit: Int64, now: Int64
    ) {
        if let path = configuration.database.path {
            var status = stat()
            facts.isDatabaseMissing = !FileManager.default.fileExists(atPath: path)
            if stat(path, &status) == 0 {
                facts.databaseMode = status.st_mode & 0o7777
                if status.st_size > limit { facts.unchecked = (Int64(status.st_size), limit) }
            }
            for side in ["-wal", "-shm"] {
                var status = stat()
                if stat(path + side, &status) == 0, status.st_mode & 0o077 != 0 {
                    facts.openFiles.append(path + side)
                }
            }
            let folder = (path as NSString).deletingLastPathComponent
            var folderStatus = stat()
            // With the sticky bit, no user may replace the files of others.
            if stat(folder, &folderStatus) == 0, folderStatus.st_mode & 0o002 != 0,
                folderStatus.st_mode & 0o1000 == 0
            {
                facts.openFolder = folder
            }
            // A link leads to the file's place. If the file does not exist yet, its folder is the
            // place.
            facts.databaseElsewhere = NetworkFileSystem(of: path) ?? NetworkFileSystem(of: folder)
            if let space = DiskSpace(of: folder) {
                (facts.freeOctets, facts.totalOctets) = (space.free, space.total)
            }
        }
        do {
            let database = try configuration.database.open()
            defer { try? database.close() }
            try database.requireEngine()
            try Migrator().requireBegun(database)
            facts.pendingMigrations = try Migrator().pending(database)
            // A change that affects no row still needs the right to write.
            _ = try database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.run("DELETE FROM schema_migrations WHERE version < 0", [])
            }
            guard facts.pendingMigrations.isEmpty else { return }
            if facts.isOnServer {
                let server = try ServerFacts(
                    database, configuration,
                    hosts: database.reportingHosts(since: now - ServiceSnapshot.timeout))
                facts.server = server
                if let location = configuration.replica {
                    let replica = location.replica(of: database)
                    defer { try? replica?.close() }
                    facts.replica = ("\(location)", try replica?.measure().trouble)
                }
                // A durable change would wait with them.
                guard !server.isWaiting else { return }
            }
            // A change of a row also needs space on the disk.
            try database.checkWritable(now: now)
            guard let keys else { return }
            let checked = Result { () throws(StoreFailure) in
                try Store.checkKeys(keys, of: database)
            }
            if case .failure(let failure) = checked, failure.code == .permanent(.unsealing) {
                // The database works, but no sealed value can be read without the keys.
                facts.keyFile = .trouble("\(configuration.keyFilePath): \(failure)")
                return
            }
            try checked.get()
            let store = Store(
                database: database, keys: keys, relayDomains: configuration.relayDomains)
            facts.lostDomains = try Installation.lostDomains(configuration, store.addresses)
            facts.newestChange = try store.audit.entries(limit: 1).first?.at
            facts.clockSkew = try clockSkew(store, here: configuration.hostname, now: now)
            facts.policyProblems = try policyProblems(store)
            facts.removals = try StatusReport.removals(store, now)
            facts.receivers = try StatusReport.receivers(store)
            facts.parkedEvents = try StatusReport.parkedEvents(store)
            facts.holds = try store.holds.all()
            try examineLog(&facts, store, here: configuration.hostname, now: now)
            // PostgreSQL has no such check for clients; its tool for this is pg_amcheck.
            if facts.unchecked == nil, configuration.database.path != nil {
                facts.damage = try database.values("PRAGMA quick_check(5)", String.self).filter {
                    $0 != "ok"
                }
            }
            facts.policyRefusals = try store.policies.hosts().filter {
                facts.now - $0.at <= PolicyHostState.silence
            }.compactMap(
                \.refusal)
        } catch {
            facts.database = .trouble("\(error)")
            facts.databaseFailure = error as? StoreFailure
            var isFolder: ObjCBool = false
            facts.isDatabaseFolder =
                FileManager.default.fileExists(atPath: facts.databasePath, isDirectory: &isFolder)
                && isFolder.boolValue
        }
    }
}

extension LocalProbe {
    /// Compares this machine's clock with those of all running services.
    private static func clockSkew(_ store: Store, here: String, now: Int64) throws -> String? {
        let others = try ServiceReport.all(store, now: now).filter {
            $0.isRunning && $0.entry.host != here
        }.compactMap {
            report in
            report.snapshot.map { (host: report.entry.host, ahead: $0.clockAhead) }
        }
        return ClockSkew.complaint([(here, try ClockSkew.measure(store.database))] + others)
    }

    /// The service's user may read other files than this process, so a running service decides.
    private static func examineLog(
        _ facts: inout LocalFacts, _ store: Store, here: String, now: Int64
    ) throws {
        let snapshots = try ServiceReport.all(store, now: now).filter {
            $0.isRunning && $0.entry.host == here
        }.compactMap(\.snapshot)
        guard !snapshots.isEmpty else { return }
        facts.postfixLog?.trouble = snapshots.compactMap(\.logTrouble).first
    }

    /// Policies in force that are missing or do not load with this program, and hosts that use
    /// another policy than the active one.
    private static func policyProblems(_ store: Store) throws -> [String] {
        let arrangement = try store.policies.arrangement()
        var problems =
            arrangement.standard == nil
            ? ["no default policy is active for teams without their own policy"] : []
        for named in arrangement.policies {
            do {
                _ = try LoadedPolicy(store.policies.policy(hash: named.hash))
            } catch {
                problems.append(
                    "policy \(named.name) does not load: \("\(error)".split(separator: "\n").first ?? "")"
                )
            }
        }
        return problems
    }
}

/// Whether chrony, systemd-timesyncd or another program synchronizes the clock.
enum ClockKeeper {
    /// Nil if no such program answers.
    static func ask() -> Bool? {
        if let text = run("chronyc", ["-n", "tracking"]),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("Leap status") })
        {
            return !line.contains("Not synchronised")
        }
        switch run("timedatectl", ["show", "--property=NTPSynchronized", "--value"])?
            .trimmingCharacters(
                in: .whitespacesAndNewlines)
        {
        case "yes": return true
        case "no": return false
        default: return nil
        }
    }

    /// The output of a tool; nil if it is missing or fails.
    private static func run(_ tool: String, _ arguments: [String]) -> String? {
        guard let path = ToolRun.find(tool, in: ["/usr/bin", "/usr/local/bin", "/bin"]),
            let run = try? ToolRun(path, arguments)
        else { return nil }
        return run.status == 0 ? run.output : nil
    }
}

/// Checks whether a milter answers at a socket.
package enum MilterProbe {
    /// Seconds to wait for connection and answer: a slower milter would delay mail too.
    private static let timeout = 5

    /// Opens a session as Postfix does, offering every action and protocol step, and ends it
    /// after the milter's answer.
    package static func ask(_ socket: String) -> LocalFacts.Answer {
        guard let parsed = MilterSocket(socket) else {
            return .trouble("the socket cannot be read")
        }
        let descriptor: Int32
        switch parsed {
        case .unix(let path, _, _): descriptor = connectUnix(path)
        case .tcp(let host, let port): descriptor = connectInternet(host, port)
        }
        guard descriptor >= 0 else {
            return .trouble("nothing listens there (\(String(cString: strerror(errno))))")
        }
        defer { close(descriptor) }
        // SMFIC_OPTNEG: length, 'O', version 6, actions, protocol steps.
        let packet: [UInt8] = [
            0, 0, 0, 13, 0x4F, 0, 0, 0, 6, 0, 0, 0x01, 0xFF, 0, 0x1F, 0xFF, 0xFF,
        ]
        guard send(descriptor, packet, packet.count, Int32(MSG_NOSIGNAL)) == packet.count else {
            return .trouble("the connection was lost")
        }
        var answer = [UInt8](repeating: 0, count: 5)
        var length = 0
        while length < answer.count {
            let count = answer.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress?.advanced(by: length), $0.count - length, 0)
            }
            guard count > 0 else {
                if isTimeOut(count) { return .silent }
                return .trouble(
                    length == 0
                        ? "something listens, but does not answer as a milter; Postern's milter answers only root and the users that milter.peers names"
                        : "the answer is truncated")
            }
            length += count
        }
        guard answer[4] == 0x4F else { return .trouble("the peer is not a milter") }
        let quit: [UInt8] = [0, 0, 0, 1, 0x51]
        _ = send(descriptor, quit, quit.count, Int32(MSG_NOSIGNAL))
        return .fine
    }

    /// Requests /readyz from the HTTP API. If it is encrypted, checks only whether a server
    /// listens.
    static func askHTTP(_ listen: ListenAddress, isEncrypted: Bool) -> LocalFacts.Answer {
        let host = ["0.0.0.0": "127.0.0.1", "::": "::1"][listen.host] ?? listen.host
        let descriptor = connectInternet(host, UInt16(clamping: listen.port))
        guard descriptor >= 0 else {
            return .trouble("nothing listens there (\(String(cString: strerror(errno))))")
        }
        defer { close(descriptor) }
        guard !isEncrypted else { return .fine }
        let request = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        guard
            send(descriptor, request, request.utf8.count, Int32(MSG_NOSIGNAL)) == request.utf8.count
        else {
            return .trouble("the connection was lost")
        }
        var answer = [UInt8](repeating: 0, count: 12)
        let count = recv(descriptor, &answer, answer.count, Int32(MSG_WAITALL))
        if isTimeOut(count) { return .silent }
        guard count == answer.count else {
            return .trouble("something listens, but does not answer as HTTP")
        }
        let status = String(decoding: answer.suffix(3), as: UTF8.self)
        return status == "200" ? .fine : .trouble("it answers /readyz with \(status)")
    }

    /// Finds the user that runs the smtpd for copies; nil if no server listens, which the check of
    /// Postfix reports.
    static func askCopies(_ smtpd: ListenAddress, _ peers: MilterPeers) -> LocalFacts.Answer? {
        let descriptor = connectInternet(smtpd.host, UInt16(clamping: smtpd.port))
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // Before the server sends its greeting, it may not have accepted the connection, which then
        // belongs to no process.
        var greeting: UInt8 = 0
        let count = recv(descriptor, &greeting, 1, 0)
        guard count == 1 else {
            if isTimeOut(count) { return .silent }
            return .trouble("something listens, but does not greet as a mail server")
        }
        if let objection = peers.objection(to: descriptor) { return .trouble(objection) }
        let quit = "QUIT\r\n"
        _ = send(descriptor, quit, quit.utf8.count, Int32(MSG_NOSIGNAL))
        return .fine
    }

    private static func isTimeOut(_ count: Int) -> Bool {
        count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
    }

    private static func open(_ family: Int32) -> Int32 {
        let descriptor = Glibc.socket(
            family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return -1 }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(
                descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        return descriptor
    }

    private static func connectUnix(_ path: String) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            errno = ENAMETOOLONG
            return -1
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = open(AF_UNIX)
        guard descriptor >= 0 else { return -1 }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        return kept(descriptor, result)
    }

    private static func connectInternet(_ host: String, _ port: UInt16) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0, let first = list else {
            errno = EADDRNOTAVAIL
            return -1
        }
        defer { freeaddrinfo(first) }
        let descriptor = open(first.pointee.ai_family)
        guard descriptor >= 0 else { return -1 }
        return kept(
            descriptor, connect(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen))
    }

    /// The descriptor if the connection succeeded. Otherwise closes it, and keeps the `errno` of
    /// the attempt.
    private static func kept(_ descriptor: Int32, _ result: Int32) -> Int32 {
        guard result != 0 else { return descriptor }
        let code = errno
        close(descriptor)
        errno = code
        return -1
    }
}
