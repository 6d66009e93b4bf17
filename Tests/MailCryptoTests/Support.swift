// Shared by these tests: hex, the conformance folder, a counter of open handles.

import Foundation
import Support

/// Octets from hex; white space is ignored.
func hex(_ text: String) -> [UInt8] {
    Hex.decode(text.utf8.filter { $0 > 0x20 }) ?? []
}

enum Conformance {
    /// The public test data: `POSTERN_CONFORMANCE`, or otherwise ../shared/conformance next to the
    /// package.
    static let folder: URL = {
        if let path = ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"] {
            return URL(fileURLWithPath: path)
        }
        return URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("shared/conformance")
    }()

    static var isPresent: Bool { FileManager.default.fileExists(atPath: folder.path) }
}
