// The support bundle: complete, private to its owner, and without any personal data.

import Foundation
import TestSupport
import Testing

@testable import postern

@Suite(.blocking) struct SupportBundleTests {
    /// In every place where a user, a team or an administrator can write. No two share a part of
    /// eight letters with anything else.
    private static let planted = [
        "plantedinbox", "plantedhost", "Plantedname", "plantednote", "plantedreason",
        "plantedsecret", "plantedlist", "plantedobjection", "plantederror", "plantedpath",
        "plantedteam", "planteduser",
    ]

    private static func files(_ runner: CommandRunner, _ file: String) throws -> [String: Data] {
        let folder = runner.folder.appendingPathComponent("unpacked")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // The tar of Debian reads it, and restores the modes.
        try ProgramRun.succeed([
            "tar", "-xf", runner.folder.appendingPathComponent(file).path, "-C", folder.path,
        ])
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).reduce(into: [:]) {
            $0[$1] = try Data(contentsOf: folder.appendingPathComponent($1))
        }
    }

    @Test func bundle_plantedData_isNotInIt() throws {
        let runner = try CommandRunner.initialised()
        let inbox = "plantedinbox@plantedhost.example"
        for command in [
            "user add planteduser --name Plantedname --inbox \(inbox) --verified",
            "team add plantedteam --name Plantedname", "source add plantedteam plantedhost.example",
            "app add plantedteam com.plantedteam",
            "address issue plantedteam planteduser --app com.plantedteam",
            "endpoint set plantedteam https://plantedhost.example/plantedpath",
            "api-key issue plantedteam --scope addresses:read --note plantednote",
            "list create plantedlist --kind text", "list add plantedlist plantednote",
            "delivery hold plantedteam google --until 7d --reason plantedreason",
            "hold add user planteduser --until 9d --reason plantedreason",
            "user show planteduser --reveal --reason plantedreason",
        ] {
            let result = try runner.run(command.split(separator: " ").map(String.init))
            try #require(result.status == 0, "\(command): \(result.errors)")
        }
        let key = try String(
            contentsOf: runner.folder.appendingPathComponent("data/postern.keys"), encoding: .utf8)
        let secrets = key.split { $0.isWhitespace }.map(String.init).filter { $0.count >= 20 }
        try #require(!secrets.isEmpty)
        try execute(
            runner,
            """
            UPDATE endpoint_health SET failures = 3, last_error = 'plantederror \(inbox)';
            UPDATE users SET language = 'plantednote';
            INSERT INTO rejections (team_id, source, hour, answer, reason, first_at, last_at, count, reference)
                SELECT id, '\(inbox)', 1, '550 5.7.1', 'plantedreason', 1, 1, 4, 'plantederror' FROM teams;
            INSERT INTO service_status (host, pid, updated_at, snapshot)
                VALUES ('plantedhost', 1, 1, '{"milter":"plantedpath","x":"\(inbox)"}');
            """)
        let result = try runner.run([
            "support-bundle", "help.tar", "--set", "operator_address=\(inbox)", "--set",
            "service_name=plantedsecret",
        ])
        #expect(result.status == 0, "\(result.errors)")
        let files = try Self.files(runner, "help.tar")
        #expect(
            files.keys.sorted() == [
                "configuration.json", "doctor.json", "failures.json", "retention.json", "rows.json",
                "schema.json", "status.json", "versions.json",
            ])
        for (name, content) in files {
            let text = String(decoding: content, as: UTF8.self)
            for word in Self.planted + secrets + [runner.folder.lastPathComponent] {
                #expect(!text.contains(word), "\(name) has \(word.prefix(12))")
            }
            #expect(!text.contains("@"), "\(name)")
            #expect((try? JSONSerialization.jsonObject(with: content)) != nil, "\(name)")
        }
        // What it is for is there.
        func object(_ name: String) throws -> [String: Any] {
            let content = try #require(files[name])
            return try #require(
                try JSONSerialization.jsonObject(with: content) as? [String: Any])
        }
        #expect(try object("rows.json")["users"] as? Int == 1)
        let failures = try object("failures.json")
        #expect((failures["refused_mail_by_answer"] as? [String: Int]) == ["550 5.7.1": 4])
        #expect(
            (failures["failing_endpoints_by_dialect"] as? [String: Int])?.values.first == 1)
        #expect((try object("configuration.json")["service_name"] as? String) == "set (--set)")
        #expect((try object("retention.json")["holds_in_force"] as? Int) == 1)
    }

    private func execute(_ runner: CommandRunner, _ sql: String) throws {
        let database = runner.folder.appendingPathComponent("data/postern.db").path
        try ProgramRun.succeed([
            "python3", "-c",
            "import sqlite3,sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])", database,
            sql,
        ])
    }

    @Test func bundle_itsFile_isPrivateAndNeverOverwritten() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("support-bundle", "help.tar")
        let path = runner.folder.appendingPathComponent("help.tar").path
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let again = try runner.run(["support-bundle", "help.tar"])
        #expect(again.status == 73 && again.errors.contains("exists, and is not overwritten"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
        #expect(try runner.run(["support-bundle", "-"]).status == 64)
        #expect(try runner.run(["support-bundle", "data/postern.keys"]).status == 73)
    }

    /// A bundle is made when something is wrong.
    @Test func bundle_databaseMissing_isStillMade() throws {
        let runner = try CommandRunner.initialised()
        try FileManager.default.removeItem(
            at: runner.folder.appendingPathComponent("data/postern.db"))
        let result = try runner.run(["support-bundle", "help.tar"])
        #expect(result.status == 0, "\(result.errors)")
        let files = try Self.files(runner, "help.tar")
        let rows = String(decoding: files["rows.json"] ?? Data(), as: UTF8.self)
        #expect(rows.contains("cannot_be_read"))
        #expect(files["doctor.json"]?.isEmpty == false)
    }

    /// As in reports about other programs: the password in a URL, and the folder of a person.
    @Test func bundle_passwordInURL_isNotInIt() throws {
        let runner = try CommandRunner.initialised()
        let url = "postgresql://planteduser:plantedsecret@127.0.0.1:1/plantedhost"
        let result = try runner.run(["support-bundle", "help.tar", "--set", "database=\(url)"])
        #expect(result.status == 0, "\(result.errors)")
        #expect(!result.errors.contains("plantedsecret"))
        for (name, content) in try Self.files(runner, "help.tar") {
            let text = String(decoding: content, as: UTF8.self)
            for word in ["plantedsecret", "planteduser", runner.folder.lastPathComponent] {
                #expect(!text.contains(word), "\(name): \(word)")
            }
        }
    }

    @Test func withoutAddresses_everyForm_isReplaced() {
        for address in [
            "jane@home.example", "JANE＠home.example", "jane%40home.example", "jane﹫home",
            "e\u{301}@home.example", "@\u{301}x",
        ] {
            #expect(
                SupportBundle.withoutAddresses("\"a\": \"\(address)\", b")
                    == "\"a\": \"[address]\", b",
                "\(address)")
        }
        #expect(
            SupportBundle.withoutAddresses("in /home/jane/x.db, / and a/b")
                == "in [path], / and a/b")
        let plain = "{\n  \"limits.hops\": \"30 (default)\",\n  \"é\": \"\\\"<x>\"\n}\n"
        #expect(SupportBundle.withoutAddresses(plain) == plain)
    }
}
