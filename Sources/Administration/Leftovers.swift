// Temporary copies of a store that commands create. Copies of a command that ended too early are
// deleted later.

import Foundation

/// Files and folders whose names are a stem, the id of the process that created them, and possibly
/// a suffix.
package struct Leftovers: Sendable, Hashable {
    private let folder: String
    private let stem: String

    /// - Parameters:
    ///   - folder: the folder that they are in.
    ///   - stem: the beginning of their names, up to the process id.
    package init(folder: String, stem: String) { (self.folder, self.stem) = (folder, stem) }

    /// The files of `StoreBackup.make` before a backup gets its final name.
    package static func backups(at file: String) -> Leftovers {
        Leftovers(beside: file, ".incomplete-")
    }

    /// The copies of the database that a rehearsal on SQLite creates.
    package static func rehearsals(of database: String) -> Leftovers {
        Leftovers(beside: database, "-rehearsal-")
    }

    private init(beside file: String, _ end: String) {
        let url = URL(fileURLWithPath: file)
        self.init(folder: url.deletingLastPathComponent().path, stem: url.lastPathComponent + end)
    }

    /// The path of this process.
    package var ownPath: String { "\(folder)/\(stem)\(getpid())" }

    /// Deletes those of processes that have ended.
    package func removeAbandoned() {
        remove { process in kill(process, 0) != 0 && errno == ESRCH }
    }

    /// Deletes those of this process.
    package func removeOwn() { remove { $0 == getpid() } }

    private func remove(_ isGone: (pid_t) -> Bool) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        where name.utf8.starts(with: stem.utf8) {
            let rest = name.utf8.dropFirst(stem.utf8.count)
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            // Another file's name may begin in the same way.
            guard rest.dropFirst(digits.count).first.map({ $0 == UInt8(ascii: "-") }) ?? true,
                let process = pid_t(String(decoding: digits, as: UTF8.self)), isGone(process)
            else { continue }
            try? FileManager.default.removeItem(atPath: "\(folder)/\(name)")
        }
    }
}
