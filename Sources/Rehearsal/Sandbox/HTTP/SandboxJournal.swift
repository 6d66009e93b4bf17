// The newest requests to the sandbox, and the reasons for refusals.

import Synchronization

/// The requests and their responses.
final class SandboxJournal: Sendable {
    /// The most entries that are kept.
    static let maximum = 200

    struct Entry: Sendable {
        /// From 1.
        let number: Int
        /// By the sandbox's clock, seconds since 1970.
        let at: Int64
        /// `SMTP` for mail.
        let method: String
        /// Without the query; for mail the command, `RCPT` or `DATA`.
        let path: String
        let status: Int
        /// The problem's name, or `error` of OAuth; nil if nothing is wrong.
        let error: String?
        /// The reason for the refusal, or the ordered failure.
        let cause: String?

        var isRefusal: Bool { status >= 400 }
        /// For a terminal.
        var words: String {
            "\(method) \(path): \(status)\(error.map { " " + $0 } ?? "")\(cause.map { ": " + $0 } ?? "")"
        }
    }

    private let state = Mutex<(count: Int, entries: [Entry])>((0, []))

    /// The newest first.
    var entries: [Entry] { state.withLock { $0.entries } }

    @discardableResult
    func note(
        at: Int64, _ method: String, _ path: String, status: Int, error: String?, cause: String?
    ) -> Entry {
        state.withLock { state in
            state.count += 1
            let entry = Entry(
                number: state.count, at: at, method: method, path: path, status: status,
                error: error, cause: cause)
            state.entries.insert(entry, at: 0)
            if state.entries.count > Self.maximum { state.entries.removeLast() }
            return entry
        }
    }
}
