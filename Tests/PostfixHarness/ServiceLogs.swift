// The logs of services that tests started, kept for a search at the end of the complete run
// (scripts/search-logs).

import Foundation

/// If POSTERN_TEST_LOGS names a folder: one file of lines and one of inboxes for each service.
package enum ServiceLogs {
    /// Keeps the output of a service, and the inbox addresses that must not be in it. Does nothing
    /// without the variable.
    package static func keep(_ lines: [String], inboxes: Set<String>) {
        guard let folder = ProcessInfo.processInfo.environment["POSTERN_TEST_LOGS"], !folder.isEmpty
        else { return }
        let name = folder + "/" + UUID().uuidString
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try? Data((lines.joined(separator: "\n") + "\n").utf8).write(
            to: URL(fileURLWithPath: name + ".log"))
        try? Data(inboxes.sorted().map { $0 + "\n" }.joined().utf8).write(
            to: URL(fileURLWithPath: name + ".inboxes"))
    }
}
