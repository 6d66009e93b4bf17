// postern init, and the parts that an installation needs to be opened.

import Database
import Foundation
import PosternConfiguration
import TestSupport
import Testing

@Suite(.blocking) struct InitCommandTests {
    private func mode(_ url: URL) throws -> Int? {
        (try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? NSNumber)?
            .intValue
    }

    @Test func init_newFolder_isReadableByOwnerOnly() throws {
        let runner = try CommandRunner.initialised()
        let data = runner.folder.appendingPathComponent("data")
        #expect(try mode(data) == 0o700)
        for name in ["postern.yaml", "postern.keys", "postern.db"] {
            #expect(try mode(data.appendingPathComponent(name)) == 0o600, "\(name)")
        }
        #expect(try runner.succeed("team", "list").isEmpty)
        let text = try String(contentsOfFile: runner.configuration, encoding: .utf8)
        #expect(text.contains(#"relay_domains: ["relay.example", "old.example"]"#))
    }

    @Test func configKeys_withoutInstallation_printsEveryKey() throws {
        let runner = try CommandRunner()
        let lines = try runner.succeed("config", "keys").split(separator: "\n")
        #expect(
            lines.map { $0.prefix { $0 != "\t" } }
                == ConfigurationKey.allCases.map { $0.rawValue[...] })
        let rows = try #require(try runner.json("config", "keys") as? [String: [String: Any]])
        #expect(rows.count == lines.count)
        #expect(
            rows["limits.hops"]?["standard"] as? String
                == ConfigurationKey.limitsHops.facts.standardText)
    }

    @Test func init_setOption_isWrittenToTheFile() throws {
        let runner = try CommandRunner()
        try runner.succeed(
            "init", "--directory", "data", "--relay-domain", "relay.example", "--set",
            "limits.hops=30", "--set",
            "http.trusted_proxies=192.0.2.7,2001:db8::/32", "--set",
            "http.public_url=https://id.example")
        func shown(_ key: String) throws -> String? {
            let rows = try runner.json("config", "show") as? [String: [String: Any]]
            return rows?[key].map { "\($0["value"] ?? "") \($0["source"] ?? "")" }
        }
        #expect(try shown("limits.hops")?.hasPrefix("30 postern.yaml:") == true)
        #expect(try shown("http.public_url")?.contains("https://id.example") == true)
        #expect(try shown("http.trusted_proxies")?.contains("2001:db8::/32") == true)
        for (wrong, status, word) in [
            ("limits.hop=30", 78, "limits.hops"), ("limits.hops=many", 78, "whole number"),
            ("key_file=x", 78, "key_file"),
        ] {
            try runner.fail(
                "init", "--directory", "other", "--relay-domain", "relay.example", "--set", wrong,
                status: Int32(status),
                saying: word)
        }
        #expect(
            !FileManager.default.fileExists(
                atPath: runner.folder.appendingPathComponent("other").path))
    }

    @Test func init_existingInstallation_isRefused() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        let keys = runner.folder.appendingPathComponent("data/postern.keys")
        let before = try Data(contentsOf: keys)
        try runner.fail(
            "init", "--directory", "data", "--relay-domain", "relay.example", status: 73,
            saying: "contains an installation")
        try FileManager.default.removeItem(atPath: runner.configuration)
        try runner.fail(
            "init", "--directory", "data", "--relay-domain", "relay.example", status: 73,
            saying: "contains postern.keys and postern.db without postern.yaml")
        #expect(try Data(contentsOf: keys) == before)
    }

    @Test func init_invalidArguments_createsNothing() throws {
        let runner = try CommandRunner()
        try runner.fail(
            "init", "--directory", "data", "--relay-domain", "not a domain", status: 78,
            saying: "relay_domains")
        try runner.fail("init", "--directory", "data", status: 64, saying: "--relay-domain")
        try runner.fail(
            "init", "--directory", "data", "--relay-domain", "relay.example", "--operator-address",
            "me@relay.example",
            status: 78, saying: "come back here")
        #expect(
            !FileManager.default.fileExists(
                atPath: runner.folder.appendingPathComponent("data").path))
    }

    @Test func init_emptyFolder_isUsed() throws {
        let runner = try CommandRunner()
        try FileManager.default.createDirectory(
            at: runner.folder.appendingPathComponent("data"), withIntermediateDirectories: false)
        try runner.succeed("init", "--directory", "data", "--relay-domain", "relay.example")
        #expect(try runner.succeed("team", "list").isEmpty)
    }

    @Test func keyFile_openToOthers_isRefused() throws {
        let runner = try CommandRunner.initialised()
        let keys = runner.folder.appendingPathComponent("data/postern.keys")
        for mode in [0o640, 0o604, 0o620] {
            try FileManager.default.setAttributes(
                [.posixPermissions: mode], ofItemAtPath: keys.path)
            try runner.fail("team", "list", status: 78, saying: "chmod 600")
        }
        try FileManager.default.removeItem(at: keys)
        try runner.fail("team", "list", status: 78, saying: "cannot be opened")
    }

    @Test func keyFile_ofAnotherInstallation_isRefused() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("init", "--directory", "other", "--relay-domain", "relay.example")
        try runner.fail(
            "team", "list", "--set", "key_file=../other/postern.keys",
            status: 78, saying: "does not belong to this database")
    }

    @Test func installation_missing_isReportedWithRemedy() throws {
        let runner = try CommandRunner()
        try runner.fail("team", "list", status: 78, saying: "postern init")
        try runner.fail(
            "team", "list", "--config", "elsewhere.yaml", status: 78, saying: "elsewhere.yaml")
        let installed = try CommandRunner.initialised()
        for suffix in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(
                atPath: installed.folder.path + "/data/postern.db" + suffix)
        }
        try installed.fail("team", "list", status: 69, saying: "there is no database")
    }

    @Test func configOption_eachForm_overridesEnvironment() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        for arguments in [
            ["team", "list", "--config", "data/postern.yaml"],
            ["team", "list", "--config", "data"],
            ["--config", "data", "team", "list"], ["--config=data", "team", "list"],
        ] {
            let result = try runner.run(arguments, environment: ["POSTERN_CONFIG": "/nonexistent"])
            #expect(result.status == 0, "\(result.errors)")
            #expect(result.output.hasPrefix("juice\tJuice\t"))
        }
    }
}
