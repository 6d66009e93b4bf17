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
    /// Identifies a repetition of the message: a keyed hash over message, sender and recipients.
    let mark: [UInt8]
}

/// The message as received, for its copies.
package struct FanOutOriginal {
    /// The reverse-path without angle brackets.
    package let sender: String
    package let header: HeaderSection
    package let body: [UInt8]
}

/// Recognises copies when the sender repeats a message of which only some copies were taken.
struct FanOutMarks {
    let keys: TokenKeys
    private let digest: [UInt8]

    init(keys: TokenKeys, original: FanOutOriginal) {
        self.keys = keys
        let hash = SHA256()
        for field in original.header.fields {
            hash.update(field.bytes)
            hash.update([0x0D, 0x0A])
        }
        hash.update([0x0D, 0x0A])
        hash.update(original.body)
        digest = hash.finalize() + Array(original.sender.utf8)
    }

    /// The marks under the active key and under all other keys.
    func marks(_ paths: [String]) -> [[UInt8]] {
        let text = Array("postern fan-out 1\n".utf8) + digest + paths.flatMap { [0] + Array($0.utf8) }
        return keys.ids.compactMap { id in keys.key(id)?.authenticationCode(for: text) }
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
