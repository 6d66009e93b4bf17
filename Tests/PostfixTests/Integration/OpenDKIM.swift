// A private opendkim next to the relay, set up as in docs/INTEGRATION.md.

import Foundation
import PostfixHarness
import RelayHarness

final class OpenDKIM: RelayNeighbour {
    static let program = "/usr/sbin/opendkim"
    static let isThere = FileManager.default.isExecutableFile(atPath: program)

    private let folder: ProgramFolder
    private let port: UInt16
    private let key: OperatorKey
    private var process: NeighbourProgram?

    init() throws {
        folder = try ProgramFolder()
        port = try FreePort.next()
        key = try OperatorKey(file: "\(folder.path)/operator.example.private")
    }

    /// `{opendkim}`: its socket. `{operator-key}`, `{sender-key}`: DKIM records.
    var variables: [String: String] {
        [
            "opendkim": "inet:127.0.0.1:\(port)", "operator-key": key.record,
            "sender-key": SenderKey.record,
        ]
    }

    var log: String { process?.output ?? "opendkim did not run" }

    func start(beside fixture: RelayFixture) throws {
        let paths = ["/etc/dkimkeys": folder.path]
        try folder.write("keytable", Recipe.text("/etc/dkimkeys/keytable", paths))
        try folder.write("signingtable", Recipe.text("/etc/dkimkeys/signingtable", [:]))
        // Keys published in a test are not queried from a name server, and every user may write
        // next to its folder.
        let keys = try folder.write(
            "keys",
            """
            mail._domainkey.operator.example \(key.record)
            t1._domainkey.juice.example \(SenderKey.record)
            t1._domainkey.esp.example \(SenderKey.record)

            """)
        let configuration = try Recipe.text(
            "/etc/opendkim.conf", paths.merging(["8894": "\(port)"]) { $1 })
        let file = try folder.write(
            "opendkim.conf", configuration + "TestPublicKeys \(keys)\nRequireSafeKeys no\n")
        try folder.give(to: "opendkim")
        let process = try NeighbourProgram(Self.program, ["-f", "-x", file], in: folder)
        self.process = process
        try process.waitUntilServed(port)
        try fixture.postfix.set(
            Recipe.postfix(
                "/etc/postfix/main.cf, with opendkim", beside: fixture, ["8894": "\(port)"]))
    }

    func stop() { process?.stop() }
}
