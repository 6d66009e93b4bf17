// The users that may be at the other end of the filter's socket.

import Foundation
import Glibc
import TestSupport
import Testing

@testable import Milter

@Suite(.blocking) struct PeerGuardTests {
    private enum Kind: CaseIterable { case unix, ipv4, ipv6 }

    /// A listener, a connection to it from this process, and our end of the connection.
    private final class Pair {
        let socket: MilterSocket
        private let listener: Int32
        private var client: Int32
        private let server: Int32

        init(_ kind: Kind) throws {
            let family = [.unix: AF_UNIX, .ipv4: AF_INET, .ipv6: AF_INET6][kind] ?? AF_UNIX
            listener = Glibc.socket(family, Int32(SOCK_STREAM.rawValue), 0)
            var storage = sockaddr_storage()
            storage.ss_family = sa_family_t(family)
            let path = NSTemporaryDirectory() + "peer-" + UUID().uuidString.prefix(8)
            // The address begins after the family for a unix socket, after the port for IPv4, and
            // after port and flow for IPv6.
            withUnsafeMutableBytes(of: &storage) { bytes in
                switch kind {
                case .unix: bytes[2..<(2 + path.utf8.count)].copyBytes(from: path.utf8)
                case .ipv4: bytes[4..<8].copyBytes(from: [127, 0, 0, 1])
                case .ipv6: bytes[23] = 1
                }
            }
            let size = socklen_t(
                kind == .unix ? MemoryLayout<sockaddr_un>.size : kind == .ipv4 ? 16 : 28)
            let bound = withUnsafePointer(to: &storage) { [listener] in
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
            }
            try #require(bound == 0 && listen(listener, 4) == 0)
            let port = Address(of: listener, getsockname)?.port ?? 0
            socket =
                kind == .unix
                ? .unix(path: path) : .tcp(host: kind == .ipv4 ? "127.0.0.1" : "::1", port: port)
            client = try #require(socket.connected())
            server = accept(listener, nil, nil)
            try #require(server >= 0)
        }

        deinit {
            for descriptor in [listener, client, server] where descriptor >= 0 { close(descriptor) }
        }

        /// The client sends data and closes the connection.
        func hangUp() {
            var octet: UInt8 = 7
            _ = send(client, &octet, 1, Int32(MSG_NOSIGNAL))
            close(client)
            client = -1
        }

        /// Whether our end can still receive the data.
        var isHeard: Bool {
            var octet: UInt8 = 0
            return recv(server, &octet, 1, Int32(MSG_PEEK)) == 1
                && send(server, &octet, 1, Int32(MSG_NOSIGNAL)) == 1
        }

        /// Whether our end can still receive from the client.
        var isOpen: Bool {
            var octet: UInt8 = 7
            guard send(client, &octet, 1, Int32(MSG_NOSIGNAL)) == 1 else { return false }
            return recv(server, &octet, 1, 0) == 1
        }
    }

    @Test func peerGuard_allowedUser_keepsConnection() throws {
        for kind in Kind.allCases {
            let pair = try Pair(kind)
            let peers = PeerGuard(socket: pair.socket, allowed: [geteuid()])
            #expect(
                peers.endOtherPeers().isEmpty && pair.isOpen && peers.endOtherPeers().isEmpty
                    && pair.isOpen)
        }
    }

    /// Other local users must not be able to connect and act as Postfix.
    @Test func peerGuard_otherUser_endsConnection() throws {
        for kind in Kind.allCases {
            let pair = try Pair(kind)
            let peers = PeerGuard(socket: pair.socket, allowed: [geteuid() + 1])
            #expect(peers.endOtherPeers() == [geteuid()] && !pair.isOpen, "\(kind)")
        }
    }

    /// For a socket that its process has closed, the kernel reports root.
    @Test func peerGuard_peerHungUp_isNotTakenForRoot() throws {
        for kind in [Kind.ipv4, .ipv6] {
            let pair = try Pair(kind)
            pair.hangUp()
            let peers = PeerGuard(socket: pair.socket, allowed: [0])
            #expect(peers.endOtherPeers().count == 1 && !pair.isHeard, "\(kind)")
        }
    }

    @Test func peerGuard_otherSocket_isNotTouched() throws {
        let pairs = try Kind.allCases.map(Pair.init)
        for other in [MilterSocket.unix(path: "/run/other"), .tcp(host: "127.0.0.1", port: 1)] {
            let peers = PeerGuard(socket: other, allowed: [geteuid() + 1])
            #expect(peers.endOtherPeers().isEmpty && pairs.allSatisfy(\.isOpen))
        }
    }
}
