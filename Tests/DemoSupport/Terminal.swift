// The output of the demonstration: plain in a pipe, in colour on a terminal.

import Foundation

package enum Terminal {
    private static let isColoured =
        isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["NO_COLOR"] == nil

    package enum Style: String {
        case title = "1;36", sent = "33", arrived = "32", good = "1;32", bad = "1;31", quiet = "2",
            strong = "1"
    }

    package static func styled(_ text: String, _ style: Style) -> String {
        isColoured ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// Prints a line at once, so that a viewer can follow.
    package static func line(_ text: String = "") {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }

    package static func title(_ text: String) {
        line()
        line(styled(text, .title))
        line(styled(String(repeating: "─", count: min(78, text.count)), .quiet))
    }

    package static func say(_ text: String) { line("  " + text) }

    /// Lines under a heading, each behind a bar.
    package static func block(_ heading: String, _ lines: [String], _ style: Style) {
        line("  " + styled(heading, style))
        for text in lines { line("  " + styled("│", style) + " " + text) }
    }
}
