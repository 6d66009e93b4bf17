// The public messages for the leak tests, and the path of leakcheck.py.

import Foundation
import TestSupport

enum Corpus {
    static let root = Folders.conformance.standardizedFileURL

    static let leakcheck: URL =
        ProcessInfo.processInfo.environment["POSTERN_LEAKCHECK"].map { URL(fileURLWithPath: $0) }
        ?? Folders.package.appendingPathComponent("../shared/tools/leakcheck.py")
        .standardizedFileURL

    static var isThere: Bool { FileManager.default.fileExists(atPath: root.path) }
    static var hasLeakcheck: Bool { FileManager.default.fileExists(atPath: leakcheck.path) }

    /// Without optimisation large files would take minutes; `swift test -c release -Xswiftc
    /// -enable-testing` uses all of them.
    #if DEBUG
    static let sizeLimit = 250_000
    #else
    static let sizeLimit = Int.max
    #endif

    struct Entry {
        /// Path below the root.
        let name: String
        let bytes: [UInt8]
    }

    /// Every file of a folder that may be a message, by its extension (nil: any), in a stable
    /// order.
    static func entries(
        _ folder: String, extensions: Set<String>? = ["eml", "txt", "msg", "ics", "out", ""]
    ) -> [Entry] {
        let base = root.appendingPathComponent(folder)
        guard let files = FileManager.default.enumerator(at: base, includingPropertiesForKeys: nil)
        else { return [] }
        var entries: [Entry] = []
        for case let file as URL in files
        where !file.path.contains("/LICENSES/")
            && extensions?.contains(file.pathExtension.lowercased()) ?? true
        {
            let stem = file.deletingPathExtension().lastPathComponent.uppercased()
            guard
                !["README", "LICENSE", "LICENCE", "COPYING", "NOTICE", "MIT-LICENSE", "AUTHORS"]
                    .contains(where: {
                        stem.hasPrefix($0)
                    }),
                let data = try? Data(contentsOf: file), data.count <= sizeLimit
            else { continue }
            entries.append(
                Entry(
                    name: folder + String(file.path.dropFirst(base.path.count)),
                    bytes: [UInt8](data)))
        }
        return entries.sorted { $0.name < $1.name }
    }

    /// The message with the line ends that Postfix passes on.
    static func crlf(_ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + bytes.count / 32)
        for (index, octet) in bytes.enumerated() {
            if octet == 0x0A, index == 0 || bytes[index - 1] != 0x0D { output.append(0x0D) }
            output.append(octet)
        }
        return output
    }
}

/// Reproducible randomness.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: some Sequence<UInt8>) {
        state = seed.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    mutating func next() -> UInt64 {
        state = state &+ 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func word(
        _ length: Int, from alphabet: String = "abcdefghijklmnopqrstuvwxyz0123456789"
    ) -> String {
        let letters = Array(alphabet)
        return String((0..<length).map { _ in letters[Int(next() % UInt64(letters.count))] })
    }
}
