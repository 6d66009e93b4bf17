// Structured logs on standard error: one line an event, as text or JSON.

import Foundation
import Logging
import Synchronization

package enum LogOutput {
    /// A logger as configured. What it writes holds no inbox: nothing that logs is given one as text.
    package static func logger(_ settings: Configuration.LogSettings) -> Logger {
        setLevel(settings)
        return Logger(label: "postern") { _ in LineLogHandler(format: settings.format) }
    }

    /// Changes the level of every logger that was made here and not given one of its own.
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
        let fields = metadata.merging(event.metadata ?? [:]) { $1 }.map { ($0.key, "\($0.value)") }.filter { !$0.1.isEmpty }
            .sorted { $0.0 < $1.0 }
        let time = Self.time()
        let line =
            switch format {
            case .text:
                "\(time) \(event.level) \(event.message)" + fields.map { " \($0.0)=\(Self.quoted($0.1))" }.joined()
            case .json:
                Self.json([("time", time), ("level", "\(event.level)"), ("message", "\(event.message)")] + fields)
            }
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }

    /// Now, as 2026-11-21T06:49:30.123Z. Foundation's formatter takes longer than all the rest of a line.
    private static func time() -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var seconds = now.tv_sec
        var date = tm()
        gmtime_r(&seconds, &date)
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let day = [digits(Int(date.tm_year) + 1900, 4), digits(Int(date.tm_mon) + 1, 2), digits(Int(date.tm_mday), 2)].joined(separator: "-")
        let clock = [digits(Int(date.tm_hour), 2), digits(Int(date.tm_min), 2), digits(Int(date.tm_sec), 2)].joined(separator: ":")
        return "\(day)T\(clock).\(digits(now.tv_nsec / 1_000_000, 3))Z"
    }

    private static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        return isPlain ? text : string(text)
    }

    private static func json(_ fields: [(String, String)]) -> String {
        "{" + fields.map { "\(string($0.0)):\(string($0.1))" }.joined(separator: ",") + "}"
    }

    /// A JSON string; control characters escaped, so that an event stays one line.
    private static func string(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            default:
                if scalar.value < 0x20 || scalar.value == 0x7F {
                    let hex = String(scalar.value, radix: 16)
                    out += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                } else {
                    out.unicodeScalars.append(scalar)
                }
            }
        }
        return out + "\""
    }
}
