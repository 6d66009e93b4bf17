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
        let fields = metadata.merging(event.metadata ?? [:]) { $1 }.filter { !"\($0.value)".isEmpty }.sorted { $0.key < $1.key }
        let time = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        let line =
            switch format {
            case .text:
                "\(time) \(event.level) \(event.message)" + fields.map { " \($0.key)=\(Self.quoted("\($0.value)"))" }.joined()
            case .json:
                Self.json([("time", time), ("level", "\(event.level)"), ("message", "\(event.message)")] + fields.map { ($0.key, "\($0.value)") })
            }
        FileHandle.standardError.write(Data((line + "\n").utf8))
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
