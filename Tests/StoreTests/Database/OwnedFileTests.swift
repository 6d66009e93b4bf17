// Files that root creates in another user's folder, and links in that folder.

import Database
import Foundation
import PosternSQLite
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: getuid() == 0, "these tests run as root alone"))
struct OwnedFileTests {
    private static let user: uid_t = 23_456
    private static let group: gid_t = 23_457

    /// A folder of that user, deleted with this object.
    private final class Folder {
        let path = NSTemporaryDirectory() + "postern-owned-" + UUID().uuidString

        init() throws {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            try #require(chown(path, user, group) == 0)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func link(_ name: String, to target: String, owner: uid_t = user) throws -> String {
            let link = path + "/" + name
            try #require(symlink(target, link) == 0 && lchown(link, owner, owner) == 0)
            return link
        }
    }

    private func owner(_ path: String) -> [UInt32] {
        var status = stat()
        return lstat(path, &status) == 0 ? [status.st_uid, status.st_gid] : []
    }

    @Test func ownedFile_newOrExisting_hasExpectedOwner() throws {
        let folder = try Folder()
        let path = folder.path + "/new"
        try OwnedFile.write("one".utf8, to: path)
        #expect(owner(path) == [Self.user, Self.group])
        try #require(chown(path, 1, 1) == 0)
        try OwnedFile.write("2".utf8, to: path)
        #expect(owner(path) == [1, 1])
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "2")
        #expect(throws: OwnedFile.Failure.self) {
            _ = try OwnedFile.open(path, O_RDWR | O_CREAT | O_EXCL)
        }
        #expect(throws: OwnedFile.Failure.self) {
            _ = try OwnedFile.open(folder.path + "/no/new", O_RDWR | O_CREAT)
        }
        try OwnedFile.write("".utf8, to: "/dev/null")
    }

    @Test func lockFile_linkOfOtherUser_isRefused() throws {
        let folder = try Folder()
        let database = try SQLiteDatabase(path: folder.path + "/postern.db", creating: true)
        defer { try? database.close() }
        #expect(owner(folder.path + "/postern.db") == [Self.user, Self.group])
        let target = folder.path + "-target"
        _ = try folder.link("postern.db-lock-theirs", to: target)
        #expect(throws: StoreFailure.temporary(.inputOutput)) { _ = try database.lock("theirs") }
        #expect(!FileManager.default.fileExists(atPath: target))
        let lock = try #require(try database.lock("ours"))
        #expect(owner(folder.path + "/postern.db-lock-ours") == [Self.user, Self.group])
        lock.release()
    }

    @Test func ownedFile_linkOfOtherUser_isRefused() throws {
        let folder = try Folder()
        let target = folder.path + "/target"
        let theirs = try folder.link("theirs", to: target)
        let ours = try folder.link("ours", to: "target", owner: 0)
        let mixed = try folder.link("mixed", to: "theirs", owner: 0)
        let circle = try folder.link("circle", to: "circle", owner: 0)
        for path in [theirs, mixed, circle] {
            #expect(throws: OwnedFile.Failure.self, "\(path)") {
                try OwnedFile.write("x".utf8, to: path)
            }
            #expect(throws: OwnedFile.Failure.self, "\(path)") { _ = try OwnedFile.resolve(path) }
        }
        #expect(!FileManager.default.fileExists(atPath: target))
        try OwnedFile.write("x".utf8, to: ours)
        #expect(owner(target) == [Self.user, Self.group])
        #expect(try OwnedFile.resolve(ours) == target)
        #expect(try OwnedFile.resolve(folder.path + "/nothing") == folder.path + "/nothing")
    }
}
