// Root reads everything: whether the service's own user can read its files too.

import Foundation
import Glibc

/// The user that `postern serve` runs as: the owner of the folder with the key file.
struct ServiceUser {
    let name: String
    private let user: uid_t
    private let groups: [gid_t]

    /// Nil where this process is not root's, or the service is.
    init?(ownerOf folder: String) {
        var status = stat()
        guard geteuid() == 0, stat(folder, &status) == 0, status.st_uid != 0 else { return nil }
        user = status.st_uid
        guard let entry = getpwuid(user)?.pointee else {
            (name, groups) = ("\(status.st_uid)", [])
            return
        }
        name = String(cString: entry.pw_name)
        var count: Int32 = 64
        var found = [gid_t](repeating: 0, count: Int(count))
        groups = getgrouplist(entry.pw_name, entry.pw_gid, &found, &count) >= 0 ? Array(found.prefix(Int(count))) : [entry.pw_gid]
    }

    /// Whether the user can read a file; true where there is none.
    func canRead(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return true }
        let mode = status.st_mode
        if status.st_uid == user { return mode & S_IRUSR != 0 }
        return groups.contains(status.st_gid) ? mode & S_IRGRP != 0 : mode & S_IROTH != 0
    }
}
