// A program of this machine, run to its end: Postfix's tools, and those that a probe asks.

import Foundation

package struct ToolRun: Sendable {
    /// 0 where it ended well.
    package let status: Int32
    package let output: String
    package let errors: String

    /// Runs a program without input. Throws where it cannot be started.
    package init(_ path: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        // Errors are short (far below a pipe's 64 KiB), so reading them after the output cannot block the tool.
        self.output = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        self.errors = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        status = process.terminationStatus
    }

    /// The first executable file of this name in these folders; nil where there is none.
    package static func find(_ tool: String, in folders: [String]) -> String? {
        folders.map { "\($0)/\(tool)" }.first(where: FileManager.default.isExecutableFile(atPath:))
    }
}
