// Reads files and pipes named on the command line, in bounded memory and with plain error messages.

import Foundation
import Glibc
import Support

/// Reads whole files. Foundation's own functions do not read pipes.
enum InputFile {
    /// Octets of a file, a pipe or a terminal by its path; `-` is standard
    /// input. A folder is refused.
    /// - Parameter maximum: octets; a larger file is refused.
    static func octets(_ path: String, maximum: Int) throws -> Data {
        // Not opened by name: the process that opened it may have had permissions that this process
        // lacks.
        let file = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw unreadable(path) }
        return try octets(file, path, maximum: maximum)
    }

    /// The text of a file, a pipe or a terminal by its path; `-` is standard input.
    /// - Parameter maximum: octets; a larger file is refused.
    static func text(_ path: String, maximum: Int) throws -> String {
        try text(octets(path, maximum: maximum), path)
    }

    /// The octets of a file as text, without a byte order mark. Throws `CommandError` with line and
    /// column if they are not UTF-8.
    static func text(_ octets: Data, _ path: String) throws -> String {
        do {
            return try PlainText.read(octets)
        } catch {
            throw CommandError.data("\(path == "-" ? "standard input" : path): \(error)")
        }
    }

    /// Octets of a regular file by its path; `-` is standard input. A symbolic link or a pipe is
    /// refused. For files that root applies from a folder that another user may write to.
    static func regularOctets(_ path: String, maximum: Int) throws -> Data {
        guard path != "-" else { return try octets(path, maximum: maximum) }
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else {
            guard errno != ELOOP else {
                throw CommandError.data("\(path): a symbolic link: name the file that it leads to")
            }
            throw unreadable(path)
        }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(file)
            throw CommandError.data(
                "\(path): not a regular file; what a program writes is read from standard input (-)"
            )
        }
        return try octets(file, path, maximum: maximum)
    }

    /// A regular file inside a folder; nil if it does not exist. A symbolic link is followed only
    /// if it stays inside the folder. The folder may belong to another user, who could link to a
    /// file that only root can read.
    /// - Parameter name: the path within the folder, without `..`.
    static func octets(_ name: String, inside folder: String, maximum: Int) throws -> Data? {
        let path = (folder.hasSuffix("/") ? folder : folder + "/") + name
        guard let root = resolved(folder), let target = resolved(path) else {
            guard [ENOENT, ENOTDIR].contains(errno) else { throw unreadable(path) }
            return nil
        }
        guard target.hasPrefix(root == "/" ? root : root + "/") else {
            throw CommandError.data("\(path): a symbolic link leads out of \(folder)")
        }
        // The resolved path contains no links. A link that is created in the meantime is refused.
        let parts = target.dropFirst(root.count).split(separator: "/").map(String.init)
        var file = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw unreadable(path) }
        for (index, part) in parts.enumerated() {
            let kind = index + 1 < parts.count ? O_DIRECTORY : O_NONBLOCK
            let next = openat(file, part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind)
            let reason = errno
            close(file)
            guard next >= 0 else { throw unreadable(path, reason) }
            file = next
        }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(file)
            return nil
        }
        return try octets(file, path, maximum: maximum)
    }

    /// Reads to the end and closes.
    private static func octets(_ file: Int32, _ path: String, maximum: Int) throws -> Data {
        defer { close(file) }
        var data = Data()
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(file, &block, block.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable(path) }
            guard count > 0 else { return data }
            data.append(contentsOf: block[..<count])
            guard data.count <= maximum else {
                throw CommandError.data("\(path): larger than \(maximum) bytes")
            }
        }
    }

    private static func resolved(_ path: String) -> String? {
        guard let name = realpath(path, nil) else { return nil }
        defer { free(name) }
        return String(cString: name)
    }

    private static func unreadable(_ path: String, _ reason: Int32 = errno) -> CommandError {
        CommandError.noInput("\(path): \(Failure.words(reason))")
    }
}
