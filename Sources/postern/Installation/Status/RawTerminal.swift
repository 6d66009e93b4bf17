// The terminal of `postern status --watch`: drawing, and waiting for input.

import Foundation

/// The terminal without line editing, on its alternate screen; restored at the end,
/// also on SIGINT and SIGTERM.
final class RawTerminal {
    enum Event { case nothing, quit, resized }

    private var saved = termios()
    private var isRaw = false
    /// Signal handlers write to it, to wake `poll`.
    private nonisolated(unsafe) static var pipe: (read: Int32, write: Int32) = (-1, -1)

    init() throws {
        guard tcgetattr(STDIN_FILENO, &saved) == 0 else {
            throw CommandError.usage("the terminal does not report its size")
        }
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else {
            throw CommandError(status: EX_OSERR, message: "no pipe")
        }
        Self.pipe = (ends[0], ends[1])
        for number in [SIGINT, SIGTERM, SIGWINCH] {
            signal(number) { number in
                var octet: UInt8 = number == SIGWINCH ? 1 : 2
                _ = Glibc.write(RawTerminal.pipe.write, &octet, 1)
            }
        }
        var raw = saved
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        isRaw = true
        write("\u{1B}[?1049h\u{1B}[?25l")
    }

    func restore() {
        guard isRaw else { return }
        isRaw = false
        write("\u{1B}[?25h\u{1B}[?1049l")
        tcsetattr(STDIN_FILENO, TCSANOW, &saved)
    }

    deinit { restore() }

    /// Draws the lines that fit on the screen, cut at its width.
    func draw(_ lines: [String]) {
        var size = winsize()
        _ = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size)
        let (rows, columns) = (max(2, Int(size.ws_row)), max(10, Int(size.ws_col)))
        let shown = lines.prefix(rows - 1).map { Self.clipped($0, columns) + "\u{1B}[K" }
        write("\u{1B}[H" + shown.joined(separator: "\r\n") + "\u{1B}[J")
    }

    /// Waits for a key, a new terminal size, or the timeout.
    func wait(seconds: Int) -> Event {
        var files = [
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
            pollfd(fd: Self.pipe.read, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&files, 2, Int32(seconds) * 1000) > 0 else { return .nothing }
        var octet: UInt8 = 0
        if files[1].revents != 0, read(Self.pipe.read, &octet, 1) == 1 {
            return octet == 1 ? .resized : .quit
        }
        guard files[0].revents != 0 else { return .nothing }
        // A closed terminal reads as the end of input.
        guard read(STDIN_FILENO, &octet, 1) == 1 else { return .quit }
        return octet == UInt8(ascii: "q") || octet == UInt8(ascii: "Q") || octet == 3 || octet == 4
            ? .quit : .nothing
    }

    /// The line cut at a width, escape sequences not counted.
    private static func clipped(_ line: String, _ width: Int) -> String {
        var (out, count, inEscape) = ("", 0, false)
        for character in line {
            if character == "\u{1B}" { inEscape = true }
            if !inEscape {
                guard count < width else { continue }
                count += 1
            }
            out.append(character)
            if inEscape, character.isLetter { inEscape = false }
        }
        return out
    }

    private func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }
}
