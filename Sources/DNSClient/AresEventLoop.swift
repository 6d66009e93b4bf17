// The thread that owns a c-ares channel. Only this file calls ares_* functions on the channel.

import CAres
import Glibc
import Synchronization

/// Sends queries and reports the results. Callers never wait here: a completion on the loop's
/// thread notifies them.
final class AresEventLoop: @unchecked Sendable {
    /// The result of one query.
    enum Outcome: Sendable {
        /// A message that c-ares matched to the query by its id and question section.
        case message([UInt8])
        /// No server gave a usable answer.
        case failure(String)
    }

    typealias Completion = @Sendable (Outcome) -> Void

    private struct Submission: Sendable {
        /// A query with an OPT record; `send` fills in the id.
        let packet: [UInt8]
        let completion: Completion
    }

    private struct Inbox: Sendable {
        var submissions: [Submission] = []
        var isClosing = false
    }

    /// A query in flight; c-ares holds a pointer to it.
    private final class Pending {
        let loop: AresEventLoop
        let id: UInt16
        let completion: Completion

        init(loop: AresEventLoop, id: UInt16, completion: @escaping Completion) {
            self.loop = loop
            self.id = id
            self.completion = completion
        }
    }

    private let inbox = Mutex(Inbox())
    /// An eventfd that wakes the thread. Closed after the thread has ended.
    private let wakeup: Int32
    private let maximumInFlight: Int
    private let thread = Mutex<pthread_t?>(nil)

    // The members below belong to the thread once it runs.
    private var channel: ares_channel?
    private var sockets: [ares_socket_t: Int16] = [:]
    private var ids: Set<UInt16> = []

    /// Runs once for the process, before any thread sends a query.
    private static let library: Int32 = ares_library_init(ARES_LIB_INIT_ALL)

    /// Opens a channel and starts its thread. Throws if the system or c-ares refuses.
    init(settings: DNSClientSettings) throws(DNSClientError) {
        maximumInFlight = min(settings.maximumInFlight, 32_768)
        guard Self.library == 0 else {
            throw DNSClientError(description: "c-ares: \(Self.text(Self.library))")
        }
        wakeup = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        guard wakeup >= 0 else {
            throw DNSClientError(description: "eventfd: \(String(cString: strerror(errno)))")
        }
        do throws(DNSClientError) {
            try open(settings)
            try start()
        } catch {
            if let channel { ares_destroy(channel) }
            Glibc.close(wakeup)
            throw error
        }
    }

    private func open(_ settings: DNSClientSettings) throws(DNSClientError) {
        var options = ares_options()
        options.flags = ARES_FLAG_EDNS
        options.ednspsz = settings.udpPayload
        options.timeout = settings.tryMilliseconds
        options.tries = settings.tries
        options.sock_state_cb = { data, socket, readable, writable in
            guard let data else { return }
            let loop = Unmanaged<AresEventLoop>.fromOpaque(data).takeUnretainedValue()
            let events = (readable != 0 ? POLLIN : 0) | (writable != 0 ? POLLOUT : 0)
            loop.sockets[socket] = events == 0 ? nil : Int16(events)
        }
        options.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
        let mask =
            ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES
            | ARES_OPT_SOCK_STATE_CB
        var opened: ares_channel?
        let status = ares_init_options(&opened, &options, mask)
        guard status == 0, let opened else {
            throw DNSClientError(description: "c-ares: \(Self.text(status))")
        }
        channel = opened
        guard !settings.servers.isEmpty else { return }
        let list = settings.servers.map(\.description).joined(separator: ",")
        let result = ares_set_servers_ports_csv(opened, list)
        guard result == 0 else {
            throw DNSClientError(
                description: "c-ares does not accept the servers: \(Self.text(result))")
        }
    }

    private func start() throws(DNSClientError) {
        // The thread keeps the loop alive until `close`.
        let context = Unmanaged.passRetained(self).toOpaque()
        var created = pthread_t()
        let status = pthread_create(
            &created, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<AresEventLoop>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context)
        guard status == 0 else {
            Unmanaged<AresEventLoop>.fromOpaque(context).release()
            throw DNSClientError(description: "no thread: \(String(cString: strerror(status)))")
        }
        thread.withLock { $0 = created }
    }

    /// Sends a query. The completion is called once: on the loop's thread, or at once if the loop
    /// is closed.
    func submit(_ packet: [UInt8], completion: @escaping Completion) {
        let isOpen = inbox.withLock { inbox in
            guard !inbox.isClosing else { return false }
            inbox.submissions.append(Submission(packet: packet, completion: completion))
            // Under the lock, as the eventfd may be closed once the loop is closing.
            wake()
            return true
        }
        guard isOpen else { return completion(.failure("the DNS client is closed")) }
    }

    /// Ends the thread, and every query in flight fails. Returns when the thread has ended. A
    /// second call does nothing.
    func close() {
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        guard let running else { return }
        inbox.withLock { $0.isClosing = true }
        wake()
        pthread_join(running, nil)
        Glibc.close(wakeup)
    }

    private func wake() {
        var one: UInt64 = 1
        _ = write(wakeup, &one, 8)
    }

    // MARK: On the thread

    private func run() {
        // Signals are for other threads, and SIGPIPE from a TCP connection that the server closed
        // must not end the process.
        var signals = sigset_t()
        sigfillset(&signals)
        pthread_sigmask(SIG_SETMASK, &signals, nil)
        guard let channel else { return }
        while take(channel) { wait(channel) }
        ares_destroy(channel)
        self.channel = nil
        for submission in inbox.withLock({ $0.submissions }) {
            submission.completion(.failure("the DNS client is closed"))
        }
        inbox.withLock { $0.submissions = [] }
    }

    /// Hands waiting submissions to c-ares; false if the loop must end.
    private func take(_ channel: ares_channel) -> Bool {
        let (submissions, isClosing) = inbox.withLock { inbox in
            defer { if !inbox.isClosing { inbox.submissions = [] } }
            return (inbox.submissions, inbox.isClosing)
        }
        guard !isClosing else { return false }
        for submission in submissions { send(submission, channel) }
        return true
    }

    private func send(_ submission: Submission, _ channel: ares_channel) {
        guard ids.count < maximumInFlight else {
            return submission.completion(.failure("too many queries in flight"))
        }
        var id = UInt16.random(in: 0...UInt16.max)
        while !ids.insert(id).inserted { id = UInt16.random(in: 0...UInt16.max) }
        var packet = submission.packet
        guard packet.count >= DNSMessage.headerLength else {
            return submission.completion(.failure("no question"))
        }
        packet[0] = UInt8(id >> 8)
        packet[1] = UInt8(id & 0xFF)
        let pending = Unmanaged.passRetained(
            Pending(loop: self, id: id, completion: submission.completion))
        ares_send(
            channel, packet, Int32(packet.count),
            { argument, status, _, answer, length in
                guard let argument else { return }
                let pending = Unmanaged<Pending>.fromOpaque(argument).takeRetainedValue()
                pending.loop.ids.remove(pending.id)
                if status == ARES_SUCCESS, let answer, length > 0 {
                    pending.completion(
                        .message(Array(UnsafeBufferPointer(start: answer, count: Int(length)))))
                } else {
                    pending.completion(.failure(AresEventLoop.text(status)))
                }
            }, pending.toOpaque())
    }

    /// Sleeps until a socket is ready, a timeout is due, or another thread wakes the loop. Then
    /// runs c-ares.
    private func wait(_ channel: ares_channel) {
        var descriptors = [pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)]
        for (socket, events) in sockets {
            descriptors.append(pollfd(fd: socket, events: events, revents: 0))
        }
        var next = timeval()
        var milliseconds: Int32 = -1
        if ares_timeout(channel, nil, &next) != nil {
            // Rounded up, so that the thread does not spin through the last millisecond.
            milliseconds = Int32(clamping: next.tv_sec * 1000 + (next.tv_usec + 999) / 1000)
        }
        let ready = poll(&descriptors, nfds_t(descriptors.count), milliseconds)
        let bad = ares_socket_t(-1)
        if ready > 0 {
            if descriptors[0].revents != 0 {
                var count: UInt64 = 0
                _ = read(wakeup, &count, 8)
            }
            for descriptor in descriptors.dropFirst() where descriptor.revents != 0 {
                let events = Int32(descriptor.revents)
                let reads = events & (POLLIN | POLLHUP | POLLERR) != 0
                ares_process_fd(
                    channel, reads ? descriptor.fd : bad,
                    events & POLLOUT != 0 ? descriptor.fd : bad)
            }
        }
        ares_process_fd(channel, bad, bad)
    }

    private static func text(_ status: Int32) -> String {
        status == ARES_ETIMEOUT ? "no answer in time" : String(cString: ares_strerror(status))
    }
}
