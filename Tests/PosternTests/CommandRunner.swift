// Runs the built command in a separate folder.

import Foundation
import PostfixHarness
import TestSupport
import Testing

/// The result of a run of `postern`.
struct CommandResult: Sendable {
    let status: Int32
    let output: String
    let errors: String
}

/// A folder that contains an installation after `initialise` was called.
final class CommandRunner: Sendable {
    let folder: URL
    var configuration: String { folder.appendingPathComponent("data/postern.yaml").path }

    /// The command is next to the test bundle.
    static let executable: URL = {
        let own =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
            ?? CommandLine.arguments[0]
        return URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent(
            "postern")
    }()

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-command-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// A runner with an installation for relay.example and old.example.
    static func initialised() throws -> CommandRunner {
        let runner = try CommandRunner()
        try InstallationCopy.make(
            runner.folder.appendingPathComponent("data").path,
            relayDomains: ["relay.example", "old.example"])
        return runner
    }

    /// Runs `postern` with these arguments in the folder and waits for its end.
    func run(
        _ arguments: [String], input: String = "", environment: [String: String] = [:]
    ) throws -> CommandResult {
        var variables = ["PATH": "/usr/bin:/bin", "COLUMNS": "80", "POSTERN_CONFIG": configuration]
        // The options of `make sanitize` for its sanitizer, and the fault that `make mutants`
        // switches on.
        for name in ["ASAN_OPTIONS", "TSAN_OPTIONS", "POSTERN_MUTANT"] {
            variables[name] = ProcessInfo.processInfo.environment[name]
        }
        variables.merge(environment) { $1 }
        let run = try ProgramRun(
            [Self.executable.path] + arguments, input: Data(input.utf8), environment: variables,
            directory: folder)
        return CommandResult(status: run.status, output: run.output, errors: run.errors)
    }

    /// Runs a command that must succeed, and returns its output without the final newline.
    @discardableResult
    func succeed(
        _ arguments: String..., input: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> String {
        let result = try run(arguments, input: input)
        try #require(
            result.status == 0, "\(arguments): \(result.errors)", sourceLocation: sourceLocation)
        return result.output.hasSuffix("\n") ? String(result.output.dropLast()) : result.output
    }

    /// Runs a command that must fail with this status, one line on standard error that contains
    /// `text`, and no output.
    func fail(
        _ arguments: String..., status: Int32, saying text: String,
        environment: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let result = try run(arguments, environment: environment)
        #expect(
            result.status == status, "\(arguments): \(result.errors)",
            sourceLocation: sourceLocation)
        #expect(result.output == "", sourceLocation: sourceLocation)
        #expect(
            result.errors.hasPrefix("postern: "), "\(result.errors)", sourceLocation: sourceLocation
        )
        #expect(result.errors.hasSuffix("\n"), sourceLocation: sourceLocation)
        #expect(
            result.errors.count(where: { $0 == "\n" }) == 1, "\(result.errors)",
            sourceLocation: sourceLocation)
        #expect(result.errors.contains(text), "\(result.errors)", sourceLocation: sourceLocation)
    }

    /// The object or list that a command printed with --json.
    func json(_ arguments: String...) throws -> Any {
        let result = try run(arguments + ["--json"])
        try #require(result.status == 0, "\(arguments): \(result.errors)")
        return try JSONSerialization.jsonObject(with: Data(result.output.utf8))
    }
}
