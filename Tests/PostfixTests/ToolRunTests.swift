// Programs of the machine that Postern runs.

import Foundation
import PostfixSetup
import TestSupport
import Testing

@Suite(.blocking) struct ToolRunTests {
    private func run(_ script: String) throws -> ToolRun { try ToolRun("/bin/sh", ["-c", script]) }

    @Test func toolRun_returnsOutputErrorsAndStatus() throws {
        let run = try run("echo out; echo err >&2; exit 3")
        #expect((run.output, run.errors, run.status) == ("out\n", "err\n", 3))
        #expect(try self.run("kill -9 $$").status == 137)
        #expect(try self.run("read line || echo no input").output == "no input\n")
        #expect(throws: (any Error).self) { try ToolRun("/no/such/program", []) }
    }

    /// Both outputs must be read together, so that a program with many errors does not block.
    @Test func toolRun_largeErrorsFirst_readsToTheEnd() throws {
        let run = try run(
            "head -c 300000 /dev/zero | tr '\\0' e >&2; head -c 300000 /dev/zero | tr '\\0' o")
        #expect(run.output == String(repeating: "o", count: 300_000))
        #expect(run.errors == String(repeating: "e", count: 300_000))
    }

    /// A tool must be ended by signals that this process ignores, as a service ignores SIGPIPE.
    @Test func toolRun_parentIgnoresSIGPIPE_resetsIt() throws {
        signal(SIGPIPE, SIG_IGN)
        let line = try run("grep SigIgn /proc/self/status").output.split(
            whereSeparator: \.isWhitespace
        ).last
        let ignored = try #require(line.flatMap { UInt64($0, radix: 16) })
        #expect(ignored & 1 << (UInt64(SIGPIPE) - 1) == 0)
    }

    @Test func toolRun_openFiles_areNotInherited() throws {
        // Its own descriptors: the three, and the folder that it lists.
        #expect(try ToolRun("/bin/ls", ["/proc/self/fd"]).output == "0\n1\n2\n3\n")
    }

    /// Foundation's `Process` leaves a run loop with three open files on each thread that starts a
    /// program. A service would get more of them with every check of Postfix.
    @Test func sources_useNoFoundationProcess() throws {
        for folder in ["Sources", "milter", "policy"] {
            let files =
                FileManager.default.enumerator(
                    atPath: Folders.package.appending(path: folder).path)?.allObjects ?? []
            let sources = files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }
            try #require(!sources.isEmpty)
            for source in sources {
                let text = try String(
                    contentsOf: Folders.package.appending(path: "\(folder)/\(source)"),
                    encoding: .utf8)
                #expect(!text.contains(" Process()"), "\(folder)/\(source)")
            }
        }
    }
}
