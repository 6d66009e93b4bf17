// The folder of the package, and the public test data that is not in this repository.

import Foundation
import Testing

/// Folders that tests read.
package enum Folders {
    /// The root of the package.
    package static let package = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent()
    /// Public test data: `POSTERN_CONFORMANCE`, or `../shared/conformance` beside the package.
    package static let conformance =
        ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"].map { URL(filePath: $0) }
        ?? package.deletingLastPathComponent().appending(path: "shared/conformance")
    /// Whether it exists.
    package static let hasConformance = FileManager.default.fileExists(atPath: conformance.path)
    /// The reason why a suite that needs it does not run.
    package static let skipped: Comment =
        "skipped: no public test data; POSTERN_CONFORMANCE names its folder"

    /// Creates an empty folder with a unique name.
    package static func temporary(_ name: String) throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "\(name)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }
}
