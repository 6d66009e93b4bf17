// Follows Postfix's log while it is written, through rotations and restarts.

import Accounts
import Foundation
import Glibc

/// Reads one log to its end, again and again. After a rotation it first reads the rest of the old
/// file, which the writer may still use, and then the new one. The place up to which a log was read
/// is in the store.
package struct DeliveryLogFollower: Sendable {
    /// What one step found.
    package enum Outcome: Sendable {
        /// - Parameter isAtEnd: whether all is read that was written so far.
        case read(DeliveryLog.Summary, isAtEnd: Bool)
        /// The log cannot be read now; the next step tries again.
        case failed(DeliveryLogFailure)
        /// The counts cannot be written now; the next step tries again.
        case waiting(any Error)
    }

    /// Blocks of one step: four megabytes, so that a step never takes long.
    private static let blocks = 16
    /// Steps without a new line after which a file that was renamed counts as complete: logrotate
    /// renames it before it tells the writer.
    private static let quietSteps = 2
    /// Former logs that are examined after a start.
    private static let maximumFormer = 3

    /// Closes the file when no copy of the follower has it any more.
    private final class OpenFile: Sendable {
        let descriptor: Int32

        init(_ path: String) throws {
            descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
            guard descriptor >= 0 else { throw DeliveryLogFailure(code: errno) }
            var status = stat()
            // The descriptor is closed by deinit.
            guard fstat(descriptor, &status) == 0 else { throw DeliveryLogFailure(code: errno) }
            guard status.st_mode & S_IFMT == S_IFREG else { throw DeliveryLogFailure.noFile }
        }

        deinit { if descriptor >= 0 { close(descriptor) } }

        /// Whether the path leads to another file.
        func isReplaced(at path: String) -> Bool {
            var (open, named) = (stat(), stat())
            return fstat(descriptor, &open) == 0 && stat(path, &named) == 0
                && (open.st_ino != named.st_ino || open.st_dev != named.st_dev)
        }
    }

    private let path: String
    private var log: DeliveryLog
    private var file: OpenFile?
    private var hasStarted = false
    private var quiet = 0

    package init(path: String, log: DeliveryLog) { (self.path, self.log) = (path, log) }

    /// As `DeliveryLog.use`.
    package mutating func use(_ keys: KeyRing) -> Bool { log.use(keys) }

    /// Reads some megabytes at most. May block on the store.
    package mutating func step() -> Outcome {
        do {
            if file == nil {
                file = try hasStarted ? OpenFile(path) : firstFile()
                log.begin()
                (hasStarted, quiet) = (true, 0)
            }
            guard let file else { return .read(DeliveryLog.Summary(), isAtEnd: true) }
            // Asked before the reading: a file that is complete by then is read to its end.
            let isReplaced = file.isReplaced(at: path)
            var summary = DeliveryLog.Summary()
            let isAtEnd = try log.read(file: file.descriptor, blocks: Self.blocks, &summary)
            quiet = isReplaced && isAtEnd && summary.lines == 0 ? quiet + 1 : 0
            if quiet >= Self.quietSteps { self.file = nil }
            return .read(summary, isAtEnd: isAtEnd && self.file != nil)
        } catch let failure as DeliveryLogFailure {
            // Another file may be there next time.
            if file?.isReplaced(at: path) == true { file = nil }
            return .failed(failure)
        } catch {
            return .waiting(error)
        }
    }

    /// The log that was read before this process started and was renamed meanwhile, as `mail.log.1`
    /// or `mail.log-20261129`; the named file if there is none.
    private func firstFile() throws -> OpenFile {
        let current = try OpenFile(path)
        guard try !log.isKnown(file: current.descriptor) else { return current }
        let (folder, name) = (
            (path as NSString).deletingLastPathComponent, (path as NSString).lastPathComponent
        )
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        var former: [(path: String, time: Int)] = []
        for other in names
        where [".", "-"].contains(where: { other.utf8.starts(with: (name + $0).utf8) }) {
            var status = stat()
            let place = (folder as NSString).appendingPathComponent(other)
            guard lstat(place, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            former.append((place, status.st_mtim.tv_sec))
        }
        let newest = former.sorted { ($0.time, $0.path) > ($1.time, $1.path) }
        for (place, _) in newest.prefix(Self.maximumFormer) {
            // Compressed ones, and those of other programs, are not known.
            guard let file = try? OpenFile(place),
                (try? log.isKnown(file: file.descriptor)) == true
            else { continue }
            return file
        }
        return current
    }
}
