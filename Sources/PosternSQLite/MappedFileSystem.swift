// What SQLite asks of the file system (its VFS, https://sqlite.org/vfs.html), with main database files mapped.

import GRDBSQLite
import Glibc

/// SQLite's own VFS, but that pages of main database files come from `MappedFile` where a connection has `mmap_size` above 0.
/// Locks, writing, syncing, the log and its index remain SQLite's.
enum MappedFileSystem {
    /// Makes it the process's default, once. Where that fails SQLite goes on unchanged.
    static let isRegistered: Bool = {
        guard let original = sqlite3_vfs_find(nil), original.pointee.iVersion >= 1, let name = strdup("postern-mapped") else {
            return false
        }
        let layout = (Int(original.pointee.szOsFile) + MemoryLayout<OpenFile>.alignment - 1) & -MemoryLayout<OpenFile>.alignment
        let ours = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        ours.initialize(to: original.pointee)
        ours.pointee.pNext = nil
        ours.pointee.zName = UnsafePointer(name)
        ours.pointee.szOsFile = Int32(layout + MemoryLayout<OpenFile>.size)
        ours.pointee.xOpen = open
        (Self.original, offset) = (original, layout)
        return sqlite3_vfs_register(ours, 1) == SQLITE_OK
    }()

    /// What we know of a file, behind what SQLite's own functions keep of it.
    private struct OpenFile {
        let mapping: Unmanaged<MappedFile>
        let original: UnsafePointer<sqlite3_io_methods>
        let ours: UnsafeMutablePointer<sqlite3_io_methods>
    }

    // Set before the VFS is registered, and never again.
    nonisolated(unsafe) private static var original: UnsafeMutablePointer<sqlite3_vfs>?
    nonisolated(unsafe) private static var offset = 0

    private static func known(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<OpenFile>? {
        file.map { (UnsafeMutableRawPointer($0) + offset).assumingMemoryBound(to: OpenFile.self) }
    }

    /// Opens as SQLite does, and puts our functions in place of some of its own for a main database.
    private static let open:
        @convention(c) (
            UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?, UnsafeMutablePointer<sqlite3_file>?, Int32,
            UnsafeMutablePointer<Int32>?
        ) -> Int32 = { _, name, file, flags, taken in
            guard let original, let xOpen = original.pointee.xOpen else { return SQLITE_CANTOPEN }
            let status = xOpen(original, name, file, flags, taken)
            guard status == SQLITE_OK, flags & SQLITE_OPEN_MAIN_DB != 0, let name, let file, let known = known(file),
                let methods = file.pointee.pMethods, methods.pointee.iVersion >= 3, let mapping = MappedFile.of(name)
            else { return status }
            let ours = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
            ours.initialize(to: methods.pointee)
            ours.pointee.xClose = close
            if mapping.isMapped {
                ours.pointee.xFetch = fetch
                ours.pointee.xUnfetch = unfetch
                ours.pointee.xTruncate = truncate
                ours.pointee.xFileControl = control
            }
            known.initialize(to: OpenFile(mapping: .passUnretained(mapping), original: methods, ours: ours))
            file.pointee.pMethods = UnsafePointer(ours)
            return status
        }

    /// What SQLite calls for each page.
    private static let fetch:
        @convention(c) (
            UnsafeMutablePointer<sqlite3_file>?, Int64, Int32, UnsafeMutablePointer<UnsafeMutableRawPointer?>?
        ) -> Int32 = { file, offset, count, page in
            // No page is an answer too: SQLite then reads it.
            page?.pointee = known(file)?.pointee.mapping._withUnsafeGuaranteedRef { $0.octets(at: offset, count: count) }
            return SQLITE_OK
        }

    /// The mapping outlives every page that was handed out, so there is nothing to count. No page: others may have shortened the
    /// file.
    private static let unfetch: @convention(c) (UnsafeMutablePointer<sqlite3_file>?, Int64, UnsafeMutableRawPointer?) -> Int32 = {
        file, _, page in
        if page == nil { known(file)?.pointee.mapping._withUnsafeGuaranteedRef { _ = $0.look() } }
        return SQLITE_OK
    }

    private static let truncate: @convention(c) (UnsafeMutablePointer<sqlite3_file>?, Int64) -> Int32 = { file, size in
        guard let known = known(file), let xTruncate = known.pointee.original.pointee.xTruncate else { return SQLITE_IOERR }
        known.pointee.mapping._withUnsafeGuaranteedRef { $0.shrinks(to: size) }
        return xTruncate(file, size)
    }

    /// SQLite is not told of `mmap_size`, so that it maps nothing beside us; what was asked for stands as the answer.
    private static let control:
        @convention(c) (
            UnsafeMutablePointer<sqlite3_file>?, Int32, UnsafeMutableRawPointer?
        ) -> Int32 = { file, operation, argument in
            guard operation != SQLITE_FCNTL_MMAP_SIZE else { return SQLITE_OK }
            guard let xFileControl = known(file)?.pointee.original.pointee.xFileControl else { return SQLITE_NOTFOUND }
            return xFileControl(file, operation, argument)
        }

    private static let close: @convention(c) (UnsafeMutablePointer<sqlite3_file>?) -> Int32 = { file in
        guard let file, let known = known(file) else { return SQLITE_IOERR }
        let (mapping, ours) = (known.pointee.mapping.takeUnretainedValue(), known.pointee.ours)
        file.pointee.pMethods = known.pointee.original
        let status = file.pointee.pMethods.pointee.xClose?(file) ?? SQLITE_IOERR
        mapping.release()
        ours.deallocate()
        return status
    }
}
