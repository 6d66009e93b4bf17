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

    /// It was read to the end of its output first, while it waited for room for its errors.
    @Test func toolRun_largeErrorsFirst_readsToTheEnd() throws {
        let run = try run("head -c 300000 /dev/zero | tr '\\0' e >&2; head -c 300000 /dev/zero | tr '\\0' o")
        #expect(run.output == String(repeating: "o", count: 300_000))
        #expect(run.errors == String(repeating: "e", count: 300_000))
    }

    /// Signals that this process ignores, as a service ignores SIGPIPE, end a tool all the same.
    @Test func toolRun_parentIgnoresSIGPIPE_resetsIt() throws {
        signal(SIGPIPE, SIG_IGN)
        let line = try run("grep SigIgn /proc/self/status").output.split(whereSeparator: \.isWhitespace).last
        let ignored = try #require(line.flatMap { UInt64($0, radix: 16) })
        #expect(ignored & 1 << (UInt64(SIGPIPE) - 1) == 0)
    }

    @Test func toolRun_openFiles_areNotInherited() throws {
        // Of its own: the three, and the folder that is being listed.
        #expect(try ToolRun("/bin/ls", ["/proc/self/fd"]).output == "0\n1\n2\n3\n")
    }

    /// Each thread on which Foundation's `Process` starts a program has a run loop from then on, with three open files: a service
    /// had more of them with every look at Postfix.
    @Test func sources_useNoFoundationProcess() throws {
        for folder in ["Sources", "milter", "policy"] {
            let files = FileManager.default.enumerator(atPath: Folders.package.appending(path: folder).path)?.allObjects ?? []
            let sources = files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }
            try #require(!sources.isEmpty)
            for source in sources {
                let text = try String(contentsOf: Folders.package.appending(path: "\(folder)/\(source)"), encoding: .utf8)
                #expect(!text.contains(" Process()"), "\(folder)/\(source)")
            }
        }
    }
}
