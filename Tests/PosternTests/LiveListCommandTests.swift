// postern list, as it is typed.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct LiveListCommandTests {
    private func runner() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("list", "create", "nets", "--kind", "range")
        try runner.succeed("list", "create", "words", "--kind", "text")
        try runner.succeed("list", "create", "people", "--kind", "personal")
        return runner
    }

    private func write(_ runner: CommandRunner, _ octets: [UInt8]) throws {
        try Data(octets).write(to: runner.folder.appendingPathComponent("list.txt"))
    }

    @Test(arguments: [
        "\u{FEFF}198.51.100.0/24\n203.0.113.0/24\n",
        "198.51.100.0/24\r\n\r\n203.0.113.0/24 # office\r\n",
        "value\n198.51.100.0/24\n203.0.113.0/24\n",
        "sep=;\nvalue;expires;reason;\n198.51.100.0/24;;x;\n203.0.113.0/24;never;;\n;;;\n",
        "::ffff:198.51.100.0/120\n203.0.113.77/24",
        "# nets\n\nreason,value\nx,198.51.100.0/24\n,203.0.113.0/24\n",
    ]) func import_anyForm_isRead(text: String) throws {
        let runner = try runner()
        try write(runner, Array(text.utf8))
        #expect(
            try runner.succeed("list", "import", "nets", "list.txt")
                == "List nets has 2 entries now.")
        let shown = try runner.succeed("list", "show", "nets")
        #expect(
            shown.hasPrefix("198.51.100.0/24\t") && shown.contains("\n203.0.113.0/24\t"), "\(shown)"
        )
    }

    @Test(arguments: [
        "", "# nothing\n\n", "\u{FEFF}", "value,expires\n", "\n\n",
        "value,expires\n198.51.100.0/24,2020-01-01\n",
    ])
    func import_nothing_asksBeforeItEmptiesTheList(text: String) throws {
        let runner = try runner()
        try write(runner, Array("198.51.100.0/24\n".utf8))
        #expect(
            try runner.succeed("list", "import", "nets", "list.txt") == "List nets has 1 entry now."
        )
        try write(runner, Array(text.utf8))
        let refused = try runner.run(["list", "import", "nets", "list.txt"])
        #expect(
            refused.status == 65 && refused.errors.contains("no entry is in it: repeat with --yes"),
            "\(refused.errors)")
        #expect(try runner.succeed("list", "show", "nets").hasPrefix("198.51.100.0/24"))
        #expect(
            try runner.succeed("list", "import", "nets", "list.txt", "--yes")
                == "List nets has 0 entries now.")
    }

    @Test(arguments: [
        ("words", "email,reason\na,b\n", "list.txt:1: the line names columns"),
        ("words", "Email\na\n", "list.txt:1: the line names columns"),
        (
            "words", "Adresse;Grund\n1.2.3.4;x\n",
            "list.txt:1: the line looks like the names of a table's columns"
        ),
        (
            "words", "# Liste\nWert\tgültig_bis\na\t2030\n",
            "list.txt:2: the line looks like the names of a table's columns"
        ),
        (
            "words", "\"Nom\",\"Raison\"\r\na,b\r\n",
            "list.txt:1: the line looks like the names of a table's columns"
        ),
        ("words", "\n\nvalue,comment\na,b\n", "list.txt:3: the line must name the columns"),
        (
            "people", "jane@home.example,farm\n",
            "list.txt:1: the value cannot be an entry of a list of kind personal"
        ),
        (
            "words", "<!DOCTYPE html>\n<html></html>\n",
            "list.txt:1: this is a web page or a program's response"
        ),
        (
            "words", "{\"error\": \"not found\"}\n",
            "list.txt:1: this is a web page or a program's response"
        ),
        (
            "nets", "198.51.100.0/24\n\nnonsense\n",
            "list.txt:3: 'nonsense' cannot be an entry of a list of kind range: give an address"
        ),
        ("nets", "value,expires\n198.51.100.0/24,bogus\n", "list.txt:2: bogus is not a valid time"),
        (
            "nets", "value,expires\n198.51.100.0/24\n",
            "list.txt:2: the line must have as many fields"
        ),
        ("words", "1\tb\n", "list.txt:1: '1b' or its reason has invisible characters"),
        (
            "words", "fine\na\u{1B}[2Jb\n",
            "list.txt:2: 'a[2Jb' or its reason has invisible characters"
        ),
        ("words", "a\u{202E}b\n", "list.txt:1: 'ab' or its reason"),
        ("words", "value,expires,reason\na,,b\u{9B}c\n", "list.txt:2: "),
    ]) func import_badLine_isNamedAndNothingChanged(
        list: String, text: String, words: String
    ) throws {
        let runner = try runner()
        try write(runner, Array(text.utf8))
        try runner.fail("list", "import", list, "list.txt", status: 65, saying: words)
        #expect(try runner.succeed("list", "show", list) == "")
    }

    @Test func import_noUTF8_isRefusedWithItsPlace() throws {
        let runner = try runner()
        try write(runner, [0x61, 0x0A, 0x63, 0x61, 0x66, 0xE9, 0x0A])
        try runner.fail(
            "list", "import", "words", "list.txt", status: 65,
            saying: "list.txt:2: column 4: the text is not UTF-8: save it as UTF-8")
        for octets in [[0xFF, 0xFE, 0x61, 0x00, 0x0A, 0x00], [0x61, 0x00, 0x0A, 0x00]] as [[UInt8]]
        {
            try write(runner, octets)
            try runner.fail(
                "list", "import", "words", "list.txt", status: 65,
                saying: "list.txt:1: the text is UTF-16 or UTF-32")
        }
    }

    @Test func add_whatIsNotSeenOrOver_isRefused() throws {
        let runner = try runner()
        try runner.fail(
            "list", "add", "words", "a\u{1B}b", status: 65, saying: "invisible characters")
        try runner.fail(
            "list", "add", "words", "a", "--reason", "b\u{7F}", status: 65,
            saying: "invisible characters")
        try runner.fail(
            "list", "add", "words", "a", "--expires", "2020-01-01", status: 65,
            saying: "is in the past")
        try runner.fail(
            "list", "add", "words", "a", "--expires", "2026-02-30", status: 64,
            saying: "not a valid time")
        try runner.succeed("list", "add", "words", "a", "--expires", "8w")
        #expect(
            try runner.succeed("list", "add", "nets", "::ffff:192.0.2.7") == "1 new in list nets.")
        #expect(try runner.succeed("list", "show", "nets").hasPrefix("192.0.2.7/32\t"))
        let wide = try runner.run(["list", "add", "nets", "198.51.100.7/24", "203.0.113.0/24"])
        #expect(wide.errors == "postern: 198.51.100.7/24 means the whole range 198.51.100.0/24\n")
        let all = try runner.run(["list", "add", "nets", "0.0.0.0/0", "10.0.0.0/8"])
        #expect(
            all.status == 0 && all.errors == "postern: 0.0.0.0/0 is a large part of all addresses\n"
        )
        try runner.succeed("list", "create", "domains", "--kind", "domain")
        let top = try runner.run(["list", "add", "domains", "com", "juice.example"])
        #expect(
            top.status == 0 && top.errors == "postern: com means every domain that ends in it\n")
        try runner.fail("audit", "--since", "2099-01-01", status: 64, saying: "is in the future")
    }

    @Test func apply_pruneOfAListWithEntries_tellsWhatGoesAndAsks() throws {
        let runner = try runner()
        try runner.succeed("list", "add", "words", "a", "b")
        try Data("lists: {}\n".utf8).write(to: runner.folder.appendingPathComponent("state.yaml"))
        let dry = try runner.run(["apply", "state.yaml", "--prune", "--dry-run"])
        #expect(
            dry.status == 0 && dry.output.contains("! list words: 2 entries go with it\n"),
            "\(dry.output)\(dry.errors)")
        #expect(dry.errors.contains("this needs --yes"))
        let refused = try runner.run(["apply", "state.yaml", "--prune"])
        #expect(
            refused.status == 65
                && refused.errors.contains("2 entries go with it: repeat with --yes"),
            "\(refused.errors)")
        #expect(try runner.succeed("list", "show").contains("words"))
        #expect(try runner.run(["apply", "state.yaml", "--prune", "--yes"]).status == 0)
        #expect(try runner.succeed("list", "show") == "")
    }

    @Test(arguments: [
        "Mozilla/5.0 (X11; Linux), x\ncurl/8.1\n", "a\nb;c\n", "1;2\n3;4\n", "red\nblue\n",
    ])
    func import_textsWithSeparators_areEntries(text: String) throws {
        let runner = try runner()
        try write(runner, Array(text.utf8))
        #expect(
            try runner.succeed("list", "import", "words", "list.txt")
                == "List words has 2 entries now.")
    }

    /// The error must say to try again, and not blame a line of the file.
    @Test func import_overtakenWhileItIsRead_isToldToTryAgain() throws {
        let runner = try runner()
        try write(runner, Array("winner\n".utf8))
        let pipe = runner.folder.appendingPathComponent("pipe").path
        try #require(mkfifo(pipe, 0o600) == 0)
        let loser = Process()
        loser.executableURL = CommandRunner.executable
        loser.arguments = ["list", "import", "words", pipe]
        loser.environment = ["PATH": "/usr/bin:/bin", "POSTERN_CONFIG": runner.configuration]
        let errors = Pipe()
        (loser.standardError, loser.standardOutput) = (errors, FileHandle.nullDevice)
        try loser.run()
        // The import has begun when it reads.
        var input: Int32 = -1
        try wait("the import to read", atMost: 60) {
            input = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            return input >= 0
        }
        #expect(
            try runner.succeed("list", "import", "words", "list.txt")
                == "List words has 1 entry now.")
        _ = fcntl(input, F_SETFL, 0)
        let writing = FileHandle(fileDescriptor: input, closeOnDealloc: true)
        try writing.write(contentsOf: Data((0..<1_500).map { "k\($0)\n" }.joined().utf8))
        try writing.close()
        let said = String(
            decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        loser.waitUntilExit()
        #expect(
            loser.terminationStatus == 75
                && said.hasPrefix("postern: another import of list words began"), "\(said)")
        #expect(try runner.succeed("list", "show", "words").hasPrefix("winner\t"))
    }

    @Test(arguments: ["in", "true", "false", "null"])
    func create_nameThatNoConditionCanWrite_isRefused(name: String) throws {
        let runner = try CommandRunner.initialised()
        try runner.fail(
            "list", "create", name, "--kind", "text", status: 65, saying: "is a word of conditions")
        try runner.succeed("list", "create", name.uppercased(), "--kind", "text")
    }

    /// `0 removed` alone would not explain why an address is still found.
    @Test func rangeAndDomain_thatHoldAValue_areNamed() throws {
        let runner = try runner()
        try runner.succeed("list", "create", "domains", "--kind", "domain")
        try runner.succeed(
            "list", "add", "nets", "198.51.100.0/24", "198.0.0.0/7", "2001:db8::/32", "203.0.113.9")
        try runner.succeed("list", "add", "domains", "juice.example")
        for (list, value, entry) in [
            ("nets", "198.51.100.7", "198.51.100.0/24"),
            ("nets", "198.51.100.128/25", "198.51.100.0/24"),
            ("nets", "199.1.1.1", "198.0.0.0/7"), ("nets", "2001:db8:1::1", "2001:db8::/32"),
            ("domains", "Mail.Juice.example.", "juice.example"),
        ] {
            let removed = try runner.run(["list", "remove", list, value])
            #expect(
                removed.status == 0 && removed.output == "0 removed from list \(list).\n",
                "\(removed)")
            #expect(
                removed.errors.contains("\(value) is still matched by the entry \(entry)"),
                "\(removed.errors)")
            #expect(
                try runner.succeed("list", "show", list, "--matching", value).hasPrefix(
                    entry + "\t"))
        }
        let gone = try runner.run(["list", "remove", "nets", "203.0.113.9"])
        #expect(gone.output == "1 removed from list nets.\n" && gone.errors.isEmpty)
        #expect(try runner.succeed("list", "show", "nets", "--matching", "203.0.113.9") == "")
        #expect(
            try runner.succeed("list", "show", "nets", "--matching", "198.51.100.7").split(
                separator: "\n"
            ).count == 2)
        try runner.fail(
            "list", "show", "nets", "--matching", "nonsense", status: 65,
            saying: "cannot be an entry")
        try runner.fail(
            "list", "show", "--matching", "198.51.100.7", status: 64,
            saying: "--matching needs the list's name")
        try runner.succeed("list", "add", "people", "jane@home.example")
        #expect(
            try runner.succeed("list", "show", "people", "--matching", "Jane@HOME.example").split(
                separator: "\n"
            ).count == 1)
    }

    @Test func add_entryThatIsThereOrNoPerson_isSaid() throws {
        let runner = try runner()
        #expect(try runner.succeed("list", "add", "words", "a", "b") == "2 new in list words.")
        #expect(
            try runner.succeed("list", "add", "words", "b", "c", "--expires", "60m")
                == "1 new in list words. 1 in it already: reason and expiry are replaced.")
        for value in [
            "mailto:jane@home.example", "jane@@home.example", "+44(0)20 7946 0958 ext 3", "jane",
        ] {
            let added = try runner.run(["list", "add", "people", value])
            let isSaid = added.errors.contains("neither an email address nor a phone number")
            #expect(
                added.status == 0 && isSaid && !added.errors.contains("jane"), "\(value): \(added)")
        }
        for value in ["jane@home.example", "+44 20 7946 0958", "020/7946.0958"] {
            #expect(try runner.run(["list", "add", "people", value]).errors == "")
        }
        try runner.fail(
            "list", "remove", "words", "a", "a\u{1}", status: 65,
            saying: "invisible characters")
        let many = try runner.run(["list", "add", "words"] + (0..<3_000).map { "w\($0)" })
        #expect(
            many.status == 64 && many.errors.contains("more than 2000 arguments"), "\(many.errors)")
        let some = try runner.run(["list", "remove", "words"] + (0..<1_001).map { "w\($0)" })
        #expect(some.status == 73 && some.errors.contains("in several steps"), "\(some.errors)")
    }

    @Test func removeList_withEntriesOrReaders_asks() throws {
        let runner = try runner()
        try runner.succeed("list", "add", "words", "a", "b")
        try runner.fail(
            "list", "remove-list", "words", status: 64,
            saying: "removing list words also removes 2 entries: repeat with --yes")
        #expect(
            try runner.succeed("list", "remove-list", "words", "--yes") == "Removed list words.")
        let folder = runner.folder.appendingPathComponent("p")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(
            """
            policy: risk-default
            version: "1"
            challenges: [{kind: email_code}]
            defaults: {challenge: email_code}
            signals: {event: string, context.ip: {type: "string?", max_length: 64}}
            live_lists: {nets: range}
            rules:
            - {id: net, effect: require, events: [sign_in], challenge: email_code, reason: NET, condition: context.ip in lists.nets}
            """.utf8
        ).write(to: folder.appendingPathComponent("policy.yaml"))
        try runner.succeed("policy", "activate", folder.path)
        try runner.fail(
            "list", "remove-list", "nets", status: 64,
            saying: "policy risk-default reads list nets: repeat with --yes")
        let removed = try runner.run(["list", "remove-list", "nets", "--yes"])
        #expect(
            removed.status == 0
                && removed.errors.contains(
                    "policy risk-default reads list nets, and finds it empty now")
        )
        #expect(
            try runner.run(["status"]).output.contains(
                "policy risk-default: list 'nets' is missing; its rules that read it match nothing: run postern list create nets --kind range"
            ))
    }
}
