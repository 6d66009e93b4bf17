// postern keys: the keys of all three kinds in one list, and the next step of each.

import Foundation
import TestSupport
import Testing

@testable import postern

@Suite(.blocking) struct KeysCommandTests {
    private struct Key: Decodable {
        let kind: String
        let id: String
        let purpose: String?
        let domain: String?
        let algorithm: String?
        let state: String
        let since: String?
        let next: String
        let nextAt: String?

        /// The values that identify it.
        var name: String {
            [kind, purpose ?? domain ?? algorithm ?? "", id, state].joined(separator: " ")
        }

        enum CodingKeys: String, CodingKey {
            case kind, id, purpose, domain, algorithm, state, since, next
            case nextAt = "next_at"
        }
    }

    private func keys(_ runner: CommandRunner) throws -> [Key] {
        try JSONDecoder().decode([Key].self, from: Data(try runner.succeed("keys", "--json").utf8))
    }

    @Test func keys_newInstallation_areThoseOfTheFileAndOfDKIM() throws {
        let runner = try CommandRunner.initialised()
        let keys = try keys(runner)
        let selector = try #require(keys.first { $0.kind == "dkim" }?.id)
        #expect(
            keys.map(\.name) == [
                "file seal a active", "file index a active", "file token a active",
                "dkim old.example \(selector) active",
                "dkim relay.example \(selector) active",
            ])
        #expect(
            keys.map(\.next) == [
                "postern keys file rotate replaces it", "postern keys file rotate replaces it",
                "postern keys file rotate token replaces it",
                "postern keys dkim generate --domain old.example makes the next",
                "postern keys dkim generate --domain relay.example makes the next",
            ])
        #expect(
            keys.map { $0.since == nil } == [true, true, true, false, false]
                && keys.allSatisfy { $0.nextAt == nil })
        #expect(
            try runner.json("keys", "list") as? [NSDictionary] == runner.json("keys")
                as? [NSDictionary])
        let since = try #require(keys[3].since)
        let rows = try runner.succeed("keys").split(separator: "\n")
        #expect(rows[0] == "file\tseal a\tactive\t-\tpostern keys file rotate replaces it")
        #expect(rows[3].hasPrefix("dkim\t\(selector) old.example\tactive\t\(since)\t"))
    }

    @Test func keys_duringRotations_sayWhatComesNext() throws {
        let runner = try CommandRunner.initialised()
        let first = try #require(try keys(runner).first { $0.kind == "dkim" }?.id)
        try runner.succeed("keys", "file", "rotate")
        try runner.succeed("keys", "file", "rotate", "token")
        try runner.succeed("keys", "signing", "generate")
        try runner.succeed(
            "keys", "dkim", "generate", "--domain", "relay.example", "--selector", "two")
        func next(_ name: String) throws -> Key {
            try #require(try keys(runner).first { $0.name.hasPrefix(name) })
        }
        #expect(
            try next("file token a old").next
                == "it verifies until postern keys file retire token a")
        #expect(
            try next("file mark a active").next == "it stays: its values cannot be hashed again")
        #expect(try next("file seal b active").next == "postern keys file rotate replaces it")
        let pending =
            "publish its record, then postern keys dkim activate two --domain relay.example"
        #expect(try next("dkim relay.example two pending").next == pending)
        let early = try next("signing ES256")
        #expect(
            try keys(runner).filter { $0.kind == "signing" }.map(\.state).sorted() == [
                "active", "next",
            ])
        #expect(early.algorithm == "ES256")
        let unused = try #require(try keys(runner).first { $0.state == "next" })
        #expect(
            unused.next
                == "from \(unused.nextAt ?? "") on, postern keys signing rotate lets it sign")

        try runner.succeed(
            "keys", "dkim", "activate", "two", "--domain", "relay.example", "--force")
        try runner.succeed("keys", "signing", "rotate", "--early")
        let retiring = try next("dkim relay.example \(first) retiring")
        #expect(
            retiring.next == "keep its record until \(retiring.nextAt ?? ""), "
                + "then postern keys dkim retire \(first) --domain relay.example")
        let replaced = try #require(
            try keys(runner).first { $0.kind == "signing" && $0.state == "retiring" })
        #expect(replaced.next == "it is retired automatically at \(replaced.nextAt ?? "")")

        // Two weeks and a day later.
        let database = runner.folder.appendingPathComponent("data/postern.db").path
        for change in [
            "UPDATE dkim_keys SET deactivated_at = deactivated_at - 2000000",
            "UPDATE identity_keys SET created_at = created_at - 100000",
        ] {
            try #require(
                try ProgramRun([
                    "/usr/bin/python3", "-c",
                    "import sqlite3,sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])",
                    database, change,
                ]).status == 0)
        }
        let over =
            "postern keys dkim retire \(first) --domain relay.example, then remove its record"
        #expect(try next("dkim relay.example \(first) retiring").next == over)
        #expect(
            try keys(runner).first { $0.state == "next" }?.next
                == "postern keys signing rotate lets it sign")

        try runner.succeed("keys", "dkim", "retire", first, "--domain", "relay.example")
        try runner.succeed("keys", "signing", "retire", replaced.id, "--yes")
        #expect(try keys(runner).allSatisfy { $0.id != first || $0.domain != "relay.example" })
        #expect(try keys(runner).allSatisfy { $0.state != "retired" && $0.id != replaced.id })
    }

    /// The kinds are the subcommands.
    @Test func kinds_areTheSubcommands() {
        let names = KeysCommand.configuration.subcommands.map { $0._commandName }
        #expect(names == ["list"] + InstallationKey.Kind.allCases.map(\.rawValue))
    }
}
