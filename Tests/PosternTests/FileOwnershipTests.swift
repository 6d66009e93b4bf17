// Root's commands beside a service of another user: new files belong to that user, and that user's
// links are not followed.

import Accounts
import Database
import Foundation
import PosternConfiguration
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: getuid() == 0, "these tests run as root alone"))
struct FileOwnershipTests {
    /// A user and a group that do not exist.
    private static let user: uid_t = 23_456
    private static let group: gid_t = 23_457

    /// An installation whose folder belongs to the service's user.
    private func installed() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        for path in try files(runner) + [data(runner)] {
            try #require(lchown(path, Self.user, Self.group) == 0)
        }
        return runner
    }

    private func data(_ runner: CommandRunner) -> String {
        runner.folder.appendingPathComponent("data").path
    }

    private func files(_ runner: CommandRunner) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: data(runner)).map {
            data(runner) + "/" + $0
        }
    }

    /// Files in the folder that do not belong to the service's user, with the command that created
    /// them.
    private func strangers(_ runner: CommandRunner, after command: String) throws -> [String] {
        try files(runner).filter { path in
            var status = stat()
            return lstat(path, &status) == 0
                && (status.st_uid != Self.user || status.st_gid != Self.group)
        }.map { "\(command): \($0)" }
    }

    /// Runs a command as the service's user.
    private func asService(
        _ runner: CommandRunner, _ arguments: String...
    ) throws -> (status: Int32, output: String) {
        let result = try ManagedProcess.run(
            "/usr/bin/env",
            [
                "setpriv", "--reuid=\(Self.user)", "--regid=\(Self.group)", "--clear-groups",
                CommandRunner.executable.path,
            ] + arguments + ["--config", runner.configuration])
        return (result.status, result.output)
    }

    @Test func rootCommands_newFiles_belongToTheService() throws {
        let runner = try installed()
        // Kept open, as the service does: its log and shared memory exist.
        let open = try DatabaseLocation("postern.db", path: data(runner) + "/postern.db", at: "")
            .open()
        defer { try? open.close() }
        var strange: [String] = []
        for command in [
            ["team", "add", "juice", "--name", "Juice"],
            ["user", "add", "anna", "--inbox", "anna@home.example", "--verified"],
            ["keys", "file", "rotate"], ["store", "backup", "data/copy.db"], ["status"],
            ["import", "nothing.csv", "--errors", "data/reasons.csv", "--dry-run"],
            ["policy", "show", "default", "--export", "data/policy"],
        ] {
            if command[0] == "import" {
                try Data("user,inbox\nx y,z\n".utf8).write(
                    to: runner.folder.appendingPathComponent("nothing.csv"))
            }
            _ = try runner.run(command)
            strange += try strangers(runner, after: command.joined(separator: " "))
        }
        #expect(strange == [])
        #expect(try files(runner).contains { $0.hasSuffix("/copy.db") })
        #expect(try files(runner).contains { $0.hasSuffix("/reasons.csv") })
        try open.close()
        for name in ["postern.db", "postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(atPath: data(runner) + "/" + name)
        }
        try runner.succeed("store", "restore", "data/copy.db")
        #expect(try strangers(runner, after: "store restore") == [])
        // The service can use all of it.
        guard
            try ManagedProcess.run(
                "/usr/bin/env",
                ["setpriv", "--reuid=\(Self.user)", "test", "-x", CommandRunner.executable.path]
            ).status == 0
        else {
            return print("the built program cannot be run by another user here: that was not tried")
        }
        let listed = try asService(runner, "user", "show", "anna", "--reveal")
        #expect(listed.status == 0 && listed.output.contains("anna@home.example"), "\(listed)")
        let rotated = try asService(runner, "keys", "file", "rotate")
        #expect(rotated.status == 0, "\(rotated)")
        #expect(try asService(runner, "team", "add", "soda", "--name", "Soda").status == 0)
    }

    @Test func rootCommands_linkOfServiceUser_areRefused() throws {
        let runner = try installed()
        let target = runner.folder.appendingPathComponent("target").path
        func link(_ name: String) throws {
            let path = data(runner) + "/" + name
            unlink(path)
            try #require(symlink(target, path) == 0 && lchown(path, Self.user, Self.group) == 0)
        }
        try Data("user,inbox\nx y,z\n".utf8).write(
            to: runner.folder.appendingPathComponent("rows.csv"))
        try link("reasons.csv")
        try runner.fail(
            "import", "rows.csv", "--errors", "data/reasons.csv", status: 73,
            saying: "a symbolic link of another user")
        try link("copy.db")
        try runner.fail("store", "backup", "data/copy.db", status: 74, saying: "data/copy.db")
        try link("copy.policy")
        #expect(
            try runner.run(["policy", "show", "default", "--export", "data/copy.policy"]).status
                != 0)
        try runner.succeed("store", "backup", "good.db")
        try link("postern.db")
        #expect(try runner.run(["store", "restore", "good.db"]).status != 0)
        try runner.fail("team", "list", status: 69, saying: "a symbolic link of another user")
        #expect(!FileManager.default.fileExists(atPath: target))
        // An existing link is not opened either.
        try FileManager.default.copyItem(
            atPath: runner.folder.appendingPathComponent("good.db").path, toPath: target)
        try runner.fail("team", "list", status: 69, saying: "a symbolic link of another user")
        // Root's own link is followed.
        try #require(lchown(data(runner) + "/postern.db", 0, 0) == 0)
        try runner.succeed("team", "list")
    }

    @Test(
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: "/usr/sbin/postconf"),
            "Postfix is not there"))
    func headerCheck_linkOfServiceUser_isNotFollowed() throws {
        let runner = try installed()
        let folder = runner.folder.appendingPathComponent("postfix").path
        let target = runner.folder.appendingPathComponent("target").path
        let check = folder + "/postern_header_checks"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for name in ["main.cf", "master.cf"] {
            let text =
                name == "main.cf"
                ? "compatibility_level = 3.6\n"
                : "smtp inet n - y - - smtpd\ncleanup unix n - y - 0 cleanup\n"
            try text.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
        }
        let before = try FileManager.default.contentsOfDirectory(atPath: folder)
        func setUp() throws -> CommandResult {
            try runner.run(["setup", "postfix", "--apply", "--config-directory", folder])
        }
        try #require(symlink(target, check) == 0 && lchown(check, Self.user, Self.group) == 0)
        let refused = try setUp()
        #expect(
            refused.status == 77 && refused.errors.contains("a symbolic link of another user"),
            "\(refused)")
        #expect(refused.errors.contains(check))
        #expect(!FileManager.default.fileExists(atPath: target))
        unlink(check)
        let done = try ManagedProcess.run(
            "/bin/sh",
            [
                "-c", "umask 077; exec \"$@\"", "sh", CommandRunner.executable.path, "setup",
                "postfix", "--apply",
                "--config-directory", folder, "--config", runner.configuration,
            ])
        #expect(done.status == 0, "\(done.output)")
        func mode(_ name: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")[.posixPermissions]
                as? Int
        }
        let record = try #require(
            try FileManager.default.contentsOfDirectory(atPath: folder).first {
                !before.contains($0) && $0 != "postern_header_checks"
            })
        #expect(
            try ["postern_header_checks", record, "main.cf"].map(mode) == [0o644, 0o644, 0o644])
        // main.cf may contain passwords: then other users can read neither it nor the record, which
        // has its text.
        try #require(
            try runner.run([
                "setup", "postfix", "--apply", "--remove", "--config-directory", folder,
            ]).status == 0)
        try #require(
            chmod(folder + "/main.cf", 0o640) == 0
                && lchown(folder + "/main.cf", 0, Self.group) == 0)
        #expect(try setUp().status == 0)
        #expect(try [record, "main.cf", "master.cf"].map(mode) == [0o640, 0o640, 0o644])
        // If main.cf became unreadable for others after the record was created, a later run makes
        // the record unreadable too.
        try #require(chmod(folder + "/" + record, 0o644) == 0)
        let services = folder + "/master.cf"
        let more =
            try String(contentsOfFile: services, encoding: .utf8)
            + "127.0.0.1:2525 inet n - y - - smtpd -o smtpd_milters=\n"
        try more.write(toFile: services, atomically: true, encoding: .utf8)
        let other = try runner.run(
            [
                "setup", "postfix", "--apply", "--config-directory", folder, "--set",
                "milter.socket=inet:8999@127.0.0.1",
            ])
        #expect(other.status == 0, "\(other)")
        #expect(try mode(record) == 0o640)
        let attributes = try FileManager.default.attributesOfItem(atPath: folder + "/main.cf")
        #expect(attributes[.groupOwnerAccountID] as? Int == Int(Self.group))
    }

    /// Whether another user can run the program that was built here.
    private static let isReachable =
        (try? ManagedProcess.run(
            "/usr/bin/env",
            ["setpriv", "--reuid=\(user)", "test", "-x", CommandRunner.executable.path]
        )
        .status) == 0

    /// Runs `postern serve` as the service's user, until it serves.
    private func serving(_ runner: CommandRunner) throws -> ManagedProcess {
        let process = try ManagedProcess(
            "/usr/bin/env",
            [
                "setpriv", "--reuid=\(Self.user)", "--regid=\(Self.group)", "--clear-groups",
                CommandRunner.executable.path,
                "serve", "--config",
                runner.configuration, "--set", "milter.socket=unix:\(data(runner))/m", "--set",
                "http.listen=off",
            ])
        _ = try process.waitForLine(containing: "notice serving")
        return process
    }

    /// Lock files or a restored database that belong to root would make the service fail, and a
    /// rotation never end.
    @Test(
        .enabled(
            if: FileOwnershipTests.isReachable,
            "the built program cannot be run by another user here"))
    func rootCommands_rotateAndRestore_leaveServiceWorking() throws {
        let runner = try installed()
        try runner.succeed("user", "add", "anna", "--inbox", "anna@home.example", "--verified")
        let service = try serving(runner)
        defer { service.end() }
        let rotated = try runner.run(["keys", "file", "rotate"])
        #expect(
            rotated.status == 0 && rotated.output.contains("Removed the old seal key a"),
            "\(rotated)")
        _ = try service.waitForLine(containing: "keys changed")
        #expect(try strangers(runner, after: "keys file rotate") == [])
        try runner.succeed("store", "backup", "data/copy.db")
        service.signal(SIGTERM)
        #expect(try service.waitForExit() == 0)
        let trouble = service.lines.filter { $0.contains(" warning ") || $0.contains(" error ") }
        #expect(trouble.allSatisfy { $0.contains("operator_address") }, "\(trouble)")
        for name in ["postern.db", "postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(atPath: data(runner) + "/" + name)
        }
        try runner.succeed("store", "restore", "data/copy.db")
        #expect(try strangers(runner, after: "store restore") == [])
        let again = try serving(runner)
        again.signal(SIGTERM)
        #expect(try again.waitForExit() == 0)
        #expect(
            try asService(runner, "user", "show", "anna", "--reveal").output.contains(
                "anna@home.example"))
    }

    /// The error names the file and the cause, and not only "unable to open database file" or "no
    /// configuration file".
    @Test(
        .enabled(
            if: FileOwnershipTests.isReachable,
            "the built program cannot be run by another user here"))
    func error_fileOfRoot_namesFileAndCause() throws {
        let runner = try installed()
        let path = data(runner)
        // Kept open, so that its log and shared memory stay.
        let open = try DatabaseLocation("postern.db", path: path + "/postern.db", at: "").open()
        defer { try? open.close() }
        _ = try open.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("DELETE FROM schema_migrations WHERE version < 0", [])
        }
        for name in ["postern.db-wal", "postern.db-shm"] {
            try #require(lchown(path + "/" + name, Self.user, Self.group) == 0)
        }
        #expect(try asService(runner, "team", "list").status == 0)
        try Data().write(to: URL(fileURLWithPath: path + "/postern.db-lock-key-file"))
        for (file, command) in [
            ("postern.db", ["team", "list"]), ("postern.db-wal", ["team", "list"]),
            ("postern.db-shm", ["team", "list"]),
            ("postern.keys", ["team", "list"]), ("postern.yaml", ["team", "list"]),
            ("postern.db-lock-key-file", ["keys", "file", "rotate"]),
        ] {
            let file = path + "/" + file
            try #require(chown(file, 0, 0) == 0 && chmod(file, 0o600) == 0)
            let refused = try ManagedProcess.run(
                "/usr/bin/env",
                [
                    "setpriv", "--reuid=\(Self.user)", "--regid=\(Self.group)", "--clear-groups",
                    CommandRunner.executable.path,
                ]
                    + command
                    + ["--config", runner.configuration])
            #expect(
                refused.status != 0 && refused.output.contains(file)
                    && refused.output.contains("Permission denied"),
                "\(file): \(refused)")
            #expect(refused.output.split(separator: "\n").count == 1, "\(refused.output)")
            try #require(chown(file, Self.user, Self.group) == 0)
        }
        // In a folder that may not be searched, it is unknown whether the file exists.
        try #require(chown(path, 0, 0) == 0 && chmod(path, 0o700) == 0)
        let hidden = try asService(runner, "team", "list")
        #expect(
            hidden.status == 77 && hidden.output.contains(runner.configuration)
                && hidden.output.contains("Permission denied"),
            "\(hidden)")
    }
}
