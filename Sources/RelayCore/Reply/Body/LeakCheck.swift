// The leak check of a finished reply: an independent search for the inbox in everything that is sent.

import InternetMessage
import LeakSearch

/// Searches a finished message. A hit is an incident: something was overlooked, and the message is refused.
package struct LeakCheck {
    private let scanner: LeakScanner

    /// - Parameter hidesWords: whether local parts alone are looked for, as the rewriting did.
    package init(names: ReplyNames, hidesWords: Bool = true) { scanner = LeakScanner(names: names, hidesWords: hidesWords) }

    /// - Parameters:
    ///   - searched: stretches of the received body in which the same search found nothing.
    ///   - original: the received body.
    ///   - unsearched: pieces of the body in which nothing is looked for.
    ///   - typed: texts within those that the user typed; each is read alone.
    ///   - work: the budget of the body's search; once it is spent, the search ends and reports nothing.
    /// - Returns: the place where an address of the user can still be read; nil where there is none.
    func firstLeak(
        header: HeaderSection, body: [ArraySlice<UInt8>], searched: [SearchedStretch] = [], of original: [UInt8] = [],
        unsearched: [[UInt8]] = [], typed: [[UInt8]] = [], work: WorkBudget? = nil
    ) -> String? {
        let feeder = scanner.feeder()
        for field in header.fields {
            if search(field.bytes, feeder) || search(Array(EncodedWord.decode(field.unfoldedBytes[...]).utf8), feeder) {
                return "header field \(field.name)"
            }
        }
        let bodyFeeder = scanner.feeder(work)
        for text in typed {
            text.withUnsafeBufferPointer { bodyFeeder.feed($0) }
            if bodyFeeder.finish() { return "message body" }
        }
        let passedOver = Set(unsearched.map { Self.address($0[...]) })
        for piece in body {
            // A piece that is passed over has its memory; nothing is read across it.
            let isPassedOver = !passedOver.isEmpty && passedOver.contains(Self.address(piece))
            if isPassedOver ? bodyFeeder.finish() : bodyFeeder.feed(piece, passingOver: searched, of: original) {
                return "message body"
            }
        }
        return bodyFeeder.finish() ? "message body" : nil
    }

    private static func address(_ octets: ArraySlice<UInt8>) -> Int {
        octets.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
    }

    private func search(_ bytes: [UInt8], _ feeder: LeakFeeder) -> Bool {
        bytes.withUnsafeBufferPointer { feeder.feed($0) }
        return feeder.finish()
    }
}
