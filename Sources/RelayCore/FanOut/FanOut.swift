// Fan-out: a message to several users arrives in one transaction, but each user needs a separate message. The first user's
// message is relayed in place; the others get a copy of the original, which comes back to the relay in a separate transaction.

import InternetMessage
import MailCrypto
import Synchronization

/// A copy of the original message that must be handed over before the message may be accepted.
package struct FanOutCopy: Sendable, Hashable {
    /// The account of its recipients.
    package let account: AccountNumber
    /// The recipients, exactly as RCPT gave them. All of one account.
    package let paths: [String]
    /// One for each recipient: they show that it has the message, if the sender repeats it.
    let marks: [[UInt8]]
}

/// The message as received, for its copies.
package struct FanOutOriginal {
    /// The reverse-path without angle brackets.
    package let sender: String
    package let header: HeaderSection
    package let body: [UInt8]
}

/// What stays the same when a sender repeats a message, to several recipients or to one: the message and its envelope sender.
final class RepetitionDigest {
    private let hash = SHA256()
    private let sender: [UInt8]

    init(header: HeaderSection, sender: String) {
        self.sender = Array(sender.utf8)
        for field in header.fields {
            hash.update(field.bytes)
            hash.update([0x0D, 0x0A])
        }
        hash.update([0x0D, 0x0A])
    }

    func update(body chunk: UnsafeRawBufferPointer) { hash.update(chunk) }

    /// Ends it. Called once.
    func marks(keys: TokenKeys) -> FanOutMarks { FanOutMarks(keys: keys, digest: hash.finalize() + sender) }
}

/// Recognises the recipients that have a message already.
struct FanOutMarks {
    let keys: TokenKeys
    fileprivate let digest: [UInt8]

    /// The marks of one recipient, under the active key first and then under all other keys.
    /// - Parameter path: as RCPT gave it.
    func marks(_ path: String) -> [[UInt8]] {
        let text = Array("postern fan-out 2\n".utf8) + digest + [0] + Array(path.utf8)
        return ([keys.activeKey] + keys.ids.compactMap { keys.key($0) }).map { $0.authenticationCode(for: text) }
    }
}

/// Copies that were handed over although the store could not record it, as on a full disk. Holds their marks, for the life of
/// the process.
package final class HandedOverCopies: Sendable {
    /// At this number all marks are forgotten; a message of those may then be delivered twice. Each mark needs a store failure
    /// of its own, as no further copy of a message is made after one that cannot be recorded.
    private static let capacity = 20_000

    private let marks = Mutex<Set<[UInt8]>>([])

    func insert(_ mark: [UInt8]) {
        marks.withLock { marks in
            if marks.count >= Self.capacity { marks.removeAll() }
            marks.insert(mark)
        }
    }

    func contains(_ mark: [UInt8]) -> Bool { marks.withLock { $0.contains(mark) } }
}
