// Runs libmilter on its own thread: start, graceful stop, live counts.

import CMilter
import Concurrency
import Glibc

/// The reason why a server did not start.
package enum MilterServerError: Error, Hashable, CustomStringConvertible {
    /// libmilter serves one filter per process, once.
    case alreadyStarted
    /// The socket is in use: another instance is running.
    case socketInUse(String)
    /// The path is not a socket; the file is not changed.
    case notASocket(String)
    /// A unix socket path has at most 107 octets.
    case pathTooLong(String)
    case unknownGroup(String)
    /// A system call failed: its purpose, and errno.
    case socketFailed(String, Int32)
    /// libmilter would take the signals of the process (`libmilterSigwait`): the executable does
    /// not export its `sigwait`.
    case signalsNotKept
    /// A function of libmilter failed without a reason.
    case libmilter(String)

    package var description: String {
        switch self {
        case .alreadyStarted: "a milter was already started in this process; libmilter allows one"
        case .socketInUse(let socket):
            "another process is already listening on \(socket); stop it first"
        case .notASocket(let path):
            "\(path) exists and is not a socket; remove it or choose another path"
        case .pathTooLong(let path): "the socket path \(path) is longer than 107 octets"
        case .unknownGroup(let name): "the group \"\(name)\" for the milter socket does not exist"
        case .socketFailed(let what, let code): "\(what): \(String(cString: strerror(code)))"
        case .signalsNotKept:
            "this program was linked without exporting sigwait, so that two SIGHUPs in a row could end it"
        case .libmilter(let function): "\(function) failed"
        }
    }
}

/// The milter of this process. All methods may be called from any thread.
package final class MilterServer: Sendable {
    /// The address at which a server listens, and its timeouts.
    package struct Configuration: Sendable, Hashable {
        /// The filter's name in libmilter's own syslog lines.
        package var name: String
        package var socket: MilterSocket
        /// Seconds without traffic to or from the MTA before a session is dropped; this is
        /// libmilter's own default. Postfix sends header and body only when it has the complete
        /// message, so this must be long enough for a slow upload.
        package var idleTimeout: Int32
        /// Connections that may wait to be accepted. A unix socket refuses more connections at
        /// once, and Postfix defers that mail. So this is the kernel's maximum
        /// (net.core.somaxconn), as hundreds may arrive at the same moment.
        package var backlog: Int32
        /// The users of this machine who may connect, in addition to root and the user of this
        /// process; nil for everyone.
        package var peers: Set<uid_t>?

        package init(
            name: String, socket: MilterSocket, idleTimeout: Int32 = 7210, backlog: Int32 = 4_096,
            peers: Set<uid_t>? = nil
        ) {
            self.peers = peers
            self.name = name
            self.socket = socket
            self.idleTimeout = idleTimeout
            self.backlog = backlog
        }
    }

    private let configuration: Configuration
    private let installation: FilterInstallation

    package init(
        _ configuration: Configuration, handler: any MilterHandler,
        log: @escaping @Sendable (MilterDiagnostic) -> Void
    ) {
        self.configuration = configuration
        let peers = configuration.peers.map {
            PeerGuard(socket: configuration.socket, allowed: $0.union([0, geteuid()]))
        }
        installation = FilterInstallation(
            handler: handler, needs: handler.needs, log: log, peers: peers)
    }

    /// Claims the socket and starts to serve on a separate thread. When it
    /// returns, an MTA can connect.
    ///
    /// SIGHUP, which would otherwise end the process, is ignored from now on
    /// unless it has a handler.
    package func start() throws(MilterServerError) {
        let first = process.with { state in
            if state.installation != nil { return false }
            state.installation = installation
            return true
        }
        guard first else { throw .alreadyStarted }
        do {
            try prepare()
        } catch {
            // No thread runs yet, so another attempt may succeed.
            process.with { $0.installation = nil }
            throw error
        }
        installation.log(.listening(configuration.socket.description))
    }

    /// Sets for the whole process how the memory of sessions is freed. `start` does this too. If
    /// called before other threads begin, it also limits the heap that each of them would otherwise
    /// get.
    package static func returnMemory() { postern_return_memory() }

    /// A user of this machine by name or number; nil if there is none.
    package static func user(_ name: String) -> uid_t? {
        if let number = uid_t(name) { return number }
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 1 << 16)
        return getpwnam_r(name, &entry, &buffer, buffer.count, &found) == 0 && found != nil
            ? entry.pw_uid : nil
    }

    private func prepare() throws(MilterServerError) {
        guard keepsSignalsFromLibmilter() else { throw .signalsNotKept }
        Self.ignoreHangup()
        Self.returnMemory()
        guard smfi_settimeout(configuration.idleTimeout) == MI_SUCCESS else {
            throw .libmilter("smfi_settimeout")
        }
        guard smfi_setbacklog(configuration.backlog) == MI_SUCCESS else {
            throw .libmilter("smfi_setbacklog")
        }
        try register()
        let starter = Starter(socket: configuration.socket)
        let failure = SystemThread.detach { serve(starter) }
        guard failure == 0 else { throw .socketFailed("cannot start a thread", failure) }
        _ = starter.outcome.wait(atMost: nil) { $0 != nil }
        if case .failure(let error)? = starter.outcome.with({ $0 }) { throw error }
    }

    private func register() throws(MilterServerError) {
        var description = smfiDesc()
        description.xxfi_version = Int32(SMFI_VERSION)
        description.xxfi_flags = Negotiation(installation.needs).actions | UInt(SMFIF_SETSYMLIST)
        description.xxfi_connect = connectThunk
        description.xxfi_helo = heloThunk
        description.xxfi_envfrom = mailThunk
        description.xxfi_envrcpt = recipientThunk
        description.xxfi_header = headerThunk
        description.xxfi_eoh = endOfHeadersThunk
        description.xxfi_body = bodyThunk
        description.xxfi_eom = endOfMessageThunk
        description.xxfi_abort = abortThunk
        description.xxfi_close = closeThunk
        description.xxfi_unknown = unknownThunk
        description.xxfi_data = dataThunk
        description.xxfi_negotiate = negotiateThunk
        // libmilter copies the name.
        let status = configuration.name.withCString { name in
            description.xxfi_name = UnsafeMutablePointer(mutating: name)
            return smfi_register(description)
        }
        guard status == MI_SUCCESS else { throw .libmilter("smfi_register") }
    }

    /// Current SMTP connections with a session.
    package var liveSessions: Int { process.with { $0.sessions } }

    /// Current messages between MAIL and their end.
    package var openMessages: Int { process.with { $0.openMessages } }

    /// Stops gracefully and returns when everything has ended. Refuses new connections and
    /// messages; the client gets `421`, or the answer of `milter_default_action`, and keeps its
    /// mail. Waits at most `deadline` for the open messages, then ends.
    /// - Returns: the number of messages that were interrupted at the deadline; their clients keep
    ///   them too.
    @discardableResult
    package func stop(finishingWithin deadline: Duration) -> Int {
        let running = process.with { state in
            state.draining = true
            return state.installation != nil
        }
        guard running else { return 0 }
        _ = process.wait(atMost: deadline) { $0.openMessages == 0 || $0.finished != nil }
        let cutOff = process.with { $0.openMessages }
        let first = process.with { $0.finished == nil }
        if first { endMain() }
        if first {
            configuration.socket.remove()
            installation.log(.stopped(cutOff: cutOff))
        }
        return cutOff
    }

    /// Makes smfi_main return. smfi_stop sets a flag and then waits for a mutex, which the listener
    /// holds while it waits up to 5 s for a connection. So connections are opened until smfi_main
    /// has returned.
    private func endMain() {
        guard SystemThread.detach({ smfi_stop() }) == 0 else { return }
        for _ in 0..<120 {
            if let descriptor = configuration.socket.connected(), descriptor >= 0 {
                close(descriptor)
            }
            if process.wait(atMost: .milliseconds(50), until: { $0.finished != nil }) { return }
        }
    }

    /// Returns when libmilter has ended, by `stop` or by itself.
    package func waitUntilStopped() { _ = process.wait(atMost: nil) { $0.finished != nil } }

    /// Returns when libmilter has ended, by `stop` or by itself, without blocking a thread.
    package func stopped() async {
        await withCheckedContinuation { continuation in
            let over = process.with { state in
                if state.finished == nil { state.waiters.append(continuation) }
                return state.finished != nil
            }
            if over { continuation.resume() }
        }
    }

    private static func ignoreHangup() {
        var action = sigaction()
        sigaction(SIGHUP, nil, &action)
        // SIG_DFL is a null pointer.
        guard unsafeBitCast(action.__sigaction_handler, to: UInt.self) == 0 else { return }
        signal(SIGHUP, SIG_IGN)
    }
}

/// Input of the smfi_main thread, and its result once it listens or has failed.
private final class Starter: Sendable {
    let socket: MilterSocket
    let outcome = Monitor<Result<Void, MilterServerError>?>(nil)

    init(socket: MilterSocket) { self.socket = socket }
}

/// Runs on the smfi_main thread: claims the socket, then serves until libmilter ends.
private func serve(_ starter: Starter) {
    do {
        // The mode of the socket depends on the umask, which must not change for the rest of the
        // process.
        guard postern_own_umask() == 0 else {
            throw MilterServerError.socketFailed("unshare", errno)
        }
        try starter.socket.claim()
    } catch let error as MilterServerError {
        starter.outcome.with { $0 = .failure(error) }
        return
    } catch {
        starter.outcome.with { $0 = .failure(.libmilter("smfi_opensocket")) }
        return
    }
    starter.outcome.with { $0 = .success(()) }
    let result = smfi_main()
    let waiters = process.with { state in
        state.finished = result
        defer { state.waiters = [] }
        return state.waiters
    }
    for waiter in waiters { waiter.resume() }
}
