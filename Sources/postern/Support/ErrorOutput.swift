// What a command says on standard error.

import Glibc

enum ErrorOutput {
    /// Writes a text. Where that cannot be, as on a full disk or with the file closed, the exit status alone says what happened.
    static func write(_ text: String) {
        var octets = Array(text.utf8)[...]
        while !octets.isEmpty {
            let count = octets.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            octets = octets.dropFirst(count)
        }
    }
}
