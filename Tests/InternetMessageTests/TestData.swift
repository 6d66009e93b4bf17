// The places of test data: vectors next to the tests, public data in the conformance folder.
import Foundation
import Testing

enum TestData {
    /// The package root, derived from the path of this file.
    static let packageRoot = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent()

    /// `POSTERN_CONFORMANCE`, or otherwise `../shared/conformance` next to the package; nil if it
    /// is absent.
    static let conformance: URL? = {
        let named = ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"]
        let folder =
            named.map { URL(filePath: $0) }
            ?? packageRoot.deletingLastPathComponent().appending(path: "shared/conformance")
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: folder.path, isDirectory: &isFolder)
            && isFolder.boolValue ? folder : nil
    }()

    static let skipReason: Comment = "skipped: no conformance folder (set POSTERN_CONFORMANCE)"

    /// All regular files below the folders, sorted; a test that gets none must fail.
    static func files(_ folders: [String]) -> [URL] {
        guard let root = conformance else { return [] }
        return folders.flatMap { folder -> [URL] in
            let walker = FileManager.default.enumerator(
                at: root.appending(path: folder), includingPropertiesForKeys: [.isRegularFileKey])
            return (walker?.allObjects as? [URL] ?? []).filter {
                (try? $0.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) == true
            }
        }.sorted { $0.path < $1.path }
    }

    static func bytes(_ url: URL) throws -> [UInt8] { [UInt8](try Data(contentsOf: url)) }

    static func json<T: Decodable>(_ path: String, as type: T.Type) throws -> T {
        let root = try #require(conformance)
        return try JSONDecoder().decode(type, from: Data(contentsOf: root.appending(path: path)))
    }

    /// A vector file of this target: its lines, without comments (`#`) and empty lines.
    static func vectors(_ path: String) throws -> [String] {
        let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors")
            .appending(path: path)
        let lines = try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map(
            String.init
        )
        .filter { !$0.hasPrefix("#") && !$0.allSatisfy(\.isWhitespace) }
        try #require(!lines.isEmpty, "no vectors in \(path)")
        return lines
    }

    /// Decodes `\r \n \t \0 \\ \xHH` in a vector.
    static func unescaped(_ text: some StringProtocol) -> [UInt8] {
        var output = [UInt8]()
        var octets = Array(text.utf8)[...]
        while let octet = octets.popFirst() {
            guard octet == UInt8(ascii: "\\"), let kind = octets.popFirst() else {
                output.append(octet)
                continue
            }
            switch kind {
            case UInt8(ascii: "r"): output.append(0x0D)
            case UInt8(ascii: "n"): output.append(0x0A)
            case UInt8(ascii: "t"): output.append(0x09)
            case UInt8(ascii: "0"): output.append(0)
            case UInt8(ascii: "x"):
                output.append(
                    UInt8(String(decoding: octets.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                octets = octets.dropFirst(2)
            default: output.append(kind)
            }
        }
        return output
    }
}

extension String {
    var octets: [UInt8] { Array(utf8) }
}
