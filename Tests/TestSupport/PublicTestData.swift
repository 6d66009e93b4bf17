// Where the package is, and the public test data that is not in this repository.

import Foundation
import Testing

/// Folders that tests read.
package enum Folders {
    /// The root of the package.
    package static let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    /// Public test data: `POSTERN_CONFORMANCE`, else `../shared/conformance` beside the package.
    package static let conformance =
        ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"].map { URL(filePath: $0) }
        ?? package.deletingLastPathComponent().appending(path: "shared/conformance")
    /// Whether it is there.
    package static let hasConformance = FileManager.default.fileExists(atPath: conformance.path)
    /// Why a suite that needs it does not run.
    package static let skipped: Comment = "skipped: no public test data; POSTERN_CONFORMANCE names its folder"

    /// Makes an empty folder with a name that no other has.
    package static func temporary(_ name: String) throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(name)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }
}
