// A filter that does what a script says and writes down what it sees: it proves Milter and
// PostfixHarness on a real Postfix.

import Foundation
import Milter

/// `postfix-test-filter SOCKET [SCRIPT]`. The script is read again for each connection and message.
/// Ends gracefully on SIGTERM, at once when its standard input ends.
@main
struct TestFilter {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard let first = arguments.first, let socket = MilterSocket(first) else {
            Output.say("usage: postfix-test-filter SOCKET [SCRIPT]")
            exit(EX_USAGE)
        }
        let script = arguments.dropFirst().first
        let server = MilterServer(
            .init(name: "postfix-test-filter", socket: socket),
            handler: ScriptHandler(script: script, needs: Script(file: script).needs)
        ) { Output.say($0.description) }
        let signals = [SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                Output.say("signal \(number)")
                guard number == SIGTERM else { return }
                let cutOff = server.stop(finishingWithin: .seconds(20))
                Output.say("cut off \(cutOff)")
                exit(cutOff == 0 ? 0 : 1)
            }
            source.resume()
            return source
        }
        defer { withExtendedLifetime(signals) {} }
        do {
            try server.start()
        } catch {
            Output.say("error: \(error)")
            exit(EX_UNAVAILABLE)
        }
        while readLine() != nil {}
        exit(0)
    }
}

/// Lines on standard output, whole and at once.
enum Output {
    static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let count = write(STDOUT_FILENO, part.baseAddress, part.count)
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Octets as text on one line: what is not a printable ASCII, and the backslash, as `\xNN`, CR
    /// and LF as `\r` and `\n`.
    static func escaped(_ bytes: some Sequence<UInt8>) -> String {
        var text = ""
        for octet in bytes {
            switch octet {
            case 0x0D: text += "\\r"
            case 0x0A: text += "\\n"
            case 0x09: text += "\\t"
            case 0x20...0x7E where octet != UInt8(ascii: "\\"):
                text.unicodeScalars.append(Unicode.Scalar(octet))
            default: text += "\\x" + (octet < 16 ? "0" : "") + String(octet, radix: 16)
            }
        }
        return text
    }
}
