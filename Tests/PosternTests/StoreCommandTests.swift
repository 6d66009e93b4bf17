// The database as a whole: on PostgreSQL, copied, backed up and restored; and key rotations.

import Accounts
import Administration
import Database
import Foundation
import PosternConfiguration
import PostfixHarness
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking) struct StoreCommandTests {
    /// An empty database on the shared server.
    private static func url() throws -> String {
        try #require(PostgresServer.shared).url(
            schema: "c\(UUID().uuidString.prefix(8).lowercased())")
    }

    /// The first commands of an operator, and the output to compare afterwards.
    private static func use(_ runner: CommandRunner) throws -> String {
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed("source", "add", "juice", "juice.example")
        try runner.succeed("app", "add", "juice", "com.juice.app")
        try runner.succeed(
            "user", "add", "anna", "--inbox", "anna@home.example", "--verified", "--name",
            "Anna Quiet")
        try runner.succeed(
            "inbox", "add", "anna", "second@home.example", "--reply-only", "--verified")
        let address = try runner.succeed("address", "issue", "juice", "anna")
        #expect(try runner.succeed("address", "show", address).contains("anna"))
        #expect(try runner.succeed("user", "show", "anna", "--reveal").contains("Anna Quiet"))
        try runner.succeed("address", "off", address)
        #expect(try runner.run(["status"]).output.contains("1 team, 1 account"))
        try runner.succeed("policy", "list")
        #expect(try runner.succeed("audit").contains("address.issue"))
        #expect(try runner.succeed("keys", "dkim", "list").contains("active"))
        return address
    }

    @Test(.enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
    func commands_serverWithLocksThatLockNothing_areRefused() throws {
        let server = try #require(PostgresServer.shared)
        let schema = "c\(UUID().uuidString.prefix(8).lowercased())"
        // Before pg_catalog only if the path names that too.
        let shadowed = "\(schema),\(schema)_shadow,pg_catalog"
        _ = try server.url(schema: schema)
        try server.psql(
            """
            CREATE SCHEMA \(schema)_shadow;
            CREATE FUNCTION \(schema)_shadow.pg_try_advisory_lock(number bigint) RETURNS boolean
                LANGUAGE sql AS $$ SELECT true $$;
            """)
        let runner = try CommandRunner()
        func initialize(_ path: String, _ status: Int32, _ saying: String) throws {
            try runner.fail(
                "init", "--directory", "data", "--relay-domain", "relay.example", "--database",
                server.url(of: path), status: status, saying: saying)
        }
        let reason = "two connections got the same advisory lock"
        try initialize(shadowed, 77, reason)
        #expect(
            !FileManager.default.fileExists(
                atPath: runner.folder.appendingPathComponent("data").path))
        try runner.succeed(
            "init", "--directory", "data", "--relay-domain", "relay.example", "--database",
            server.url(of: schema))
        let configuration = runner.folder.appendingPathComponent("data/postern.yaml")
        let text = try String(contentsOf: configuration, encoding: .utf8)
        let changed = text.replacingOccurrences(
            of: server.url(of: schema), with: server.url(of: shadowed))
        #expect(changed != text)
        try changed.write(to: configuration, atomically: true, encoding: .utf8)
        try runner.fail("serve", status: 77, saying: reason)
        let doctor = try runner.run([
            "doctor", "--skip", "postfix", "--skip", "probe", "--skip", "outside",
        ])
        #expect(doctor.status == 1)
        #expect(
            doctor.output.contains(reason) && doctor.output.contains("use PostgreSQL itself"),
            "\(doctor.output)")
    }

    @Test(.enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
    func commands_onPostgreSQL_succeed() throws {
        let url = try Self.url()
        let runner = try CommandRunner()
        try runner.succeed(
            "init", "--directory", "data", "--relay-domain", "relay.example", "--database", url)
        #expect(
            !FileManager.default.fileExists(
                atPath: runner.folder.appendingPathComponent("data/postern.db").path))
        #expect(try runner.succeed("store", "migrate").contains("nothing to do"))
        _ = try Self.use(runner)
        // A dump contains nothing of an inbox or a name.
        let dump = try #require(PostgresServer.shared).run(
            "pg_dump",
            [
                "--data-only", "-h", try #require(PostgresServer.shared).folder.path, "-U",
                "postern", "-n",
                try #require(self.schema(url)), "postgres",
            ])
        #expect(dump.contains("The Juice Company"))
        for secret in ["anna@", "home.example", "Quiet", "PRIVATE KEY"] {
            #expect(!dump.contains(secret), "\(secret)")
        }
        // A further host copies the files, and does not create its own installation.
        let second = try CommandRunner()
        try second.fail(
            "init", "--directory", "data", "--relay-domain", "relay.example", "--database", url,
            status: 73,
            saying: "copy postern.yaml")
        #expect(
            !FileManager.default.fileExists(
                atPath: second.folder.appendingPathComponent("data").path))
        try FileManager.default.copyItem(
            at: runner.folder.appendingPathComponent("data"),
            to: second.folder.appendingPathComponent("data"))
        #expect(try second.succeed("team", "list").contains("juice"))
        try runner.fail(
            "store", "backup", "copy.db", status: 65,
            saying: "pg_dump --format=custom --file=copy.db")
        try runner.fail("store", "restore", "copy.db", status: 65, saying: "pg_restore")
        try runner.fail("store", "copy", "--to", url, status: 65, saying: "PostgreSQL already")
        try rotates(runner)
    }

    private func schema(_ url: String) -> String? {
        url.split(separator: "%3D").last.map(String.init)
    }

    @Test(.enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
    func copy_toPostgreSQL_keepsEveryNumber() throws {
        let runner = try CommandRunner.initialised()
        let address = try Self.use(runner)
        // Ids of deleted rows are not used again, because account numbers are in tokens.
        for number in 0..<3 {
            try runner.succeed(
                "user", "add", "gone\(number)", "--inbox", "g\(number)@home.example", "--verified")
        }
        for number in 0..<3 { try runner.succeed("user", "remove", "gone\(number)", "--yes") }
        let url = try Self.url()
        let output = try runner.succeed("store", "copy", "--to", url)
        #expect(output.contains("the counts of both sides agree"))
        try runner.fail("store", "copy", "--to", url, status: 73, saying: "already contains rows")
        try runner.fail("store", "copy", "--to", "mysql://x", status: 64, saying: "postgresql://")
        let server = try #require(PostgresServer.shared)
        let schema = try #require(self.schema(url))
        #expect(try server.psql("SELECT max(id) FROM \(schema).users").hasPrefix("1"))
        let before = try runner.succeed("address", "show", address)
        let text = try String(contentsOfFile: runner.configuration, encoding: .utf8)
            .replacingOccurrences(of: "# database: postern.db", with: "database: \"\(url)\"")
        try text.write(toFile: runner.configuration, atomically: true, encoding: .utf8)
        #expect(try runner.succeed("address", "show", address) == before)
        #expect(
            try runner.succeed("user", "show", "anna", "--reveal").contains("anna@home.example"))
        try runner.succeed("user", "add", "bob", "--inbox", "bob@home.example", "--verified")
        #expect(try server.psql("SELECT max(id) FROM \(schema).users").hasPrefix("5"))
        try runner.succeed("address", "issue", "juice", "bob")
    }

    @Test func database_serverAway_isReportedWithoutPassword() throws {
        let runner = try CommandRunner.initialised()
        let secret = "Sup3rS3cret"
        let url =
            "postgresql://postern:\(secret)@127.0.0.1:1/postern?sslmode=verify-full&sslpassword=\(secret)"
        let flag = "database=\(url)"
        try runner.fail("team", "list", "--set", flag, status: 75, saying: "server away")
        for arguments in [
            ["team", "list"], ["serve"], ["store", "migrate"], ["doctor"], ["config", "show"],
            ["config", "show", "--json"],
            ["store", "backup", "x"],
        ] {
            let result = try runner.run(arguments + ["--set", flag])
            #expect(!(result.output + result.errors).contains(secret), "\(arguments): \(result)")
            let variable = try runner.run(arguments, environment: ["POSTERN_DATABASE": url])
            #expect(
                !(variable.output + variable.errors).contains(secret), "\(arguments): \(variable)")
        }
        #expect(
            try runner.succeed("config", "show", "--set", flag).contains(
                "postgresql://postern:(redacted)@127.0.0.1:1/postern?sslmode=verify-full&sslpassword=(redacted)"
            ))
        for wrong in [
            "postgresql://postern:a@\(secret)@db.example/x", "mysql://a:\(secret)@b/c",
            "postgresql://x:%zz\(secret)@b/c",
        ] {
            let result = try runner.run(["team", "list", "--set", "database=\(wrong)"])
            #expect(result.status == 78, "\(result)")
            #expect(!result.errors.contains(secret), "\(result)")
        }
    }

    @Test func backup_restored_hasTheSameData() throws {
        let runner = try CommandRunner.initialised()
        let address = try Self.use(runner)
        #expect(
            try runner.succeed("store", "backup", "copy.db").contains(
                "1 team, 1 user, 1 relay address, schema"))
        let copy = runner.folder.appendingPathComponent("copy.db")
        #expect(
            try FileManager.default.attributesOfItem(atPath: copy.path)[.posixPermissions]
                as? NSNumber == 0o600)
        #expect(!FileManager.default.fileExists(atPath: copy.path + "-wal"))
        try runner.fail("store", "backup", "copy.db", status: 73, saying: "not overwritten")
        try runner.fail("store", "backup", "", status: 64, saying: "the path is empty")
        try runner.fail(
            "store", "backup", "none/copy.db", status: 74, saying: "No such file or directory")
        try runner.fail("store", "restore", "copy.db", status: 73, saying: "not overwritten")
        let data = runner.folder.appendingPathComponent("data")
        for name in ["postern.db", "postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(at: data.appendingPathComponent(name))
        }
        try runner.fail(
            "store", "restore", "nothing.db", status: 66, saying: "nothing.db: no such file")
        // Damaged in the middle: it does not replace the database.
        var octets = try Data(contentsOf: copy)
        octets.replaceSubrange(
            4096..<octets.count, with: Data(repeating: 0x55, count: octets.count - 4096))
        try octets.write(to: runner.folder.appendingPathComponent("damaged.db"))
        let damaged = try runner.run(["store", "restore", "damaged.db"])
        #expect(
            damaged.status == 65 && damaged.errors.hasPrefix("postern: damaged.db: "),
            "\(damaged.errors)")
        #expect(
            !FileManager.default.fileExists(atPath: data.appendingPathComponent("postern.db").path))
        // The keys of another installation.
        let other = try CommandRunner()
        try other.succeed("init", "--directory", "data", "--relay-domain", "relay.example")
        let keys = data.appendingPathComponent("postern.keys")
        let own = try Data(contentsOf: keys)
        try Data(contentsOf: other.folder.appendingPathComponent("data/postern.keys")).write(
            to: keys)
        try runner.fail("store", "restore", "copy.db", status: 78, saying: "key file")
        try own.write(to: keys)
        #expect(try runner.succeed("store", "restore", "copy.db").contains("1 user,"))
        #expect(try runner.succeed("address", "show", address).contains("anna"))
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: data.path).filter {
                $0.contains("restoring")
            }.isEmpty)
    }

    @Test func backup_interruptedOrThroughAPipe_leavesNoFileOfItsName() throws {
        let runner = try CommandRunner.initialised()
        // The files of a killed process, whose id is free again.
        let gone = try ManagedProcess.run("/bin/sh", ["-c", "echo $$"]).output.trimmingCharacters(
            in: .whitespacesAndNewlines)
        let left = runner.folder.appendingPathComponent("copy.db.incomplete-\(gone)")
        try Data("half".utf8).write(to: left)
        let running = runner.folder.appendingPathComponent("copy.db.incomplete-\(getpid())")
        try Data("half".utf8).write(to: running)
        try runner.succeed("store", "backup", "copy.db")
        #expect(!FileManager.default.fileExists(atPath: left.path))
        #expect(
            FileManager.default.fileExists(atPath: running.path),
            "of a process that may be writing it")
        try runner.fail("store", "backup", "-", status: 64, saying: "not written through a pipe")
        try runner.fail("store", "restore", "-", status: 64, saying: "not read through a pipe")
        #expect(
            try !FileManager.default.contentsOfDirectory(atPath: runner.folder.path).contains("-"))
    }

    private static let mayMount =
        (try? ManagedProcess.run("/usr/bin/unshare", ["-m", "true"]))?.status == 0

    @Test(.enabled(if: mayMount, "a file system is mounted, which is not allowed here"))
    func restore_fromAReadOnlyMount_works() throws {
        let runner = try CommandRunner.initialised()
        let address = try Self.use(runner)
        let folder = runner.folder.appendingPathComponent("backups")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try runner.succeed("store", "backup", "backups/copy.db")
        let before = try Data(contentsOf: folder.appendingPathComponent("copy.db"))
        for name in ["postern.db", "postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(
                at: runner.folder.appendingPathComponent("data/\(name)"))
        }
        let script =
            "mount --bind '\(folder.path)' '\(folder.path)' && mount -o remount,bind,ro '\(folder.path)' && exec \"$@\""
        let result = try ManagedProcess.run(
            "/usr/bin/unshare",
            [
                "-m", "sh", "-c", script, "sh", CommandRunner.executable.path, "store", "restore",
                folder.path + "/copy.db",
                "--config",
                runner.configuration,
            ])
        #expect(result.status == 0, "\(result)")
        #expect(try runner.succeed("address", "show", address).contains("anna"))
        #expect(try Data(contentsOf: folder.appendingPathComponent("copy.db")) == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["copy.db"])
    }

    @Test(arguments: [
        "CREATE TRIGGER thief AFTER INSERT ON users BEGIN DELETE FROM audit; END",
        "CREATE VIEW thief AS SELECT 1",
        "DROP TRIGGER inboxes_removed; CREATE TRIGGER inboxes_removed AFTER DELETE ON inboxes BEGIN SELECT 1; END",
        "ALTER TABLE schema_migrations RENAME TO real_migrations; CREATE VIEW schema_migrations AS SELECT * FROM real_migrations",
    ]) func restore_foreignTriggerOrView_isRefused(_ statements: String) throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("store", "backup", "copy.db")
        let copy = runner.folder.appendingPathComponent("copy.db").path
        let database = try DatabaseLocation("copy.db", path: copy, at: "").open()
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.runScript(statements)
        }
        try database.close()
        let data = runner.folder.appendingPathComponent("data")
        for name in ["postern.db", "postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(at: data.appendingPathComponent(name))
        }
        try runner.fail(
            "store", "restore", "copy.db", status: 65, saying: "that Postern did not create")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: data.path).filter {
                $0.hasPrefix("postern.db")
            } == [])
    }

    /// With an old key file, a search for a user by inbox would wrongly find nothing, so every
    /// command must refuse it.
    @Test(arguments: [["seal"], ["index"], ["token"], ["seal", "index"]])
    func keyFile_fromBeforeARotation_isRefusedByEveryCommand(purposes: [String]) throws {
        let runner = try CommandRunner.initialised()
        _ = try Self.use(runner)
        let keys = runner.folder.appendingPathComponent("data/postern.keys")
        let first = try Data(contentsOf: keys)
        let rotated = try runner.run(["keys", "file", "rotate"] + purposes)
        try #require(rotated.status == 0, "\(rotated.errors)")
        let second = try Data(contentsOf: keys)
        func put(_ data: Data) throws {
            try data.write(to: keys)
            try #require(chmod(keys.path, 0o600) == 0)
        }
        try put(first)
        for command in [
            ["user", "find", "nobody@home.example"], ["keys", "file", "show"], ["team", "list"],
        ] {
            let result = try runner.run(command)
            #expect(
                result.status == 78
                    && result.errors.contains("the key file lacks \(purposes[0]) key b"),
                "\(result)")
        }
        let check = try runner.run(["config", "check", "--json"])
        #expect(
            check.status == 78 && check.output.contains("the key file lacks \(purposes[0]) key b"),
            "\(check)")
        try put(second)
        #expect(try runner.succeed("user", "list").contains("\t"))
        try runner.succeed("config", "check")
    }

    /// The link must stay, and its target get the new keys.
    @Test func keyFile_thatIsALink_isReplacedWhereItLeads() throws {
        let runner = try CommandRunner.initialised()
        let keys = runner.folder.appendingPathComponent("data/postern.keys")
        let place = runner.folder.appendingPathComponent("volume/real.keys")
        try FileManager.default.createDirectory(
            at: place.deletingLastPathComponent(), withIntermediateDirectories: false)
        try FileManager.default.moveItem(at: keys, to: place)
        try FileManager.default.createSymbolicLink(
            atPath: keys.path, withDestinationPath: "../volume/real.keys")
        try runner.succeed("keys", "file", "rotate")
        #expect(
            try FileManager.default.destinationOfSymbolicLink(atPath: keys.path)
                == "../volume/real.keys")
        #expect(try String(contentsOf: place, encoding: .utf8).contains("seal b active"))
        #expect(
            try FileManager.default.attributesOfItem(atPath: place.path)[.posixPermissions]
                as? NSNumber == 0o600)
        #expect(
            try FileManager.default.contentsOfDirectory(
                atPath: place.deletingLastPathComponent().path) == ["real.keys"])
        // A byte order mark, as some editors write it, is not a key.
        try (Data([0xEF, 0xBB, 0xBF]) + Data(contentsOf: place)).write(to: place)
        #expect(try runner.succeed("keys", "file", "show").contains("seal"))
        for (purpose, id) in [("token", "b"), ("seal", "a"), ("index", "z")] {
            try runner.fail(
                "keys", "file", "retire", purpose, id, status: 66,
                saying: "there is no \(purpose) key \(id)")
        }
        try runner.fail(
            "keys", "signing", "retire", "NOPE", status: 66, saying: "there is no signing key NOPE")
    }

    /// SQLite uses a file of such a name as its own, and deletes it.
    @Test(arguments: [
        "data/postern.db-journal", "./data/../data/postern.db-journal", "data/postern.db-wal",
        "data/postern.db-shm",
    ])
    func backup_toANameOfTheDatabasesOwnFiles_isRefused(path: String) throws {
        let runner = try CommandRunner.initialised()
        try? FileManager.default.removeItem(at: runner.folder.appendingPathComponent(path))
        try runner.fail(
            "store", "backup", path, status: 64, saying: "is a file of the installation")
        try runner.fail(
            "policy", "backtest", "default", "--html", path, status: 64,
            saying: "is a file of the installation")
    }

    @Test func backup_ofNothing_isSaidInWords() throws {
        let runner = try CommandRunner.initialised()
        for name in ["postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(
                at: runner.folder.appendingPathComponent("data/\(name)"))
        }
        let database = runner.folder.appendingPathComponent("data/postern.db")
        try Data().write(to: database)
        try runner.fail(
            "store", "backup", "copy.db", status: 69,
            saying: "the database contains no tables of Postern")
        for end in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: database.path + end)
        }
        try Data().write(to: runner.folder.appendingPathComponent("empty.db"))
        let restored = try runner.run(["store", "restore", "empty.db"])
        #expect(
            restored.status != 0 && restored.errors.contains("it is not a backup of Postern"),
            "\(restored.errors)")
        #expect(!FileManager.default.fileExists(atPath: database.path))
    }

    @Test func leftovers_ofEndedProcesses_areRemovedAndOthersStay() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "postern-leftovers-\(UUID().uuidString)"
        ).path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // A process that has ended, and for which this one has waited.
        let ended = Process()
        ended.executableURL = URL(filePath: "/bin/true")
        try ended.run()
        ended.waitUntilExit()
        let (gone, own) = (ended.processIdentifier, getpid())
        let names = [
            "a.db-rehearsal-\(gone)-7", "a.db-rehearsal-\(gone)-7-wal", "a.db-rehearsal-\(own)-8",
            "a.db-rehearsal-", "a.db",
            "a.db-rehearsal-\(gone)x", "b.db-rehearsal-\(gone)-7", "a.db.incomplete-\(gone)",
        ]
        for name in names { try Data([1]).write(to: URL(filePath: "\(folder)/\(name)")) }
        func left() throws -> Set<String> {
            Set(try FileManager.default.contentsOfDirectory(atPath: folder))
        }
        Leftovers.rehearsals(of: folder + "/a.db").removeAbandoned()
        #expect(try left() == Set(names.dropFirst(2)))
        Leftovers.rehearsals(of: folder + "/a.db").removeOwn()
        #expect(try left() == Set(names.dropFirst(3)))
        Leftovers.backups(at: folder + "/a.db").removeAbandoned()
        #expect(try left() == Set(names.dropFirst(3).dropLast()))
    }

    /// Rotates twice, and everything can be read as before.
    private func rotates(_ runner: CommandRunner) throws {
        let keys = runner.folder.appendingPathComponent("data/postern.keys")
        let first = try String(contentsOf: keys, encoding: .utf8)
        #expect(try runner.succeed("keys", "file", "show").contains("seal"))
        let output = try runner.succeed("keys", "file", "rotate")
        #expect(
            output.contains("Removed the old seal key a")
                && output.contains("Removed the old index key a"), "\(output)")
        #expect(
            output.contains("Copy \(keys.path) now to where its copy is kept"),
            "backups from now on need the new keys: \(output)"
        )
        let second = try String(contentsOf: keys, encoding: .utf8)
        #expect(second.contains("seal b active") && !second.contains("seal a"))
        #expect(second.contains("index b active") && second.contains("mark a active"))
        #expect(
            try FileManager.default.attributesOfItem(atPath: keys.path)[.posixPermissions]
                as? NSNumber == 0o600)
        #expect(
            try runner.succeed("user", "show", "anna", "--reveal").contains("anna@home.example"))
        #expect(
            try runner.succeed("inbox", "show", "anna", "second@home.example", "--reveal").contains(
                "second@home.example"))
        #expect(try runner.run(["inbox", "add", "anna", "anna@home.example"]).status == 73)
        #expect(try runner.succeed("audit").contains("keys.file.rotate"))
        // With the former key file, nothing is written that the present one could not read.
        try Data(first.utf8).write(to: keys)
        #expect(chmod(keys.path, 0o600) == 0)
        let stale = try runner.run(["user", "add", "late", "--inbox", "late@home.example"])
        #expect(
            stale.status == 78 && stale.errors.contains("the key file lacks seal key b"), "\(stale)"
        )
        try Data(second.utf8).write(to: keys)
        #expect(chmod(keys.path, 0o600) == 0)
        // In the background, and continued.
        try runner.succeed("keys", "file", "rotate", "seal", "--background")
        #expect(try String(contentsOf: keys, encoding: .utf8).contains("seal b old"))
        try runner.fail("keys", "file", "retire", "seal", "b", status: 64, saying: "--yes")
        try runner.fail("keys", "file", "retire", "seal", "b", "--yes", status: 65, saying: "still")
        try runner.fail(
            "keys", "file", "retire", "seal", "c", "--yes", status: 65, saying: "active")
        #expect(try runner.succeed("keys", "file", "rotate").contains("Removed the old seal key b"))
        #expect(try runner.succeed("user", "show", "anna", "--reveal").contains("Anna Quiet"))
        // Tokens in other people's mail keep their key until it is retired.
        #expect(try runner.succeed("keys", "file", "rotate", "token").contains("keep verifying"))
        #expect(try String(contentsOf: keys, encoding: .utf8).contains("token a old"))
        try runner.succeed("keys", "file", "retire", "token", "a", "--yes")
        try runner.fail(
            "keys", "file", "rotate", "colour", status: 64, saying: "seal, index, token")
    }

    @Test func keyFile_rotated_keepsDataReadable() throws {
        let runner = try CommandRunner.initialised()
        _ = try Self.use(runner)
        try rotates(runner)
        // Text that was in clear during the conversion is not left in the files.
        let data = runner.folder.appendingPathComponent("data")
        for name in try FileManager.default.contentsOfDirectory(atPath: data.path)
        where name.hasPrefix("postern.db") {
            let octets = try Data(contentsOf: data.appendingPathComponent(name))
            for secret in ["anna@", "home.example", "Quiet", "PRIVATE KEY"] {
                #expect(octets.range(of: Data(secret.utf8)) == nil)
            }
        }
    }
}
