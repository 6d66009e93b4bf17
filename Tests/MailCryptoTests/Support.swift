// What these tests share: hex, the conformance folder, a counter of open handles.

import Foundation

/// Octets from hex; white space is ignored.
func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap { $0.hexDigitValue.map(UInt8.init) }
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

enum Conformance {
    /// The public test data: `POSTERN_CONFORMANCE`, else ../shared/conformance beside the package.
    static let folder: URL = {
        if let path = ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"] { return URL(fileURLWithPath: path) }
        return URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("shared/conformance")
    }()

    static var isPresent: Bool { FileManager.default.fileExists(atPath: folder.path) }
}
