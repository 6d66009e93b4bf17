// Fan-out: a message to several users arrives in one transaction, but needs its own message for each. What belongs to the first
// one goes on in place; the others get a copy of the original, which comes back to the relay as its own transaction.

import InternetMessage
import MailCrypto
import Synchronization

/// A copy of the original message that must be handed over before the message may be accepted.
package struct FanOutCopy: Sendable, Hashable {
    /// Whose account its recipients belong to.
    package let account: AccountNumber
    /// The recipients, exactly as RCPT gave them. All of one account.
    package let paths: [String]
    /// By which a repetition of the message is recognised: a keyed hash over message, sender and recipients.
    let mark: [UInt8]
}

/// The message as it came in, for copies of it.
package struct FanOutOriginal {
    /// The reverse-path without angle brackets.
    package let sender: String
    package let header: HeaderSection
    package let body: [UInt8]
}

/// How copies are recognised when the sender repeats a message of which only some were taken.
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

    /// The mark under the active key, and under all others that were one of late.
    func marks(_ paths: [String]) -> [[UInt8]] {
        let text = Array("postern fan-out 1\n".utf8) + digest + paths.flatMap { [0] + Array($0.utf8) }
        return keys.ids.compactMap { id in keys.key(id)?.authenticationCode(for: text) }
    }
}

/// Copies that are in custody although the store could not note it, as on a full disk: by their marks, for the life of the
/// process.
package final class HandedOverCopies: Sendable {
    /// Beyond so many, all are forgotten: a message of those may then come twice. The store has to fail for each of them by
    /// itself, as no further copy of a message is made after one that cannot be noted.
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
