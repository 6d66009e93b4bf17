// Programs that tests run to their end.

import Concurrency
import Foundation

/// The result of a program. Its output goes to files, so that it never waits for its reader, and no
/// other child has them open.
package struct ProgramRun: Sendable {
    /// As in a shell: 128 + signal if a signal killed it.
    package let status: Int32
    package let standardOutput: Data
    package let standardError: Data

    package var output: String { String(decoding: standardOutput, as: UTF8.self) }
    package var errors: String { String(decoding: standardError, as: UTF8.self) }

    /// Runs a program, found as in a shell, and waits for its end.
    /// - Parameters:
    ///   - environment: the program's whole environment; that of this process if nil.
    ///   - directory: its working directory; the present one if nil.
    package init(
        _ command: [String], input: Data = Data(), environment: [String: String]? = nil,
        directory: URL? = nil
    ) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-run-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (read, output, errors) = (
            folder.appendingPathComponent("in"), folder.appendingPathComponent("out"),
            folder.appendingPathComponent("err")
        )
        try input.write(to: read)
        for file in [output, errors] { try Data().write(to: file) }
        let files = [
            try FileHandle(forReadingFrom: read), try FileHandle(forWritingTo: output),
            try FileHandle(forWritingTo: errors),
        ]
        let process = try SystemProcess(
            "/usr/bin/env", command,
            environment: environment ?? ProcessInfo.processInfo.environment,
            directory: directory?.path,
            descriptors: (files[0].fileDescriptor, files[1].fileDescriptor, files[2].fileDescriptor)
        )
        status = process.wait()
        for file in files { try file.close() }
        (standardOutput, standardError) = (
            try Data(contentsOf: output), try Data(contentsOf: errors)
        )
    }

    /// Runs a program that must succeed.
    @discardableResult
    package static func succeed(
        _ command: [String], input: Data = Data(), environment: [String: String]? = nil,
        directory: URL? = nil
    ) throws -> ProgramRun {
        let run = try ProgramRun(
            command, input: input, environment: environment, directory: directory)
        guard run.status == 0 else { throw ProgramFailure(command: command, run: run) }
        return run
    }
}

/// A program that had to succeed did not.
package struct ProgramFailure: Error, CustomStringConvertible {
    let command: [String]
    let run: ProgramRun

    package var description: String {
        "\(command.joined(separator: " ")) ended with \(run.status): \(run.errors)"
    }
}
