// A disk: its free space, and whether it belongs to another machine.

import Glibc

/// The space on the disk that contains a folder, in octets.
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

/// A file system of another machine. Its locks and caches differ from those of this one
/// (statfs(2)).
package enum NetworkFileSystem: String, Sendable, CaseIterable {
    case nfs = "NFS"
    case smb = "SMB"
    case ceph = "Ceph"
    case afs = "AFS"

    private static let numbers: [UInt32: NetworkFileSystem] = [
        0x6969: .nfs, 0x517B: .smb, 0xFE53_4D42: .smb, 0xFF53_4D42: .smb, 0x00C3_6400: .ceph,
        0x5346_414F: .afs,
        0x6B41_4653: .afs,
    ]

    /// - Parameter number: the type of a file system, as the system numbers it.
    package init?(number: UInt32) {
        guard let known = Self.numbers[number] else { return nil }
        self = known
    }

    /// - Parameter path: a file or a folder.
    /// - Returns: nil if it is on a disk of this machine, or cannot be examined.
    package init?(of path: String) {
        // The type is the first word of 120 octets.
        let number = withUnsafeTemporaryAllocation(of: Int.self, capacity: 64) { words -> Int? in
            guard let words = words.baseAddress, statfs(path, words) == 0 else { return nil }
            return words.pointee
        }
        guard let number else { return nil }
        self.init(number: UInt32(truncatingIfNeeded: number))
    }
}

// Swift's Glibc module leaves it out.
@_silgen_name("statfs")
private func statfs(_ path: UnsafePointer<CChar>, _ system: UnsafeMutablePointer<Int>) -> Int32
