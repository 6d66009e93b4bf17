// A record of log lines.

import Logging
import Synchronization

/// Keeps every log line: level, message, then the metadata in the order of its names.
package final class LogRecorder: Sendable {
    private let stored = Mutex<[String]>([])

    package init() {}

    package var lines: [String] { stored.withLock { $0 } }

    /// A logger of every level that writes into this record.
    package var logger: Logger {
        Logger(label: "test") { _ in Handler(recorder: self) }
    }

    private struct Handler: LogHandler {
        let recorder: LogRecorder
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let fields = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
            let line =
                "\(event.level) \(event.message)" + fields.map { " \($0.key)=\($0.value)" }.joined()
            recorder.stored.withLock { $0.append(line) }
        }
    }
}
