// The room on a disk.

import Glibc

/// The room on the disk that a folder is on, in octets.
package struct DiskSpace: Sendable, Hashable {
    /// What whoever is not root can still take.
    package let free: UInt64
    package let total: UInt64

    /// Nil where the folder cannot be looked at.
    package init?(of folder: String) {
        var space = statvfs()
        guard statvfs(folder, &space) == 0 else { return nil }
        free = UInt64(space.f_bavail) * UInt64(space.f_frsize)
        total = UInt64(space.f_blocks) * UInt64(space.f_frsize)
    }
}
