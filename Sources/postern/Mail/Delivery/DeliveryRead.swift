// postern delivery read: counts the results in Postfix's log.

import Accounts
import ArgumentParser
import Foundation
import Glibc
import Relay
import Support

extension DeliveryCommand {
    struct Read: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read what became of forwards from Postfix's log.",
            discussion: """
                Counts what was delivered and what waits. Permanent failures are counted when Postfix reports them to the \
                return path, so that they are not counted here. Each line counts once: a log is recognised by its first line, also \
                after logrotate has renamed it, also if postern serve reads it (delivery.log). All hosts of the relay can read \
                their logs side by side. --follow continues with new lines, also of the next log after a rotation.

                zcat /var/log/mail.log.2.gz | postern delivery read - reads a compressed log. The journal: \
                journalctl --cursor-file=/var/lib/postern/journal -o short-iso SYSLOG_FACILITY=2 | postern delivery read -
                """)

        @Argument(
            help: ArgumentHelp(
                "Logs, folders of logs, or - for standard input.", valueName: "file"),
            completion: .file(), transform: filePath)
        var files: [String]
        @Flag(help: "Continue with new lines until Ctrl-C; for one log.")
        var follow = false
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        /// Files of a folder that are read.
        private static let maximumFiles = 1_000

        func validate() throws {
            guard !files.isEmpty else { throw ValidationError("Give a file, a folder, or -.") }
            guard !follow || files.count == 1 else {
                throw ValidationError("--follow reads one log.")
            }
        }

        func run() throws {
            try installation.withInstallation { installation in
                guard var log = DeliveryLog(installation, now: PosternClock.now) else {
                    throw CommandError(
                        status: EX_CONFIG,
                        message:
                            "\(installation.configuration.keyFilePath): the token keys cannot be used"
                    )
                }
                var total = DeliveryLog.Summary()
                let paths = try files.flatMap(Self.paths)
                for path in paths {
                    let read = try Self.read(path, into: &log)
                    total.lines += read.lines
                    total.results += read.results
                }
                if output.json {
                    try printJSON(
                        ["lines": total.lines, "results": total.results] as Members)
                } else {
                    print(
                        "\(Count.text(total.lines, "new line")), \(Count.text(total.results, "result"))"
                    )
                }
                guard follow, let path = paths.first, path != "-" else { return }
                try finishOutput()
                try Self.follow(path, log)
            }
        }

        /// The files of a folder, the oldest first, or the file itself.
        static func paths(_ path: String) throws -> [String] {
            var status = stat()
            guard path != "-", stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                return [path]
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: path)
            var found: [(path: String, time: Int)] = []
            for name in names where !name.hasPrefix(".") {
                let file = (path.hasSuffix("/") ? path : path + "/") + name
                guard lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                    continue
                }
                found.append((file, status.st_mtim.tv_sec))
            }
            guard found.count <= maximumFiles else {
                throw CommandError.data(
                    "\(path): more than \(maximumFiles) files: name the ones to read")
            }
            return found.sorted { ($0.time, $0.path) < ($1.time, $1.path) }.map(\.path)
        }

        private static func opened(_ path: String) throws -> Int32 {
            let file =
                path == "-"
                ? dup(STDIN_FILENO) : Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard file >= 0 else {
                throw CommandError.noInput("\(path): \(Failure.words(errno))")
            }
            return file
        }

        private static func read(
            _ path: String, into log: inout DeliveryLog
        ) throws -> DeliveryLog.Summary {
            let file = try opened(path)
            defer { close(file) }
            var status = stat()
            guard fstat(file, &status) == 0 else {
                throw CommandError.noInput("\(path): \(Failure.words(errno))")
            }
            log.begin()
            switch status.st_mode & S_IFMT {
            case S_IFREG: return try log.read(file: file)
            case S_IFDIR: throw CommandError.data("\(path): a folder")
            default: return try stream(file, &log)
            }
        }

        /// Reads a pipe. What it brings is written at the latest after a second of silence.
        private static func stream(
            _ file: Int32, _ log: inout DeliveryLog
        ) throws -> DeliveryLog.Summary {
            var summary = DeliveryLog.Summary()
            _ = fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK)
            while true {
                var waiting = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
                if poll(&waiting, 1, 1_000) == 0 {
                    try log.write(&summary)
                    continue
                }
                let block = try DeliveryLog.block(file)
                guard !block.isEmpty else { break }
                try log.take(block, &summary)
            }
            try log.write(&summary)
            return summary
        }

        /// Reads what is added, and the next log after a rotation.
        private static func follow(_ path: String, _ log: DeliveryLog) throws -> Never {
            var follower = DeliveryLogFollower(path: path, log: log)
            while true {
                switch follower.step() {
                case .read(_, isAtEnd: true): sleep(1)
                case .read(_, isAtEnd: false): break
                case .failed(let failure): throw CommandError.noInput("\(path): \(failure)")
                case .waiting(let error): throw error
                }
            }
        }
    }
}
