// A database file, mapped into memory as a whole and once for all connections of the process.

import CPrefetch
import Glibc
import Synchronization

/// The pages of a database file as memory that is shared with the system's cache: reading one is no system call and no copy.
/// SQLite maps for itself too, but each connection again, and of a file no more than 2 GB as Debian builds it.
///
/// What is mapped reaches beyond the end of the file, so that nothing moves when it grows; no one is given what is not there yet.
/// The file is one that changes in place: what another connection or process writes is seen at once, as in a read(2).
final class MappedFile: Sendable {
    /// Address space taken for a file, octets; it costs nothing until pages are touched. What is beyond is read by SQLite itself.
    static let reach = 1 << 38

    /// Which file it is, whatever its name.
    private struct Identity: Hashable, Sendable {
        let device: UInt
        let number: UInt
    }

    private struct Entry {
        let file: MappedFile
        var users: Int
    }

    private static let files = Mutex([Identity: Entry]())

    private let identity: Identity
    /// -1 where the file could not be opened a second time.
    private let descriptor: Int32
    /// 0 where the file is not mapped.
    private let start: UInt
    /// Octets that the file has at least.
    private let size: Atomic<Int>

    /// Whether pages can be had from here. A file system or a limit may not allow it; SQLite then maps or reads for itself.
    var isMapped: Bool { start != 0 }

    /// The mapping of the file at `path`, shared with all who have it already; to be given back with `release`, mapped or not.
    /// Nil for what is not a file.
    static func of(_ path: UnsafePointer<CChar>) -> MappedFile? {
        files.withLock { files in
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
            let identity = Identity(device: UInt(status.st_dev), number: UInt(status.st_ino))
            if files[identity] == nil {
                files[identity] = Entry(file: MappedFile(path, identity), users: 0)
            }
            files[identity]?.users += 1
            return files[identity]?.file
        }
    }

    /// The last one to give it back unmaps. That closes a descriptor of the file, and by POSIX all locks of the process on the
    /// file end with it: so only after SQLite has closed its own, and under the lock under which others begin.
    func release() {
        Self.files.withLock { files in
            files[identity]?.users -= 1
            guard files[identity]?.users == 0 else { return }
            files[identity] = nil
            if isMapped { munmap(UnsafeMutableRawPointer(bitPattern: start), Self.reach) }
            if descriptor >= 0 { close(descriptor) }
        }
    }

    /// A descriptor that turns out to be of no use is kept all the same, until `release`.
    private init(_ path: UnsafePointer<CChar>, _ identity: Identity) {
        self.identity = identity
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        // Between name and descriptor the file may have become another one.
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, UInt(status.st_dev) == identity.device,
            UInt(status.st_ino) == identity.number,
            let start = mmap(nil, Self.reach, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor, 0), start != MAP_FAILED
        else {
            start = 0
            size = Atomic(0)
            return
        }
        self.start = UInt(bitPattern: start)
        size = Atomic(Int(status.st_size))
    }

    /// Where the octets stand, or nil where the file is not that long: touching them would end the process.
    func octets(at offset: Int64, count: Int32) -> UnsafeMutableRawPointer? {
        guard isMapped, offset >= 0, count >= 0, offset <= Int64(Self.reach) - Int64(count) else { return nil }
        let end = Int(offset) + Int(count)
        guard end <= size.load(ordering: .acquiring) || end <= look() else { return nil }
        let octets = UnsafeMutableRawPointer(bitPattern: start + UInt(offset))
        // A page of a large file is in no cache, and not even its place is. SQLite looks at its head and into the list of its
        // rows next, which is as far as this asks for at once; one after another each would be waited for.
        postern_prefetch(octets)
        return octets
    }

    /// How long the file is now.
    @discardableResult
    func look() -> Int {
        var status = stat()
        let length = descriptor >= 0 && fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
        size.store(length, ordering: .releasing)
        return length
    }

    /// The file is about to end at `offset`.
    func shrinks(to offset: Int64) {
        let current = size.load(ordering: .acquiring)
        if Int64(current) > offset { size.store(Int(max(0, offset)), ordering: .releasing) }
    }
}
