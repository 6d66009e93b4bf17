// Checks the peer of each connection to the filter's socket. On this machine only Postfix, root and
// this process's user may connect. libmilter accepts connections by itself and exposes no
// descriptor, so PeerGuard searches all descriptors of the process for connections.

import CMilter  // Declares SOCK_RAW and SOCK_CLOEXEC in release builds; Glibc alone does not.
import Glibc
import Synchronization

/// Ends connections of other users. A program that acts as Postfix can name any client, and learn
/// from the answer where mail goes. Thread-safe.
final class PeerGuard: Sendable {
    private let socket: MilterSocket
    private let allowed: Set<uid_t>
    /// Connections that were already checked, by the inode of our end.
    private let known = Mutex<Set<UInt>>([])

    /// - Parameter allowed: the users who may connect.
    init(socket: MilterSocket, allowed: Set<uid_t>) {
        self.socket = socket
        self.allowed = allowed
    }

    /// Ends every connection of a user who is not allowed. Called in each negotiation, before any
    /// other data is exchanged. The kernel does not report the user if the other end is on another
    /// machine or in another network name space. The connection is then allowed, since its address
    /// is.
    /// - Returns: the users of the ended connections.
    func endOtherPeers() -> [uid_t] {
        let before = known.withLock { $0 }
        var seen: Set<UInt> = []
        var others: [uid_t] = []
        for descriptor in Self.descriptors() {
            var status = stat()
            guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
                continue
            }
            let inode = UInt(status.st_ino)
            guard !before.contains(inode) else {
                seen.insert(inode)
                continue
            }
            guard isConnection(descriptor) else { continue }
            if let user = user(at: descriptor), !allowed.contains(user) {
                // Another thread may have closed it in the time between, and the number may have
                // been reused.
                guard fstat(descriptor, &status) == 0, UInt(status.st_ino) == inode else {
                    continue
                }
                shutdown(descriptor, Int32(SHUT_RDWR))
                others.append(user)
            } else {
                seen.insert(inode)
            }
        }
        // A connection that another thread checked at the same time is checked again.
        known.withLock { $0 = seen }
        return others
    }

    private static func descriptors() -> [Int32] {
        guard let folder = opendir("/proc/self/fd") else { return [] }
        defer { closedir(folder) }
        var found: [Int32] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if let descriptor = Int32(name), descriptor != dirfd(folder) {
                found.append(descriptor)
            }
        }
        return found
    }

    /// Whether a descriptor is a connection accepted on the filter's socket.
    private func isConnection(_ descriptor: Int32) -> Bool {
        var listens: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0, listens == 0
        else { return false }
        let own = Address(of: descriptor, getsockname)
        return switch socket {
        case .unix(let path, _, _): own?.path == path
        case .tcp(_, let port): own?.port == port
        }
    }

    /// The user at the other end; nil if the kernel does not report it.
    private func user(at descriptor: Int32) -> uid_t? {
        guard case .tcp = socket else {
            // struct ucred: process, user and group.
            var credentials: [UInt32] = [0, 0, 0]
            var size = socklen_t(12)
            return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0
                && size == 12 ? credentials[1] : nil
        }
        return SocketDiagnosis.user(atOtherEndOf: descriptor)
    }
}

/// A socket address, with only the data needed here.
struct Address {
    let family: sa_family_t
    /// Of a unix socket; empty for one without a name.
    var path = ""
    /// In host order.
    var port: UInt16 = 0
    /// 4 or 16 octets.
    var octets: [UInt8] = []

    init?(
        of descriptor: Int32,
        _ ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask(descriptor, $0, &size) }
        }
        guard result == 0 else { return nil }
        family = storage.ss_family
        let bytes = withUnsafeBytes(of: &storage) { Array($0.prefix(Int(size))) }
        switch Int32(family) {
        case AF_UNIX: path = String(decoding: bytes.dropFirst(2).prefix { $0 != 0 }, as: UTF8.self)
        case AF_INET where bytes.count >= 8:
            (port, octets) = (UInt16(bytes[2]) << 8 | UInt16(bytes[3]), Array(bytes[4..<8]))
        case AF_INET6 where bytes.count >= 24:
            (port, octets) = (UInt16(bytes[2]) << 8 | UInt16(bytes[3]), Array(bytes[8..<24]))
        default: return nil
        }
    }
}

/// Queries the kernel about other sockets of this machine (sock_diag(7)): one socket per query, so
/// the cost does not depend on their number.
package enum SocketDiagnosis {
    private static let netlinkSocketDiagnosis: Int32 = 4  // NETLINK_SOCK_DIAG
    private static let byFamily: UInt16 = 20  // SOCK_DIAG_BY_FAMILY
    /// Offset of idiag_uid in the answer: after the header of 16 octets, 4 of states, 48 of
    /// addresses and 3 numbers.
    private static let userOffset = 80
    /// The offset of idiag_state, and TCP_ESTABLISHED.
    private static let (stateOffset, established) = (17, UInt8(1))
    /// The result for a socket that its process has already closed. The kernel then reports 0,
    /// which is not its user.
    package static let gone = uid_t.max

    /// The user at the other end of a TCP connection. Nil if that end is not on this machine and in
    /// this network name space, or if the kernel does not report it. A socket that its process has
    /// not accepted yet counts as root's, so call this after the other end has sent data.
    package static func user(atOtherEndOf descriptor: Int32) -> uid_t? {
        guard let own = Address(of: descriptor, getsockname),
            let other = Address(of: descriptor, getpeername)
        else { return nil }
        return user(of: other, connectedTo: own)
    }

    /// Whether a connection leads only to this machine.
    package static func isLoopback(_ descriptor: Int32) -> Bool {
        guard let other = Address(of: descriptor, getpeername) else { return false }
        // ::1, and 127.0.0.0/8 under ::ffff:0:0/96.
        let octets =
            other.octets.count == 16
                && other.octets.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
            ? Array(other.octets[12...]) : other.octets
        return octets.count == 4
            ? octets[0] == 127 : octets.last == 1 && octets.dropLast().allSatisfy { $0 == 0 }
    }

    /// The user of a TCP socket by its address and its peer's. Nil if it is not on this machine, or
    /// if the kernel does not report it.
    static func user(of address: Address, connectedTo other: Address) -> uid_t? {
        guard address.octets.count == other.octets.count, !address.octets.isEmpty else {
            return nil
        }
        let descriptor = Glibc.socket(
            AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), netlinkSocketDiagnosis)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // The kernel answers at once, but nothing here may wait forever.
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let question = question(address, other)
        guard send(descriptor, question, question.count, 0) == question.count else { return nil }
        var answer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &answer, answer.count, 0)
        guard count >= userOffset + 4 else { return nil }
        return answer.withUnsafeBytes { bytes in
            guard bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self) == byFamily else {
                return nil
            }
            return bytes[stateOffset] == established
                ? bytes.loadUnaligned(fromByteOffset: userOffset, as: uid_t.self) : gone
        }
    }

    /// struct nlmsghdr and struct inet_diag_req_v2 with the addresses of one socket.
    private static func question(_ address: Address, _ other: Address) -> [UInt8] {
        var octets: [UInt8] = []
        func add(_ value: some FixedWidthInteger) { withUnsafeBytes(of: value) { octets += $0 } }
        // Length, kind, NLM_F_REQUEST, sequence and port.
        add(UInt32(72))
        add(byFamily)
        add(UInt16(1))
        add(UInt32(1))
        add(UInt32(0))
        octets += [UInt8(truncatingIfNeeded: address.family), 6, 0, 0]  // IPPROTO_TCP
        add(UInt32.max)  // in any state
        add(address.port.bigEndian)
        add(other.port.bigEndian)
        for side in [address, other] {
            octets += side.octets + Array(repeating: 0, count: 16 - side.octets.count)
        }
        // No interface, and no cookie.
        add(UInt32(0))
        add(UInt32.max)
        add(UInt32.max)
        return octets
    }
}
