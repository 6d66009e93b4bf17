// The socket on which the filter accepts the MTA's connections, and its permissions.

import CMilter
import Glibc

/// The address at which a filter listens.
package enum MilterSocket: Sendable, Hashable, CustomStringConvertible {
    /// A unix socket. `mode`: permission bits, which must allow the MTA's user to read and write.
    /// `group`: name of the owning group, or nil to keep the process's own.
    case unix(path: String, mode: UInt16 = 0o660, group: String? = nil)
    /// A TCP port. `host`: an IPv4 or IPv6 address, or a name.
    case tcp(host: String, port: UInt16)

    /// Reads `unix:/path`, `local:/path`, `/path`, and TCP in the form of Postfix
    /// (`inet:host:port`) or of libmilter (`inet:port@host`, `inet6:port@host`). Nil for anything
    /// else.
    package init?(_ text: String) {
        let (kind, rest): (Substring, Substring)
        if text.hasPrefix("/") {
            (kind, rest) = ("unix", text[...])
        } else {
            guard let colon = text.firstIndex(of: ":") else { return nil }
            (kind, rest) = (text[..<colon], text[text.index(after: colon)...])
        }
        switch kind {
        case "unix", "local":
            guard rest.hasPrefix("/") else { return nil }
            self = .unix(path: String(rest))
        case "inet", "inet6":
            let host: Substring
            let number: Substring
            if let at = rest.firstIndex(of: "@") {
                (number, host) = (rest[..<at], rest[rest.index(after: at)...])
            } else {
                guard let colon = rest.lastIndex(of: ":") else { return nil }
                (host, number) = (rest[..<colon], rest[rest.index(after: colon)...])
            }
            let bare =
                host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host
            guard !bare.isEmpty, let port = UInt16(number), port > 0 else { return nil }
            self = .tcp(host: String(bare), port: port)
        default: return nil
        }
    }

    /// The form for Postfix's `smtpd_milters`.
    package var postfixName: String {
        switch self {
        case .unix(let path, _, _): "unix:\(path)"
        case .tcp(let host, let port):
            host.contains(":") ? "inet:[\(host)]:\(port)" : "inet:\(host):\(port)"
        }
    }

    package var description: String { postfixName }

    /// The form for `smfi_setconn`.
    var libmilterName: String {
        switch self {
        case .unix(let path, _, _): "unix:\(path)"
        case .tcp(let host, let port):
            host.contains(":") ? "inet6:\(port)@\(host)" : "inet:\(port)@\(host)"
        }
    }

    /// Claims the socket for this process. Refuses one that answers, and removes one that no
    /// process serves. Then listens, and sets mode and group. Must run on a thread with a separate
    /// umask.
    func claim() throws(MilterServerError) {
        guard case .unix(let path, let mode, let group) = self else {
            if isAlive() { throw .socketInUse(description) }
            return try open()
        }
        guard path.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else {
            throw .pathTooLong(path)
        }
        let groupID = try group.map { name throws(MilterServerError) in try Self.groupID(name) }
        // Two instances that start at the same time must not both find the old socket unused, so
        // its directory is locked.
        let directory =
            path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let lock = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard lock >= 0 else {
            throw .socketFailed("cannot open the directory \(directory)", errno)
        }
        defer { close(lock) }
        flock(lock, LOCK_EX)
        var status = stat()
        if lstat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path) }
            if isAlive() { throw .socketInUse(description) }
            guard unlink(path) == 0 else {
                throw .socketFailed("cannot remove the stale socket \(path)", errno)
            }
        }
        // No process may connect before mode and group are right.
        let mask = umask(0o177)
        defer { umask(mask) }
        try open()
        if let groupID, chown(path, uid_t.max, groupID) != 0 {
            throw .socketFailed("cannot give \(path) to its group", errno)
        }
        guard chmod(path, mode_t(mode)) == 0 else {
            throw .socketFailed("cannot set the mode of \(path)", errno)
        }
    }

    /// Removes a unix socket that this process made.
    func remove() {
        if case .unix(let path, _, _) = self { unlink(path) }
    }

    private func open() throws(MilterServerError) {
        let status = libmilterName.withCString { smfi_setconn(UnsafeMutablePointer(mutating: $0)) }
        guard status == MI_SUCCESS else { throw .libmilter("smfi_setconn") }
        errno = 0
        guard postern_opensocket() == MI_SUCCESS else {
            throw .socketFailed("cannot listen on \(description)", errno == 0 ? EADDRINUSE : errno)
        }
    }

    private static func groupID(_ name: String) throws(MilterServerError) -> gid_t {
        var entry = group()
        var found: UnsafeMutablePointer<group>?
        var buffer = [CChar](repeating: 0, count: 1 << 16)
        guard getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else {
            throw .unknownGroup(name)
        }
        return entry.gr_gid
    }

    /// Whether a process answers at this socket.
    private func isAlive() -> Bool {
        guard let descriptor = connected() else { return false }
        if descriptor >= 0 { close(descriptor) }
        return true
    }

    /// A connection to the process that answers there; -1 if its queue is full; nil if no process
    /// answers.
    func connected() -> Int32? {
        switch self {
        case .unix(let path, _, _):
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let capacity = MemoryLayout.size(ofValue: address.sun_path)
            guard path.utf8.count < capacity else { return nil }
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            let size = socklen_t(MemoryLayout<sockaddr_un>.size)
            return withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Self.connects(AF_UNIX, $0, size)
                }
            }
        case .tcp(let host, let port):
            var hints = addrinfo()
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            var list: UnsafeMutablePointer<addrinfo>?
            guard getaddrinfo(host, String(port), &hints, &list) == 0 else { return nil }
            defer { freeaddrinfo(list) }
            var entry = list
            while let info = entry?.pointee {
                if let address = info.ai_addr,
                    let found = Self.connects(info.ai_family, address, info.ai_addrlen)
                {
                    return found
                }
                entry = info.ai_next
            }
            return nil
        }
    }

    private static func connects(
        _ family: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t
    ) -> Int32? {
        let descriptor = socket(
            family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        if connect(descriptor, address, size) == 0 { return descriptor }
        let reason = errno
        var alive: Int32?
        if reason == EAGAIN {
            // A unix socket with a full queue.
            alive = -1
        } else if reason == EINPROGRESS {
            // A TCP connection that is neither accepted nor refused at once gets one second.
            var poller = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            var failure: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            if poll(&poller, 1, 1000) == 1,
                getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &length) == 0, failure == 0
            {
                return descriptor
            }
        }
        close(descriptor)
        return alive
    }
}
