// The private folder of a sandbox. Its process locks a file in it, so that a later start recognizes
// the folders of killed processes.

import Foundation
import Glibc
import Support

/// The folder with all files of a sandbox.
final class SandboxFolder {
    private static let start = "postern-sandbox-"
    private static let lockName = "lock"

    let url: URL
    private let lock: Int32

    private init(url: URL, lock: Int32) { (self.url, self.lock) = (url, lock) }

    /// Removes the folders of killed sandboxes, and makes a new one (mode 0700) in the temporary
    /// folder. Throws the errors of `FileManager`.
    static func make() throws -> SandboxFolder {
        let parent = FileManager.default.temporaryDirectory
        sweep(parent)
        let url = parent.appendingPathComponent(start + UUID().uuidString)
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let lock = open(
            url.appendingPathComponent(lockName).path,
            O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            if lock >= 0 { close(lock) }
            try? FileManager.default.removeItem(at: url)
            throw CocoaError(.fileWriteUnknown)
        }
        return SandboxFolder(url: url, lock: lock)
    }

    /// Only folders of this user whose lock no process has. A folder without a lock file is being
    /// made.
    private static func sweep(_ parent: URL) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
        for name in names where name.utf8.starts(with: start.utf8) {
            let url = parent.appendingPathComponent(name)
            var status = stat()
            guard lstat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR,
                status.st_uid == geteuid()
            else { continue }
            let lock = open(
                url.appendingPathComponent(lockName).path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            guard lock >= 0 else { continue }
            if flock(lock, LOCK_EX | LOCK_NB) == 0 { try? FileManager.default.removeItem(at: url) }
            close(lock)
        }
    }

    func remove() {
        try? FileManager.default.removeItem(at: url)
        close(lock)
    }
}
