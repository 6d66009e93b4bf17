// Structured logs on standard error: one line for each event, as text or JSON.

import Glibc
import Logging
import PosternConfiguration
import Support
import Synchronization

package enum LogOutput {
    /// A logger with the configured settings. Its output contains no inbox, because code that logs
    /// never has an inbox as text.
    package static func logger(_ settings: Configuration.LogSettings) -> Logger {
        setLevel(settings)
        return Logger(label: "postern") { _ in LineLogHandler(format: settings.format) }
    }

    /// Writes the reason for the service's end as its last line. It needs no logger, because the
    /// configuration itself may be wrong.
    package static func fatal(_ message: String, _ format: Configuration.LogSettings.Format) {
        LineLogHandler(format: format).write(.critical, message, [])
    }

    /// Whether standard error leads to the journal (`$JOURNAL_STREAM` of systemd.exec(5)). The
    /// journal records the time of each line itself, and reads its priority from a leading `<0>` to
    /// `<7>` (sd-daemon(3)).
    package static let isJournal: Bool = {
        guard let name = getenv("JOURNAL_STREAM") else { return false }
        var status = stat()
        return fstat(STDERR_FILENO, &status) == 0
            && String(cString: name) == "\(status.st_dev):\(status.st_ino)"
    }()

    /// Changes the level of every logger from here that has no separate level.
    package static func setLevel(_ settings: Configuration.LogSettings) {
        level.withLock { $0 = Logger.Level(rawValue: settings.level) ?? .info }
    }

    fileprivate static let level = Mutex(Logger.Level.info)
}

/// Writes each event as one line, in one write, so that lines of several threads do not mix.
private struct LineLogHandler: LogHandler {
    let format: Configuration.LogSettings.Format
    var metadata: Logger.Metadata = [:]
    private var ownLevel: Logger.Level?

    var logLevel: Logger.Level {
        get { ownLevel ?? LogOutput.level.withLock { $0 } }
        set { ownLevel = newValue }
    }

    init(format: Configuration.LogSettings.Format) { self.format = format }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var all = event.metadata ?? [:]
        if !metadata.isEmpty { all = metadata.merging(all) { $1 } }
        let fields = all.map { ($0.key, "\($0.value)") }.filter { !$0.1.isEmpty }.sorted {
            $0.0 < $1.0
        }
        write(event.level, event.message.description, fields)
    }

    fileprivate func write(_ level: Logger.Level, _ message: String, _ fields: [(String, String)]) {
        var line: [UInt8] = []
        line.reserveCapacity(512)
        if LogOutput.isJournal { line += "<\(Self.priority(level))>".utf8 }
        switch format {
        case .text:
            if !LogOutput.isJournal {
                Self.appendTime(to: &line)
                line.append(0x20)
            }
            line += level.rawValue.utf8
            line.append(0x20)
            line += message.utf8
            for (name, value) in fields {
                line.append(0x20)
                line += name.utf8
                line.append(UInt8(ascii: "="))
                if Self.isPlain(value) {
                    line += value.utf8
                } else {
                    JSONText.append(value, to: &line)
                }
            }
        case .json:
            line.append(UInt8(ascii: "{"))
            if !LogOutput.isJournal {
                line += "\"time\":\"".utf8
                Self.appendTime(to: &line)
                line += "\",".utf8
            }
            for (place, (name, value))
                in ([("level", level.rawValue), ("message", message)] + fields).enumerated()
            {
                if place > 0 { line.append(UInt8(ascii: ",")) }
                JSONText.append(name, to: &line)
                line.append(UInt8(ascii: ":"))
                JSONText.append(value, to: &line)
            }
            line.append(UInt8(ascii: "}"))
        }
        line.append(0x0A)
        Self.write(line)
    }

    /// The priority as in syslog(3).
    private static func priority(_ level: Logger.Level) -> Int32 {
        switch level {
        case .trace, .debug: LOG_DEBUG
        case .info: LOG_INFO
        case .notice: LOG_NOTICE
        case .warning: LOG_WARNING
        case .error: LOG_ERR
        case .critical: LOG_CRIT
        }
    }

    /// Writes the line in one call, if the system accepts all of it. Output that cannot be written
    /// is lost, because it cannot be reported either.
    private static func write(_ line: [UInt8]) {
        line.withUnsafeBytes { line in
            var rest = line[...]
            while !rest.isEmpty {
                let count = Glibc.write(
                    STDERR_FILENO, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count > 0 {
                    rest = rest.dropFirst(count)
                } else if errno == EAGAIN {
                    var wait = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
                    poll(&wait, 1, -1)
                } else if errno != EINTR {
                    return
                }
            }
        }
    }

    /// The current time as 2026-11-21T06:49:30.123Z. Foundation's formatter would take longer
    /// than the rest of the line.
    private static func appendTime(to line: inout [UInt8]) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var seconds = now.tv_sec
        var date = tm()
        gmtime_r(&seconds, &date)
        func append(_ number: Int, _ digits: Int, _ next: Character) {
            var divisor = digits == 4 ? 1000 : digits == 3 ? 100 : 10
            while divisor > 0 {
                line.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
                divisor /= 10
            }
            line += next.utf8
        }
        append(Int(date.tm_year) + 1900, 4, "-")
        append(Int(date.tm_mon) + 1, 2, "-")
        append(Int(date.tm_mday), 2, "T")
        append(Int(date.tm_hour), 2, ":")
        append(Int(date.tm_min), 2, ":")
        append(Int(date.tm_sec), 2, ".")
        append(now.tv_nsec / 1_000_000, 3, "Z")
    }

    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
        }
    }
}
