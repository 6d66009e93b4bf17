// Runs a program of this machine to its end: Postfix's tools, and those that a probe uses.

import Concurrency
import Foundation

package struct ToolRun: Sendable {
    /// 0 if it succeeded; 128 + signal if it was killed.
    package let status: Int32
    package var output: String { String(decoding: octets, as: UTF8.self) }
    /// The unchanged output.
    package let octets: [UInt8]
    package let errors: String

    /// Runs a program without input. Throws if it cannot be started. Blocks.
    package init(_ path: String, _ arguments: [String]) throws {
        let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
        defer { close(nothing) }
        let output = try SystemProcess.pipe()
        defer { close(output.read) }
        let errors: (read: Int32, write: Int32)
        do { errors = try SystemProcess.pipe() } catch {
            close(output.write)
            throw error
        }
        defer { close(errors.read) }
        let process: SystemProcess
        do {
            // Our ends are closed at once, so that reading ends when the last process with the
            // pipes has closed them.
            defer { for end in [output.write, errors.write] { close(end) } }
            process = try SystemProcess(
                path, arguments, environment: ProcessInfo.processInfo.environment,
                descriptors: (nothing, output.write, errors.write))
        }
        let texts = Self.read([output.read, errors.read])
        (octets, self.errors) = (texts[0], String(decoding: texts[1], as: UTF8.self))
        status = process.wait()
    }

    /// Reads both pipes in any order, so that a program that fills one of them does not block.
    private static func read(_ descriptors: [Int32]) -> [[UInt8]] {
        var octets = descriptors.map { _ in [UInt8]() }
        var wanted = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var part = [UInt8](repeating: 0, count: 65_536)
        // poll(2) ignores a negative descriptor.
        while wanted.contains(where: { $0.fd >= 0 }) {
            guard poll(&wanted, nfds_t(wanted.count), -1) >= 0 || errno == EINTR else { break }
            for index in wanted.indices where wanted[index].fd >= 0 && wanted[index].revents != 0 {
                let count = Foundation.read(wanted[index].fd, &part, part.count)
                if count > 0 {
                    octets[index] += part[..<count]
                } else if count == 0 || errno != EINTR && errno != EAGAIN {
                    wanted[index].fd = -1
                }
            }
        }
        return octets
    }

    /// The first executable file of this name in these folders; nil if there is none.
    package static func find(_ tool: String, in folders: [String]) -> String? {
        folders.map { "\($0)/\(tool)" }.first(where: FileManager.default.isExecutableFile(atPath:))
    }
}
