// Free space on a disk.

import Glibc

/// The space on the disk that holds a folder, in octets.
package struct DiskSpace: Sendable, Hashable {
    /// Available to users other than root.
    package let free: UInt64
    package let total: UInt64

    /// Nil if the folder cannot be examined.
    package init?(of folder: String) {
        var space = statvfs()
        guard statvfs(folder, &space) == 0 else { return nil }
        free = UInt64(space.f_bavail) * UInt64(space.f_frsize)
        total = UInt64(space.f_blocks) * UInt64(space.f_frsize)
    }
}
