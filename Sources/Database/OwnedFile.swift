// Files that commands create, often as root in a folder of the service. Links of the service's user
// cannot redirect them, and new files belong to that user, so that the service can use them.

import Glibc

/// Opens and creates files. Users other than root get what the system allows, as with open(2). Root
/// follows a symbolic link at the end of a path only if root created it, and gives new files to the
/// owner and group of their folder.
package enum OwnedFile {
    /// Maximum number of links to follow in a chain; as in the kernel, more count as a loop.
    private static let maximumLinks = 40

    /// `O_PATH` of open(2), which Swift does not import: opens the path itself, even a link,
    /// without its contents.
    private static let place: Int32 = 0o10_000_000

    /// The reason why a file cannot be opened. Names the path.
    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        package let path: String
        /// `errno`.
        package let code: Int32
        package let reason: String

        package var description: String { "\(path): \(reason)" }
    }

    /// Opens a file, or creates it.
    /// - Parameters:
    ///   - flags: as for open(2); `O_CLOEXEC` is added.
    ///   - mode: of a new file.
    /// - Returns: the descriptor, which the caller must close.
    package static func open(
        _ path: String, _ flags: Int32, mode: mode_t = 0o600
    ) throws(Failure) -> Int32 {
        // In these folders the kernel's links point to open files, not to paths.
        let isSystems = path.hasPrefix("/dev/") || path.hasPrefix("/proc/")
        guard geteuid() == 0, !isSystems else {
            let file = Glibc.open(path, flags | O_CLOEXEC, mode)
            guard file >= 0 else { throw failure(path) }
            return file
        }
        let resolved = try resolve(path)
        let (folder, name) = split(resolved)
        let directory = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw failure(path) }
        defer { close(directory) }
        if flags & O_CREAT != 0 {
            let file = openat(directory, name, flags | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
            if file >= 0 {
                var status = stat()
                guard fstat(directory, &status) == 0,
                    fchown(file, status.st_uid, status.st_gid) == 0
                else {
                    let failure = failure(path)
                    close(file)
                    unlinkat(directory, name, 0)
                    throw failure
                }
                return file
            }
            guard errno == EEXIST, flags & O_EXCL == 0 else { throw failure(path) }
        }
        let file = openat(directory, name, flags & ~O_CREAT | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { throw failure(path) }
        return file
    }

    /// The final target of a path, for code that opens it by name. Throws if root would follow
    /// another user's link.
    package static func resolve(_ path: String) throws(Failure) -> String {
        guard geteuid() == 0 else { return path }
        var path = path
        for _ in 0..<maximumLinks {
            let link = Glibc.open(path, place | O_NOFOLLOW | O_CLOEXEC)
            // A path that does not exist yet is not a link.
            guard link >= 0 else { return path }
            defer { close(link) }
            var status = stat()
            guard fstat(link, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return path }
            guard status.st_uid == 0 else {
                throw Failure(
                    path: path, code: ELOOP,
                    reason:
                        "it is a symbolic link of another user, which root does not follow: name the file itself"
                )
            }
            // Reads the opened link itself, even if another file has its name by now.
            let target = [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, length in
                length = buffer.withMemoryRebound(to: CChar.self) { buffer in
                    buffer.baseAddress.map { max(0, readlinkat(link, "", $0, buffer.count)) } ?? 0
                }
            }
            guard !target.isEmpty else { throw failure(path) }
            let text = String(decoding: target, as: UTF8.self)
            path = text.hasPrefix("/") ? text : split(path).folder + "/" + text
        }
        throw Failure(path: path, code: ELOOP, reason: String(cString: strerror(ELOOP)))
    }

    /// Gives a folder that root just created to the owner and group of its parent folder.
    package static func adopt(folder path: String) throws(Failure) {
        guard geteuid() == 0 else { return }
        var status = stat()
        guard stat(split(path).folder, &status) == 0,
            lchown(path, status.st_uid, status.st_gid) == 0
        else { throw failure(path) }
    }

    /// Creates a file or replaces its content, and writes all octets. If that fails, for example on
    /// a full disk, an existing file stays unchanged, and a new one is deleted. A device, a pipe,
    /// or a file in a folder in which no other file can be created is written to directly.
    /// - Parameter isModeFixed: whether to set exactly this mode, independent of the umask and the
    ///   previous mode.
    package static func write(
        _ octets: some Collection<UInt8>, to path: String, mode: mode_t = 0o666,
        isModeFixed: Bool = false
    ) throws(Failure) {
        let octets = Array(octets)
        if let (target, old) = try replaceable(path) {
            let new = "\(target).new-\(getpid())"
            unlink(new)
            if let file = try? open(new, O_WRONLY | O_CREAT | O_EXCL, mode: mode) {
                defer { close(file) }
                do throws(Failure) {
                    try fill(
                        file, octets, path,
                        mode: isModeFixed ? mode : old.map { $0.st_mode & 0o7777 })
                    if let old, geteuid() == 0, fchown(file, old.st_uid, old.st_gid) != 0 {
                        throw failure(path)
                    }
                    guard fsync(file) == 0, rename(new, target) == 0 else { throw failure(path) }
                } catch {
                    unlink(new)
                    throw error
                }
                return
            }
        }
        let file = try open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: mode)
        defer { close(file) }
        try fill(file, octets, path, mode: isModeFixed ? mode : nil)
    }

    /// The place for a new file that replaces the path, and the present file. Nil for paths that
    /// must be written to directly: devices, pipes, folders, links without a target, files of other
    /// users.
    private static func replaceable(_ path: String) throws(Failure) -> (target: String, old: stat?)?
    {
        guard !path.hasPrefix("/dev/"), !path.hasPrefix("/proc/") else { return nil }
        var target = try resolve(path)
        var status = stat()
        guard stat(target, &status) == 0 else {
            return lstat(target, &status) == 0 ? nil : (target, nil)
        }
        guard status.st_mode & S_IFMT == S_IFREG, geteuid() == 0 || status.st_uid == geteuid()
        else { return nil }
        if geteuid() != 0 {
            guard let name = realpath(target, nil) else { return nil }
            target = String(cString: name)
            free(name)
        }
        return (target, status)
    }

    private static func fill(
        _ file: Int32, _ octets: [UInt8], _ path: String, mode: mode_t?
    ) throws(Failure) {
        if let mode, fchmod(file, mode) != 0 { throw failure(path) }
        var rest = octets[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure(path) }
            rest = rest.dropFirst(count)
        }
    }

    private static func failure(_ path: String) -> Failure {
        let code = errno
        return Failure(path: path, code: code, reason: String(cString: strerror(code)))
    }

    private static func split(_ path: String) -> (folder: String, name: String) {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        guard let slash = trimmed.lastIndex(of: "/") else { return (".", trimmed) }
        let folder = trimmed[..<slash]
        return (
            folder.isEmpty ? "/" : String(folder), String(trimmed[trimmed.index(after: slash)...])
        )
    }
}
