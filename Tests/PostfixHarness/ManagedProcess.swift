// Starts a program, follows its output line by line, sends it signals, waits for its end.

import Concurrency
import Foundation

/// A running program. If it still runs when `end` is called or the last reference is released, it
/// is killed.
package final class ManagedProcess: @unchecked Sendable {
    private struct State {
        var output = [String]()
        var partial: [Int: [UInt8]] = [:]
        var openStreams = 2
        var status: Int32?
        /// The pipes that are still open.
        var descriptors: [Int: Int32] = [:]

        /// Reads the waiting octets of a pipe without blocking; false if there are none.
        mutating func takeWaiting(_ index: Int) -> Bool {
            var waiting: Int32 = 0
            guard let descriptor = descriptors[index],
                ioctl(descriptor, UInt(FIONREAD), &waiting) == 0, waiting > 0
            else {
                return false
            }
            var buffer = [UInt8](repeating: 0, count: Int(waiting))
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return false }
            var pending = partial[index, default: []] + buffer[..<count]
            while let end = pending.firstIndex(of: 0x0A) {
                output.append(String(decoding: pending[..<end], as: UTF8.self))
                pending.removeSubrange(...end)
            }
            partial[index] = pending
            return true
        }
    }

    /// The program's path, for messages.
    package let executable: String
    private let process: SystemProcess
    /// Our end of the program's standard input; nil once it is closed.
    private let input: Watched<Int32?>
    private let state = Watched(State())

    /// Starts `executable`; `environment` is added to this process's own. Standard input stays
    /// open until `closeInput`.
    package init(
        _ executable: String, _ arguments: [String] = [], environment: [String: String] = [:],
        directory: String? = nil
    ) throws {
        self.executable = executable
        let (toChild, output, errors) = (
            try SystemProcess.pipe(), try SystemProcess.pipe(), try SystemProcess.pipe()
        )
        input = Watched(toChild.write)
        let state = state
        defer {
            for descriptor in [toChild.read, output.write, errors.write] { close(descriptor) }
        }
        do {
            process = try SystemProcess(
                executable, arguments,
                environment: ProcessInfo.processInfo.environment.merging(environment) { $1 },
                directory: directory, descriptors: (toChild.read, output.write, errors.write))
        } catch {
            for descriptor in [toChild.write, output.read, errors.read] { close(descriptor) }
            throw error
        }
        let process = process
        Thread.detachNewThread {
            let status = process.wait()
            state.with { $0.status = status }
        }
        for (index, descriptor) in [output.read, errors.read].enumerated() {
            Thread.detachNewThread { Self.follow(descriptor, index, state) }
        }
    }

    deinit {
        if isRunning { kill(process.identifier, SIGKILL) }
        closeInput()
    }

    /// Whether it has not ended yet.
    package var isRunning: Bool { state.with { $0.status == nil } }

    private static func follow(_ descriptor: Int32, _ index: Int, _ state: Watched<State>) {
        state.with { $0.descriptors[index] = descriptor }
        var isOpen = true
        while isOpen {
            var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&wanted, 1, -1)
            if ready < 0 && errno == EINTR { continue }
            // Read under the lock, as another thread that requests the output may have taken these
            // octets in between.
            isOpen = state.with { state in
                if state.takeWaiting(index) { return true }
                return wanted.revents & Int16(POLLHUP | POLLERR | POLLNVAL) == 0
            }
        }
        state.with { state in
            state.descriptors[index] = nil
            if let rest = state.partial.removeValue(forKey: index), !rest.isEmpty {
                state.output.append(String(decoding: rest, as: UTF8.self))
            }
            state.openStreams -= 1
        }
        close(descriptor)
    }

    package var identifier: Int32 { process.identifier }

    /// All lines of standard output and standard error so far, in the order they were read.
    package var lines: [String] {
        state.with { state in
            // Output that the program wrote before it answered a client is already in the pipe.
            for index in 0..<2 { while state.takeWaiting(index) {} }
            return state.output
        }
    }

    /// All output so far as text.
    package var output: String { lines.joined(separator: "\n") }

    /// Waits until `find` returns a result for the lines so far.
    package func wait<Result>(
        seconds: Double = standardTimeout, for find: ([String]) -> Result?
    ) -> Result? {
        state.wait(seconds: seconds) { find($0.output) }
    }

    /// Waits for a line that contains `text`, from line `start` on. Throws if none comes, or if the
    /// process ends before.
    @discardableResult
    package func waitForLine(
        containing text: String, from start: Int = 0, seconds: Double = standardTimeout
    ) throws -> String {
        let found: String?? = state.wait(seconds: seconds) { state in
            if let line = state.output.dropFirst(start).first(where: { $0.contains(text) }) {
                return .some(line)
            }
            return state.status != nil && state.openStreams == 0 ? .some(nil) : nil
        }
        guard let found, let line = found else {
            throw HarnessError("\(executable): no line with \"\(text)\"; it wrote:\n\(output)")
        }
        return line
    }

    /// Input that a program does not read before its end is lost.
    package func writeInput(_ text: String) {
        input.with { input in
            guard let input else { return }
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
                guard count > 0 || errno == EINTR else { return }
                rest = rest.dropFirst(max(0, count))
            }
        }
    }

    package func closeInput() {
        input.with { input in
            if let input { close(input) }
            input = nil
        }
    }

    package func signal(_ number: Int32) { if isRunning { kill(process.identifier, number) } }

    /// Waits for the end and all output. Returns the exit status, or 128 + the signal that killed
    /// it.
    @discardableResult
    package func waitForExit(seconds: Double = standardTimeout) throws -> Int32 {
        var (waited, since) = (0.0, 0.0)
        while waited < seconds {
            if let status = state.wait(seconds: 1, for: { $0.openStreams == 0 ? $0.status : nil }) {
                return status
            }
            waited += 1
            // A child process that it left running may keep the output open for as long as it
            // lives.
            guard let status = state.with({ $0.status }) else { continue }
            since += 1
            if since >= 3 { return status }
        }
        throw HarnessError("\(executable) did not end within \(seconds) s; it wrote:\n\(output)")
    }

    /// Kills the program if it still runs, and waits for it.
    package func end() {
        closeInput()
        if isRunning { kill(process.identifier, SIGKILL) }
        _ = state.wait(seconds: 10) { $0.status }
    }

    /// A number of /proc/PID/status in KiB: `VmRSS`, `VmHWM` (its maximum so far).
    package func memory(_ field: String) -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8)
        else { return nil }
        let line = text.split(separator: "\n").first { $0.hasPrefix(field + ":") }
        return line.flatMap { Int($0.filter(\.isNumber)) }
    }

    /// Seconds of processor time that it has used; nil if it has ended.
    package var processorTime: Double? {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(identifier, &clock) == 0, clock_gettime(clock, &time) == 0 else {
            return nil
        }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Runs a program to its end and gives status and output.
    @discardableResult
    package static func run(
        _ executable: String, _ arguments: [String] = [], environment: [String: String] = [:],
        input: String = ""
    ) throws -> (status: Int32, output: String) {
        let process = try ManagedProcess(executable, arguments, environment: environment)
        process.writeInput(input)
        process.closeInput()
        let status = try process.waitForExit()
        return (status, process.output)
    }

    /// An executable that was built together with this one.
    package static func builtProduct(_ name: String) throws -> String {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent(
            name
        ).path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw HarnessError("\(path) was not built")
        }
        return path
    }
}
