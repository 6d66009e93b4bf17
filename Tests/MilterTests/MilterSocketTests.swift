// Socket names, header values in the protocol, and the limit of one server.

import Glibc
import Milter
import TestSupport
import Testing

@Suite(.blocking) struct MilterSocketTests {
    @Test func milterSocket_eitherSpelling_isRead() {
        for (text, socket) in [
            ("unix:/run/postern.sock", .unix(path: "/run/postern.sock")),
            ("local:/x", .unix(path: "/x")),
            ("/x", .unix(path: "/x")),
            ("inet:127.0.0.1:8891", .tcp(host: "127.0.0.1", port: 8891)),
            ("inet:8891@127.0.0.1", .tcp(host: "127.0.0.1", port: 8891)),
            ("inet6:8891@::1", .tcp(host: "::1", port: 8891)),
            ("inet:[::1]:8891", .tcp(host: "::1", port: 8891)),
        ] as [(String, MilterSocket)] {
            #expect(MilterSocket(text) == socket, "\(text)")
        }
        for text in [
            "", "unix:", "unix:x", "inet:", "inet:8891", "inet:a:b", "inet:a:0", "inet:a:65536",
            "inet:@1", "fifo:/x", ":",
        ] {
            #expect(MilterSocket(text) == nil, "\(text)")
        }
        #expect(MilterSocket.tcp(host: "::1", port: 1).postfixName == "inet:[::1]:1")
        #expect(MilterSocket.unix(path: "/x").postfixName == "unix:/x")
    }

    @Test func fieldValue_foldedLines_areConvertedBothWays() throws {
        for (value, wire) in [
            (" a", " a"), ("", " "), (" a\r\n\tb", " a\n\tb"), (" a\n b\r\n  c", " a\n b\n  c"),
            ("\t", "\t"),
        ] {
            let out = try MilterWire.outgoing(fieldValue: Array(value.utf8)[...])
            #expect(out == Array(wire.utf8))
        }
        let received = Array(" a\n\tb\r\n c".utf8).withUnsafeBytes {
            MilterWire.incoming(fieldValue: $0)
        }
        #expect(received == Array(" a\r\n\tb\r\n c".utf8))
    }
}

private struct IdleHandler: MilterHandler {
    let needs = MilterNeeds(events: [], answers: [], actions: [])
    func makeSession(connection: MilterConnection) -> any MilterSession { IdleSession() }
}

private final class IdleSession: MilterSession {
    func endOfMessage(_ actions: any MilterActions) -> MilterReply { .accept }
}

/// libmilter's state belongs to the process, so everything about it is one test.
@Suite(.blocking) struct MilterServerTests {
    @Test func milterServer_startedTwice_isRefused() async throws {
        let folder = "/tmp/postern-milter-\(getpid())"
        mkdir(folder, 0o755)
        defer { rmdir(folder) }
        func server(_ socket: MilterSocket) -> MilterServer {
            MilterServer(.init(name: "postern-tests", socket: socket), handler: IdleHandler()) {
                _ in
            }
        }
        // A server that cannot start does not prevent another start.
        let long = MilterSocket.unix(path: "/" + String(repeating: "x", count: 200))
        #expect(throws: MilterServerError.self) { try server(long).start() }
        #expect(throws: MilterServerError.unknownGroup("no-such-group-here")) {
            try server(.unix(path: folder + "/s", group: "no-such-group-here")).start()
        }
        #expect(throws: MilterServerError.self) {
            try server(.unix(path: folder + "/missing/s")).start()
        }
        let path = folder + "/s"
        let first = server(.unix(path: path, mode: 0o660))
        try first.start()
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o7777 == 0o660)
        #expect(throws: MilterServerError.alreadyStarted) {
            try server(.unix(path: folder + "/t")).start()
        }
        #expect(first.liveSessions == 0 && first.openMessages == 0)
        #expect(first.stop(finishingWithin: .seconds(1)) == 0)
        await first.stopped()
        first.waitUntilStopped()
        #expect(access(path, F_OK) != 0)
        #expect(first.stop(finishingWithin: .seconds(1)) == 0)
        #expect(throws: MilterServerError.alreadyStarted) { try first.start() }
    }
}
