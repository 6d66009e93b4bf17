// The output of a command on standard error.

import Glibc

enum ErrorOutput {
    /// Writes a text. If that fails, for example on a full disk or because the file is closed, only
    /// the exit status shows the error.
    static func write(_ text: String) {
        var octets = Array(text.utf8)[...]
        while !octets.isEmpty {
            let count = octets.withUnsafeBytes {
                Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            octets = octets.dropFirst(count)
        }
    }
}
