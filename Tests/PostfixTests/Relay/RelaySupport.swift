// Shared by the tests of the whole relay on a real Postfix.

import Foundation
import PostfixHarness
import PostgresHarness
import RelayHarness
import Testing

/// The database engine of a relay under test.
enum RelayEngine: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case sqlite, postgresql

    var testDescription: String { rawValue }

    /// Includes PostgreSQL if it is installed.
    static let all: [RelayEngine] = PostgresServer.installed == nil ? [.sqlite] : allCases

    /// An empty database; nil for a file of the fixture's own.
    func database() throws -> String? {
        guard self == .postgresql else { return nil }
        return try PostgresServer.shared?.url(
            schema: "r\(UUID().uuidString.prefix(8).lowercased())")
    }
}

/// The DNS of a small test world in which every host sends from loopback.
enum RelayFixtures {
    static let team = "juice.example"
    static let home = "home.example"

    static func options(
        _ change: (inout RelayFixture.Options) -> Void = { _ in }
    ) -> RelayFixture.Options {
        var options = RelayFixture.Options()
        options.zone = """
            {"juice.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]}, "home.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]},
             "shop.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]}, "app.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]}}
            """
        change(&options)
        return options
    }

    /// A relay with team juice and user anna, and her relay address.
    static func anna(
        _ options: RelayFixture.Options = options()
    ) throws -> (fixture: RelayFixture, address: String) {
        let fixture = try RelayFixture(options)
        try fixture.addTeam("juice", name: "The Juice Company", source: team)
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        return (fixture, try fixture.address("juice", "anna"))
    }

    static func message(
        from sender: String = "news@juice.example", to address: String,
        id: String = "1@juice.example", body: String = "Hello\n"
    ) -> String {
        "From: \(sender)\nTo: \(address)\nSubject: Test\nMessage-ID: <\(id)>\n\n\(body)"
    }
}

extension RelayFixture {
    /// The port of the HTTP API of the running service.
    func httpPort() throws -> UInt16 {
        let line = try process.waitForLine(containing: "listening for HTTP")
        return try #require(
            line.firstMatch(of: /address=[^ ]*:([0-9]+)/).flatMap { UInt16($0.output.1) })
    }
}

extension SinkMessage {
    /// The value of the first field of this name, unfolded.
    func value(_ name: String) -> String? {
        fields.first { $0.lowercased().hasPrefix(name.lowercased() + ":") }.map {
            $0.dropFirst(name.count + 1).replacingOccurrences(of: "\r\n", with: "")
                .trimmingCharacters(in: .whitespaces)
        }
    }

    /// The address between the last angle brackets of a field, or its whole value.
    func address(_ name: String) -> String {
        let value = value(name) ?? ""
        guard let open = value.lastIndex(of: "<"), let close = value.lastIndex(of: ">"),
            open < close
        else { return value }
        return String(value[value.index(after: open)..<close])
    }
}

/// `../shared/tools/leakcheck.py`, if it exists.
enum LeakOracle {
    static let path: String? = {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
        let path = root.deletingLastPathComponent().appendingPathComponent(
            "shared/tools/leakcheck.py"
        ).path
        return FileManager.default.fileExists(atPath: path) ? path : nil
    }()

    /// Its findings for an address in a message; empty if it finds nothing or does not exist.
    static func findings(of address: String, in message: SinkMessage) throws -> String {
        guard let path else {
            print("leakcheck.py is not there: that half of the test was skipped")
            return ""
        }
        let file = NSTemporaryDirectory() + "postern-leak-" + UUID().uuidString
        try Data(message.data).write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        return try ManagedProcess.run("/usr/bin/env", ["python3", path, address, file]).output
    }
}

extension Browser {
    /// For suites that need a browser.
    static let isThere: any SuiteTrait & TestTrait = .enabled(
        if: driver != nil, "skipped: no chromium-driver (make test-tools installs it)")
}
