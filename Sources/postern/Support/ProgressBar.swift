// A progress bar on standard error for long operations; nothing if standard
// error is not a terminal.

import Foundation

/// Drawn at most ten times a second, and removed at the end.
final class ProgressBar {
    private static let interval: Duration = .milliseconds(100)
    private static let width = 30

    private let total: Int?
    private let isShown = isatty(STDERR_FILENO) == 1 && !Failure.isQuiet
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var drawn: ContinuousClock.Instant?

    /// - Parameter total: the whole amount; nil if it is not known.
    init(total: Int?) {
        self.total = total
        start = clock.now
    }

    /// - Parameters:
    ///   - done: the part of the total that is done.
    ///   - count: the number of items, for example of rows; also gives the rate.
    func update(done: Int, count: Int, of what: String) {
        guard isShown else { return }
        let now = clock.now
        if let drawn, now - drawn < Self.interval { return }
        drawn = now
        write(
            "\r"
                + Self.text(
                    done: done, total: total, count: count, of: what,
                    seconds: (now - start) / .seconds(1)) + "\u{1B}[K")
    }

    /// Removes the bar, so that a line can be written.
    func clear() {
        guard isShown, drawn != nil else { return }
        drawn = nil
        write("\r\u{1B}[K")
    }

    /// `[######      ]  40 %  12000 rows, 4000/s, 5 s left`.
    static func text(done: Int, total: Int?, count: Int, of what: String, seconds: Double) -> String
    {
        let rate = seconds > 0 ? Int(Double(count) / seconds) : 0
        let numbers = "\(count) \(what), \(rate)/s"
        guard let total, total > 0 else { return numbers }
        let part = min(max(Double(done) / Double(total), 0), 1)
        let filled = Int(part * Double(width))
        let bar =
            String(repeating: "#", count: filled) + String(repeating: " ", count: width - filled)
        let left = part > 0.01 ? ", \(Int((seconds / part * (1 - part)).rounded(.up))) s left" : ""
        let percent = String(Int(part * 100))
        return "[\(bar)] " + String(repeating: " ", count: 3 - percent.count)
            + "\(percent) %  \(numbers)\(left)"
    }

    private func write(_ text: String) { ErrorOutput.write(text) }
}
