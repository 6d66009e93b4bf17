// Standard input for the --batch modes, line by line in bounded memory, and the
// output of the responses.

import Foundation
import Support

/// Reads standard input line by line.
struct BatchInput {
    private let maximum: Int
    private var block = [UInt8](repeating: 0, count: 1 << 16)
    /// Octets that were read but not yet returned.
    private var rest: ArraySlice<UInt8> = []
    private var isFirst = true

    /// - Parameter maximum: the maximum number of octets of a line. Of a longer line, one octet
    ///   more than this is returned; the rest is skipped.
    init(maximum: Int) { self.maximum = maximum }

    /// The next line that is not blank, without its line end; nil at the end of the input. Throws
    /// `CommandError` if it cannot be read.
    mutating func next() throws -> [UInt8]? {
        while var line = try nextOfAll() {
            if isFirst, let fault = PlainText.fileFault(line[...]) {
                throw CommandError.data("standard input: \(fault)")
            }
            if isFirst, line.starts(with: PlainText.byteOrderMark) {
                line.removeFirst(PlainText.byteOrderMark.count)
            }
            isFirst = false
            if !line.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) { return line }
        }
        return nil
    }

    private mutating func nextOfAll() throws -> [UInt8]? {
        var line: [UInt8] = []
        while true {
            let end = rest.firstIndex(of: 0x0A)
            line += rest[..<(end ?? rest.endIndex)].prefix(maximum + 1 - line.count)
            if let end {
                rest = rest[(end + 1)...]
                return line
            }
            guard try fill() else { return line.isEmpty ? nil : line }
        }
    }

    /// Reads the next block. False at the end of the input.
    private mutating func fill() throws -> Bool {
        while true {
            let count = read(STDIN_FILENO, &block, block.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw CommandError.noInput("standard input: \(Failure.words(errno))")
            }
            rest = block[..<count]
            return count > 0
        }
    }
}

/// Writes octets to standard output.
enum BatchOutput {
    /// Writes all octets at once. Throws `CommandError` if they cannot be written,
    /// for example on a full disk.
    static func write(_ data: Data) throws {
        var rest = Array(data)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Foundation.write(STDOUT_FILENO, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw CommandError(
                    status: EX_IOERR, message: "standard output: \(Failure.words(errno))")
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Writes a line.
    static func write(line: String) throws { try write(Data((line + "\n").utf8)) }
}
