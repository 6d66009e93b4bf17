// A private postsrsd next to the relay, set up as in docs/INTEGRATION.md.

import Foundation
import PostfixHarness
import RelayHarness

final class PostSRSd: RelayNeighbour {
    static let program = "/usr/sbin/postsrsd"

    private let folder: ProgramFolder
    private let ports: (forward: UInt16, reverse: UInt16)
    private let excludesRelayDomains: Bool
    private var process: NeighbourProgram?

    /// - Parameter excludesRelayDomains: whether it is set up correctly.
    init(excludesRelayDomains: Bool) throws {
        folder = try ProgramFolder()
        ports = (try FreePort.next(), try FreePort.next())
        self.excludesRelayDomains = excludesRelayDomains
    }

    let variables: [String: String] = [:]

    var log: String { process?.output ?? "postsrsd did not run" }

    func start(beside fixture: RelayFixture) throws {
        let secret = try folder.write("secret", "not a secret\n")
        // Like Debian's unit with this file, but without the chroot.
        let lines = try Recipe.text("/etc/default/postsrsd", [:]).split(separator: "\n").map {
            $0.split(separator: "=", maxSplits: 1)
        }
        let values = Dictionary(uniqueKeysWithValues: lines.map { (String($0[0]), String($0[1])) })
        let excluded = try excludesRelayDomains ? value("SRS_EXCLUDE_DOMAINS", values) : ""
        let process = try NeighbourProgram(
            Self.program,
            [
                "-f", "\(ports.forward)", "-r", "\(ports.reverse)", "-d",
                value("SRS_DOMAIN", values), "-s", secret, "-a", "=",
                "-n",
                "4", "-N", "4", "-u", "postsrsd", "-l", "127.0.0.1", "-X\(excluded)",
            ], in: folder)
        self.process = process
        for port in [ports.forward, ports.reverse] { try process.waitUntilServed(port) }
        try fixture.postfix.set(
            Recipe.postfix(
                "/etc/postfix/main.cf, with postsrsd", beside: fixture,
                ["10001": "\(ports.forward)", "10002": "\(ports.reverse)"]))
    }

    private func value(_ name: String, _ values: [String: String]) throws -> String {
        guard let value = values[name] else { throw HarnessError("the recipe sets no \(name)") }
        return value
    }

    func stop() { process?.stop() }
}
