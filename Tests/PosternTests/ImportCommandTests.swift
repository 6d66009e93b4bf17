// postern import: accepted and refused rows; no row is imported in part or twice.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct ImportCommandTests {
    private func installed() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed("app", "add", "juice", "com.example.juice")
        try runner.succeed("app", "add", "juice", "com.example.press")
        return runner
    }

    private func write(_ runner: CommandRunner, _ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: runner.folder.appendingPathComponent(name))
    }

    /// Everything that an import can create, in a comparable form.
    private func state(_ runner: CommandRunner) throws -> String {
        var text = ""
        for user in try runner.succeed("user", "list").split(separator: "\n") {
            let id = String(user.split(separator: "\t")[0])
            let shown = try runner.succeed("user", "show", id, "--reveal")
            // Times depend on the time of the run; all else must be equal.
            text +=
                shown.split(separator: "\n").filter { !$0.hasPrefix("since") }.joined(
                    separator: "\n") + "\n"
        }
        return text
    }

    @Test func import_row_createsUserInboxAndAccount() throws {
        let runner = try installed()
        try write(
            runner, "people.csv",
            """
            \u{FEFF}user,name,inbox,verified,team,app,sub,address,forwarding,shares_name,real_user_status,since\r
            jane,"Doe, ""Jane""\",jane@home.example,true,juice,com.example.press,001.abc,Abcdefghij@relay.example,off,yes,2,2024-05-01T00:00:00Z\r
            joe,,joe@home.example,false,,,,,,,,\r

            """)
        let result = try runner.run(["import", "people.csv", "--trust-verified"])
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output == "2 rows: added 2 users, 2 inboxes, 1 account, 1 relay address.\n")
        let jane = try runner.succeed("user", "show", "jane", "--reveal")
        #expect(jane.contains("name\tDoe, \"Jane\""))
        #expect(jane.contains("jane@home.example verified, default"))
        #expect(jane.contains("abcdefghij@relay.example team juice off"))
        let shown = try #require(
            try runner.json("address", "show", "abcdefghij@relay.example") as? [String: Any])
        #expect((shown["address"] as? [String: Any])?["sub"] as? String == "001.abc")
        #expect(shown["shares_name"] as? Bool == true)
        let grant = try #require((shown["grants"] as? [[String: Any]])?.first)
        #expect(grant["client_id"] as? String == "com.example.press")
        #expect(grant["real_user_status"] as? Int == 2)
        #expect(grant["first_authorized_at"] as? String == "2024-05-01T00:00:00Z")
        #expect(
            try runner.succeed("user", "show", "joe").contains(
                "j…@home.example unverified, default"))
    }

    /// --errors must not overwrite the key file, not even in a dry run: without the keys no inbox
    /// can be read.
    @Test func import_errorsIntoAFileOfTheInstallation_isRefusedAndNothingTouched() throws {
        let runner = try installed()
        try write(runner, "people.csv", "user,inbox\njane,no address\n")
        for name in ["postern.keys", "postern.yaml", "postern.db"] {
            let place = runner.folder.appendingPathComponent("data/\(name)")
            let before = try Data(contentsOf: place)
            try runner.fail(
                "import", "people.csv", "--dry-run", "--errors", "data/\(name)", status: 64,
                saying: "is a file of the installation")
            #expect(try Data(contentsOf: place) == before)
        }
        // The output of an earlier run stays if this run is refused as a whole.
        #expect(try runner.run(["import", "people.csv", "--errors", "refused.csv"]).status == 65)
        let refused = try String(
            contentsOf: runner.folder.appendingPathComponent("refused.csv"), encoding: .utf8)
        #expect(refused.hasPrefix("line,reason\n2,"))
        try write(runner, "broken.csv", "no,columns\n")
        #expect(try runner.run(["import", "broken.csv", "--errors", "refused.csv"]).status == 65)
        #expect(try runner.run(["import", "broken.csv", "--errors", "new.csv"]).status == 65)
        #expect(
            try String(
                contentsOf: runner.folder.appendingPathComponent("refused.csv"), encoding: .utf8)
                == refused)
        #expect(
            !FileManager.default.fileExists(
                atPath: runner.folder.appendingPathComponent("new.csv").path))
        #expect(try runner.run(["import", "people.csv", "--errors", "/dev/full"]).status == 74)
    }

    /// Variants of spreadsheets: national separators, empty rows and columns, blanks.
    @Test(arguments: [
        "user;inbox;verified;\r\njane; jane@home.example ;true;\r\n;;;\r\n;;;\r\n",
        "sep=;\nuser;inbox;verified\njane;jane@home.example;true\n",
        "user\tinbox\tverified\njane\tjane@home.example\ttrue\n",
        "User, Inbox ,VERIFIED,,\njane, jane@home.example, true,,\n,,,,\n",
        "user;inbox;verified\njane;jane@home.example;WAHR\n",
        "user;inbox;verified\njane;jane@home.example;VERDADERO\n",
    ]) func import_spreadsheet_isTaken(text: String) throws {
        let runner = try installed()
        try write(runner, "people.csv", text)
        let result = try runner.run(["import", "people.csv", "--trust-verified"])
        #expect(
            result.status == 0 && result.output.hasPrefix("1 row: added 1 user, 1 inbox,"),
            "\(result.output)\(result.errors)")
        #expect(try runner.succeed("user", "find", "jane@home.example").hasPrefix("jane\t"))
    }

    /// An imported user must not get a check because of an absence: what was before the import is
    /// not known.
    @Test func import_oldAccount_isAskedOnlyIfLastSeenLongAgo() throws {
        let runner = try installed()
        try write(
            runner, "people.csv",
            """
            user,inbox,verified,team,app,sub,since,last_seen
            old,old@home.example,true,juice,com.example.juice,001.old,2024-05-01,
            away,away@home.example,true,juice,com.example.juice,001.away,2024-05-01,2024-06-01T10:00:00Z
            """)
        try runner.succeed("import", "people.csv", "--trust-verified")
        func answer(_ sub: String) throws -> String {
            // The first request about a grant is a sign-up.
            try runner.succeed(
                "decide", "juice", "--app", "com.example.juice", "--event", "sign_in", "--sub", sub)
            return try runner.succeed(
                "decide", "juice", "--app", "com.example.juice", "--event", "sign_in", "--sub", sub)
        }
        #expect(try answer("001.old").contains("reasons\t-"))
        #expect(try answer("001.away").contains("reasons\tDORMANT_ACCOUNT"))
        for (row, words) in [
            (
                "x,x@home.example,true,juice,com.example.juice,,2024-05-01,2024-04-01",
                "last_seen is before since"
            ),
            (
                "x,x@home.example,true,juice,com.example.juice,,2024-05-01,2199-04-01",
                "last_seen is in the future"
            ),
            (
                "x,x@home.example,true,juice,com.example.juice,,2024-05-01,yesterday",
                "last_seen must be seconds since 1970, or as in"
            ),
            ("x,x@home.example,true,,,,,2024-05-01", "last_seen is given without team"),
            (
                "x,x@home.example,true,juice,com.example.juice,,2025-02-31,",
                "since is a day or a time that does not exist"
            ),
            (
                "x,x@home.example,true,juice,com.example.juice,,2025-02-29,",
                "since is a day or a time that does not exist"
            ),
            (
                "x,x@home.example,true,juice,com.example.juice,,2025-05-01T25:00:00Z,",
                "since is a day or a time that does not exist"
            ),
            (
                "x,x@home.example,true,juice,com.example.juice,,45000,",
                "since is a number that cannot be seconds since 1970"
            ),
            (
                "x,x@home.example,true,juice,com.example.juice,,20240101,",
                "since is a number that cannot be seconds since 1970"
            ),
            (
                "x,x@home.example,true,juice,com.example.juice,,2024-01-01,2025",
                "last_seen is a number that cannot be seconds"
            ),
        ] {
            try write(
                runner, "bad.csv", "user,inbox,verified,team,app,sub,since,last_seen\n" + row + "\n"
            )
            #expect(try runner.run(["import", "bad.csv"]).errors.contains(words), "\(words)")
        }
    }

    @Test func import_jsonLines_createsInboxes() throws {
        let runner = try installed()
        let result = try runner.run(
            ["import", "-", "--trust-verified", "--json"],
            input: """
                {"user": "jane", "inbox": "jane@home.example", "verified": true, "team": "juice", "since": 1700000000}

                {"user": "jane", "inbox": "work@office.example", "verified": true, "default": true}
                {"user": "jane", "inbox": "alias@office.example", "verified": true, "reply_only": true, "name": null}
                """)
        #expect(result.status == 0, "\(result.errors)")
        let summary = try #require(
            try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        #expect(summary["rows"] as? Int == 3)
        #expect(summary["inboxes"] as? Int == 3)
        #expect(summary["users"] as? Int == 1)
        let inboxes = try runner.succeed("inbox", "list", "jane", "--reveal")
        #expect(inboxes.contains("jane@home.example\tverified\t"))
        #expect(inboxes.contains("work@office.example\tverified, default\t"))
        #expect(inboxes.contains("alias@office.example\tverified, reply-only\t"))
    }

    @Test func import_repeatedJSONMember_isRefused() throws {
        let runner = try installed()
        let result = try runner.run(
            ["import", "-", "--trust-verified"],
            input: """
                {"user": "jane", "inbox": "jane@home.example", "inbox": "other@home.example", "verified": true}
                {"user": "joe", "inbox": "joe@home.example", "us\\u0065r": "joy"}
                """)
        #expect(result.status != 0)
        #expect(
            result.errors.contains("line 1: the line is not JSON: a member name occurs twice"),
            "\(result.errors)")
        #expect(
            result.errors.contains("line 2: the line is not JSON: a member name occurs twice"),
            "\(result.errors)")
        #expect(!result.errors.contains("home.example"))
        #expect(try runner.succeed("user", "list") == "")
    }

    @Test func import_verifiedColumn_needsTrustOption() throws {
        let runner = try installed()
        try write(runner, "people.csv", "user,inbox,verified\njane,jane@home.example,true\n")
        let first = try runner.run(["import", "people.csv"])
        #expect(first.status == 0)
        #expect(first.errors.contains("1 row said verified: without --trust-verified"))
        #expect(try runner.succeed("inbox", "list", "jane").contains("unverified"))
        #expect(
            try runner.succeed("import", "people.csv", "--trust-verified").contains(
                "verified 1 inbox"))
        #expect(try !runner.succeed("inbox", "list", "jane").contains("unverified"))
    }

    @Test func nameInAnImport_withWhatIsNotSeen_isTakenWithoutIt() throws {
        let runner = try installed()
        try write(
            runner, "people.csv",
            "user,inbox,name\njane,jane@home.example,J\u{202E}ane\u{200B}\nsara,sara@home.example,\u{0633}\u{200C}\u{0627}\n"
        )
        let outcome = try runner.run(["import", "people.csv", "--json"])
        #expect(
            outcome.status == 0 && outcome.output.contains("\"names_cleaned\" : 1"),
            "\(outcome.output)")
        #expect(outcome.errors.contains("1 name had invisible characters"))
        #expect(try runner.succeed("user", "show", "jane", "--reveal").contains("Jane"))
        #expect(
            try runner.succeed("user", "show", "sara", "--reveal").contains(
                "\u{0633}\u{200C}\u{0627}"))
        try write(runner, "odd.csv", "user,inbox\njoe,jo\u{200D}e@home.example\n")
        let odd = try runner.run(["import", "odd.csv"])
        #expect(odd.status != 0 && odd.errors.contains("an invisible character"))
    }

    static let badRows: [(String, String)] = [
        (",,secret.person@home.example,,,,", "user is missing"),
        ("new1,,,,,,", "user new1 is new, but the row has no inbox"),
        ("secret.person@home.example,,a@home.example,,,,", "must not be an email address"),
        ("new2,,secret.person@@home.example,,,,", "the address is malformed"),
        ("new3,,secret.person@relay.example,,,,", "relay domain"),
        ("new4,,jane@home.example,true,,,", "already verified"),
        ("jane,Janet,,,,,", "user jane already has another name"),
        ("new5,,new5@home.example,perhaps,,,", "verified must be true or false"),
        ("new6,,new6@home.example,,milk,,", "there is no team milk"),
        ("new7,,new7@home.example,,juice,com.example.none,", "no app com.example.none"),
        ("new8,,new8@home.example,,,com.example.juice,", "app is given without team"),
        (
            "new9,,new9@home.example,,juice,,secret.person@gmail.com",
            "address is not at a relay domain"
        ),
        ("new10,,new10@home.example,,juice,,short@relay.example", "10 to 16 characters"),
        (
            "new11,,new11@home.example,,juice,,aaaaaaaaaa@relay.example",
            "belongs to another account"
        ),
        ("new12,,new12@home.example,,juice,,postmaster@relay.example", "a mailbox of the operator"),
        ("jane,,,,juice,,bbbbbbbbbb@relay.example", "already has another relay address"),
        ("new12,,secret.person@home.example", "the row has 3 fields, but the header has 7"),
        ("new13,x\"y,secret.person@home.example,,,,", "quotation mark"),
    ]

    /// Each bad row is between good ones. Bad rows change nothing, good ones are imported, and no
    /// reason repeats an inbox.
    @Test func import_badRows_reportsAndSkipsThem() throws {
        let runner = try installed()
        var text =
            "user,name,inbox,verified,team,app,address\njane,Jane,jane@home.example,true,juice,,aaaaaaaaaa@relay.example\n"
        for (number, (row, _)) in Self.badRows.enumerated() {
            text += row + "\ngood\(number),,good\(number)@home.example,yes,juice,,\n"
        }
        try write(runner, "people.csv", text)
        let dry = try runner.run([
            "import", "people.csv", "--trust-verified", "--dry-run", "--errors", "dry.csv",
        ])
        #expect(try runner.succeed("user", "list") == "")
        let result = try runner.run([
            "import", "people.csv", "--trust-verified", "--errors", "bad.csv",
        ])
        #expect(result.status == 65)
        #expect(
            result.errors
                == "postern: \(Self.badRows.count) rows of \(2 * Self.badRows.count + 1) not imported: see bad.csv\n"
        )
        let reasons = try String(
            contentsOf: runner.folder.appendingPathComponent("bad.csv"), encoding: .utf8)
        let lines = reasons.split(separator: "\n")
        try #require(lines.count == Self.badRows.count + 1, "\(reasons)")
        for (number, (_, reason)) in Self.badRows.enumerated() {
            #expect(lines[number + 1].hasPrefix("\(number * 2 + 3),\""), "\(lines[number + 1])")
            #expect(lines[number + 1].contains(reason), "\(lines[number + 1]): \(reason)")
        }
        for secret in ["secret.person", "jane@", "good1@", "new5@"] {
            #expect(!reasons.contains(secret))
        }
        // A dry run reports all of that.
        #expect(dry.status == 65)
        #expect(
            try String(contentsOf: runner.folder.appendingPathComponent("dry.csv"), encoding: .utf8)
                == reasons)
        #expect(dry.output == result.output.replacing("added", with: "would add"))
        // No new user of a bad row exists, with or without inbox.
        let users = try runner.succeed("user", "list").split(separator: "\n").map {
            $0.split(separator: "\t")[0]
        }
        #expect(users.count == Self.badRows.count + 1)
        #expect(!users.contains { $0.hasPrefix("new") })
        // Printed on standard error if no file was named.
        let again = try runner.run(["import", "people.csv", "--trust-verified"])
        #expect(again.status == 65)
        #expect(
            again.errors.contains("postern: line 3: user is missing\n")
                && !again.errors.contains("postern: postern"))
        #expect(!again.errors.contains("secret.person"))
        #expect(again.output.contains("\(Self.badRows.count + 1) rows there already"))
    }

    @Test func import_sameFileTwice_addsNothing() throws {
        let runner = try installed()
        var text = "user,inbox,verified,team,app\n"
        for number in 0..<40 {
            text += "u\(number),u\(number)@home.example,true,juice,com.example.juice\n"
            text += "u\(number),work\(number)@home.example,true,juice,com.example.press\n"
        }
        try write(runner, "people.csv", text)
        try runner.succeed("import", "people.csv", "--trust-verified")
        let first = try state(runner)
        #expect(first.contains("work39@home.example verified"))
        #expect(
            try runner.succeed("import", "people.csv", "--trust-verified")
                == "80 rows: added 0 users, 0 inboxes, 0 accounts, 0 relay addresses; 80 rows there already."
        )
        #expect(try state(runner) == first)
    }

    @Test func import_addressChangedSince_keepsTheChange() throws {
        let runner = try installed()
        try write(
            runner, "people.csv",
            "user,inbox,verified,team,address\njane,jane@home.example,true,juice,aaaaaaaaaa@relay.example\n"
        )
        try runner.succeed("import", "people.csv", "--trust-verified")
        try runner.succeed("address", "off", "aaaaaaaaaa@relay.example")
        try runner.succeed("import", "people.csv", "--trust-verified")
        #expect(
            try runner.succeed("address", "show", "aaaaaaaaaa@relay.example").contains("state\toff")
        )
        try runner.succeed("address", "retire", "aaaaaaaaaa@relay.example", "--yes")
        try runner.succeed("import", "people.csv", "--trust-verified")
        #expect(
            try runner.succeed("address", "list", "--user", "jane").split(separator: "\n").count
                == 1)
    }

    /// Killed in the middle and run again: the same result as one run.
    @Test func import_killedAndRepeated_completes() throws {
        let runner = try installed()
        var text = "user,inbox,verified,team\n"
        for number in 0..<3_000 { text += "u\(number),u\(number)@home.example,true,juice\n" }
        try write(runner, "people.csv", text)
        let process = try ManagedProcess(
            CommandRunner.executable.path, ["import", "people.csv", "--trust-verified"],
            environment: ["POSTERN_CONFIG": runner.configuration], directory: runner.folder.path)
        // After the first commit, and long before the end.
        func count() throws -> Int {
            try runner.succeed("user", "list").split(separator: "\n").count
        }
        while process.isRunning, try count() == 0 {}
        process.signal(SIGKILL)
        #expect(try process.waitForExit() == 128 + SIGKILL, "the import ended before it was killed")
        let before = try count()
        #expect(before > 0 && before < 3_000)
        let rest = try runner.succeed("import", "people.csv", "--trust-verified")
        #expect(
            rest.replacing(#/(\d),(\d)/#) { "\($0.1)\($0.2)" }
                == "3000 rows: added \(3_000 - before) users, \(3_000 - before) inboxes, \(3_000 - before) accounts, "
                + "\(3_000 - before) relay addresses; \(before) rows there already.")
        let addresses = try runner.succeed("address", "list").split(separator: "\n")
        #expect(addresses.count == 3_000)
        #expect(Set(addresses.map { $0.split(separator: "\t")[2] }).count == 3_000)
    }

    @Test func import_invalidFile_isRefused() throws {
        let runner = try installed()
        try write(runner, "headless.csv", "jane,secret.person@home.example\n")
        let result = try runner.run(["import", "headless.csv"])
        #expect(result.status == 65)
        #expect(
            result.errors.contains("line 1 must name the columns: column 1 is none of: user, name"))
        #expect(!result.errors.contains("secret.person"))
        try write(runner, "gap.csv", "user,,inbox\n")
        try runner.fail("import", "gap.csv", status: 65, saying: "column 2 has no name")
        try write(runner, "twice.csv", "user,inbox,user\n")
        try runner.fail("import", "twice.csv", status: 65, saying: "names the column user twice")
        try write(runner, "nouser.csv", "inbox,team\n")
        try runner.fail("import", "nouser.csv", status: 65, saying: "not name the column user")
        try write(runner, "empty.csv", "")
        try runner.fail("import", "empty.csv", status: 65, saying: "no header")
        try Data([0xFF, 0xFE, 0x75, 0x00]).write(
            to: runner.folder.appendingPathComponent("utf16.csv"))
        try runner.fail("import", "utf16.csv", status: 65, saying: "save it as UTF-8")
        try runner.fail("import", "none.csv", status: 66, saying: "does not exist")
        try runner.fail("import", ".", status: 66, saying: "a folder")
        try runner.fail(
            "import", "twice.csv", "--errors", "./twice.csv", status: 64,
            saying: "the imported file")
        try write(
            runner, "keys.jsonl",
            "{\"user\": \"jane\", \"secret.person@home.example\": 1}\n[1]\n{\"user\": {}}\n{\n")
        let keys = try runner.run(["import", "keys.jsonl"])
        #expect(keys.status == 65)
        for text in [
            "line 1: a key is not one of", "line 2: the line is not a JSON object",
            "line 3: user is neither",
            "line 4: the line is not JSON",
        ] {
            #expect(keys.errors.contains(text), "\(keys.errors)")
        }
        #expect(!keys.errors.contains("secret.person"))
    }

    @Test func import_dryRun_leavesNoCopy() throws {
        let runner = try installed()
        try write(runner, "people.csv", "user,inbox\njane,jane@home.example\n")
        let folder = runner.folder.appendingPathComponent("data").path
        let before = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
            !$0.contains("-wal") && !$0.contains("-shm")
        }
        #expect(
            try runner.succeed("import", "people.csv", "--dry-run").contains(
                "would add 1 user, 1 inbox"))
        let after = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
            !$0.contains("-wal") && !$0.contains("-shm")
        }
        #expect(before.sorted() == after.sorted())
        #expect(try runner.succeed("user", "list") == "")
    }
}
