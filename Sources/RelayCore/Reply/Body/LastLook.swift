// The last look at a finished reply: an independent search for the inbox in everything that is about to leave.

import InternetMessage

/// Searches a finished message. A hit is an incident: something was overlooked, and the message is refused.
package struct LastLook {
    private let scanner: LeakScanner

    package init(names: ReplyNames) { scanner = LeakScanner(names: names) }

    /// - Returns: where an address of the user can still be read; nil where nowhere.
    package func finds(header: HeaderSection, body: [ArraySlice<UInt8>]) -> String? {
        for field in header.fields {
            let name = field.name
            if search(field.bytes) || search(Array(EncodedWord.decode(field.unfoldedBytes[...]).utf8)) {
                return "header field \(name)"
            }
        }
        let feeder = scanner.feeder()
        for piece in body { piece.withUnsafeBufferPointer { feeder.feed($0) } }
        return feeder.finish() ? "message body" : nil
    }

    private func search(_ bytes: [UInt8]) -> Bool {
        let feeder = scanner.feeder()
        bytes.withUnsafeBufferPointer { feeder.feed($0) }
        return feeder.finish()
    }
}
