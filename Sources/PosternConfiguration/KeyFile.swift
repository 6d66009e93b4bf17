// The key file on disk: checks its permissions, reads it, and creates it.

import Accounts
import Database
import Foundation
import Support

/// Reads and creates the key file.
package enum KeyFile {
    /// Far larger than any key file; a larger file is not one.
    private static let maximumSize = 1 << 20

    /// Reads a key file. Throws `ConfigurationError` if it is missing, malformed, or readable by
    /// another user than its owner.
    package static func read(path: String) throws -> KeyRing {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw ConfigurationError(
                .keyFile, at: path,
                "the key file cannot be opened: \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size <= maximumSize
        else {
            throw ConfigurationError(.keyFile, at: path, "the key file is not a regular file")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw ConfigurationError(
                .keyFile, at: path,
                "the key file is accessible to other users than its owner: run chmod 600 \(path)")
        }
        var octets = [UInt8](repeating: 0, count: Int(status.st_size))
        var length = 0
        while length < octets.count {
            let count = octets.withUnsafeMutableBytes {
                Glibc.read(file, $0.baseAddress?.advanced(by: length), $0.count - length)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            length += count
        }
        do {
            var text = octets[..<length]
            if text.starts(with: PlainText.byteOrderMark) {
                text = text.dropFirst(PlainText.byteOrderMark.count)
            }
            return try KeyRing(fileText: String(decoding: text, as: UTF8.self))
        } catch let error as KeyFileError {
            throw ConfigurationError(
                .keyFile, at: error.line > 0 ? "\(path):\(error.line)" : path, error.message)
        }
    }

    /// Replaces a key file atomically: a reader sees the old or the new text. A symbolic link
    /// stays, and its target is replaced, because the keys may be stored elsewhere. Throws if root
    /// would follow another user's link.
    package static func replace(path link: String, text: String) throws {
        let path = try target(of: link)
        let new = path + ".new"
        unlink(new)
        try create(path: new, text: text)
        // Owner and group stay, so that the service, which does not run as root, can still read it.
        var status = stat()
        let isOwned =
            lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
            && (geteuid() != 0 || lchown(new, status.st_uid, status.st_gid) == 0)
        guard isOwned, rename(new, path) == 0 else {
            let code = errno
            unlink(new)
            throw ConfigurationError(
                .inputOutput, at: path, "it cannot be replaced: \(String(cString: strerror(code)))")
        }
        let folder = open(
            (path as NSString).deletingLastPathComponent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }

    private static func target(of link: String) throws -> String {
        do { _ = try OwnedFile.resolve(link) } catch {
            throw ConfigurationError(.inputOutput, at: link, error.reason)
        }
        guard let name = realpath(link, nil) else {
            throw ConfigurationError(
                .inputOutput, at: link, "it cannot be replaced: \(String(cString: strerror(errno)))"
            )
        }
        defer { free(name) }
        return String(cString: name)
    }

    /// Creates a file that only its owner can read, and syncs it. Throws `ConfigurationError`
    /// (`exists`) instead of overwriting.
    package static func create(path: String, text: String) throws {
        let file: Int32
        do { file = try OwnedFile.open(path, O_WRONLY | O_CREAT | O_EXCL) } catch {
            throw ConfigurationError(
                error.code == EEXIST ? .exists : .inputOutput, at: path,
                error.code == EEXIST
                    ? "it exists and is not overwritten" : "it cannot be created: \(error.reason)")
        }
        defer { close(file) }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw ConfigurationError(
                    .inputOutput, at: path,
                    "it cannot be written: \(String(cString: strerror(errno)))")
            }
            rest = rest.dropFirst(count)
        }
        guard fsync(file) == 0 else {
            throw ConfigurationError(
                .inputOutput, at: path, "it cannot be written: \(String(cString: strerror(errno)))")
        }
    }
}
