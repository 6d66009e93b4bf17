// The text that docs/INTEGRATION.md tells the reader to write into files. The tests use that text,
// so that it stays correct.

import Foundation
import PostfixHarness
import RelayHarness

enum Recipe {
    private static let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../../docs/INTEGRATION.md").standardizedFileURL

    /// The block with `# FILE` as its first line, with paths and ports of the page replaced by
    /// those of a test.
    /// - Throws: if there is no such block, or if one of the texts is not in it. The test would
    ///   then run with other settings.
    static func text(_ file: String, _ replacements: [String: String]) throws -> String {
        let blocks = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n```")
        guard
            let block = blocks.first(where: {
                $0.split(separator: "\n").dropFirst().first ?? "" == "# \(file)"
            })
        else {
            throw HarnessError("docs/INTEGRATION.md has no block that begins with # \(file)")
        }
        let lines = block.split(separator: "\n", omittingEmptySubsequences: false).dropFirst(2)
        return try replacements.reduce(lines.joined(separator: "\n") + "\n") { text, replacement in
            guard text.contains(replacement.key) else {
                throw HarnessError("\(file): \(replacement.key) is not in the recipe")
            }
            return text.replacingOccurrences(of: replacement.key, with: replacement.value)
        }
    }

    /// The same for main.cf, as names and values; every `inet:127.0.0.1:8891` becomes the socket of
    /// the fixture.
    static func postfix(
        _ file: String, beside fixture: RelayFixture, _ replacements: [String: String] = [:]
    ) throws -> [String: String] {
        let lines = try text(file, replacements).split(separator: "\n").filter {
            $0.contains("=") && !$0.hasPrefix("#")
        }
        return lines.reduce(into: [:]) { settings, line in
            let parts = line.split(separator: "=", maxSplits: 1).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            settings[parts[0]] = parts[1].replacingOccurrences(
                of: "inet:127.0.0.1:8891", with: fixture.socket)
        }
    }
}

/// A folder for a program's files that every user may enter; removed with the last reference.
final class ProgramFolder {
    let path = NSTemporaryDirectory() + "postern-beside-" + UUID().uuidString.prefix(8).lowercased()

    init() throws {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file, and makes its folders.
    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        let file = URL(fileURLWithPath: "\(path)/\(name)")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    /// Makes a user of the system the owner of everything in it.
    func give(to user: String) throws {
        let result = try ManagedProcess.run("/bin/chown", ["-R", "\(user):", path])
        guard result.status == 0 else { throw HarnessError("chown: \(result.output)") }
    }
}

/// A program that may have children of its own, in a folder that is removed with it.
final class NeighbourProgram {
    private let process: ManagedProcess

    /// Starts it through a shell. The shell's input ends with `stop` or with this process. Then the
    /// shell ends the program and all its children in good order, and removes the folder.
    init(_ executable: String, _ arguments: [String], in folder: ProgramFolder) throws {
        let script = """
            folder=$1; shift
            "$@" </dev/null & child=$!
            cat >/dev/null
            kill -TERM $child
            wait $child
            rm -rf "$folder"
            """
        process = try ManagedProcess(
            "/bin/sh", ["-c", script, "sh", folder.path, executable] + arguments)
    }

    deinit { stop() }

    var output: String { process.output }

    func waitUntilServed(_ port: UInt16) throws { try FreePort.waitUntilServed(port, by: process) }

    func waitForLine(containing text: String) throws { try process.waitForLine(containing: text) }

    /// Ends it, and waits until it has ended. May be called again.
    func stop() {
        process.closeInput()
        _ = try? process.waitForExit()
    }
}
