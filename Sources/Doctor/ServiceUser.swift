// Root can read every file. This finds out whether the service's own user can read its files too.

import Foundation
import Glibc

/// The user that `postern serve` runs as: the owner of the folder with the database, the key file
/// or the configuration.
struct ServiceUser {
    let name: String
    private let user: uid_t
    private let groups: [gid_t]

    /// Nil if this process does not run as root, or the service does.
    init?(ownerOf folders: [String]) {
        guard geteuid() == 0 else { return nil }
        let owner = folders.lazy.compactMap { folder -> uid_t? in
            var status = stat()
            return stat(folder, &status) == 0 && status.st_uid != 0 ? status.st_uid : nil
        }.first
        guard let owner else { return nil }
        user = owner
        guard let entry = getpwuid(user)?.pointee else {
            (name, groups) = ("\(owner)", [])
            return
        }
        name = String(cString: entry.pw_name)
        var count: Int32 = 64
        var found = [gid_t](repeating: 0, count: Int(count))
        groups =
            getgrouplist(entry.pw_name, entry.pw_gid, &found, &count) >= 0
            ? Array(found.prefix(Int(count))) : [entry.pw_gid]
    }

    /// Whether the user can read a file, and reach it through its folders; true if the file does
    /// not exist.
    func canRead(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return true }
        guard may(status, (S_IRUSR, S_IRGRP, S_IROTH)) else { return false }
        var folder = URL(filePath: path).deletingLastPathComponent()
        while true {
            var status = stat()
            guard stat(folder.path, &status) == 0, may(status, (S_IXUSR, S_IXGRP, S_IXOTH)) else {
                return false
            }
            let above = folder.deletingLastPathComponent()
            guard above.path != folder.path, above.path.utf8.count < folder.path.utf8.count else {
                return true
            }
            folder = above
        }
    }

    private func may(_ status: stat, _ bits: (own: mode_t, group: mode_t, others: mode_t)) -> Bool {
        let mode = status.st_mode
        if status.st_uid == user { return mode & bits.own != 0 }
        return groups.contains(status.st_gid) ? mode & bits.group != 0 : mode & bits.others != 0
    }
}
