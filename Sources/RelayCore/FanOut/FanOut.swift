// Fan-out: a message to several users arrives in one transaction, but each user needs a separate
// message. The first user's message is relayed in place. Each other user gets a copy of the
// original, which returns to the relay in its own transaction.

import InternetMessage
import MailCrypto
import Synchronization

/// A copy of the original message that must be handed over before the message may be accepted.
package struct FanOutCopy: Sendable, Hashable {
    /// The account of its recipients.
    package let account: AccountNumber
    /// The recipients exactly as in RCPT. All belong to one account.
    package let paths: [String]
    /// The marks of its recipients. If the sender repeats the message, they show that each
    /// recipient has it.
    let marks: [[UInt8]]
}

/// The message as received, for its copies.
package struct FanOutOriginal {
    /// The reverse-path without angle brackets.
    package let sender: String
    package let header: HeaderSection
    package let body: [UInt8]
}

/// The parts that stay the same when a sender repeats a message, to several recipients or to one:
/// the envelope sender, the author's fields, and the body. Trace fields, signatures and the marks
/// of filters change with each attempt.
final class RepetitionDigest {
    private static let names: FieldNameSet = [
        "message-id", "date", "from", "to", "cc", "subject", "resent-message-id", "resent-date",
        "resent-from", "resent-to",
        "resent-cc",
    ]

    private let fields: [HeaderField]
    /// Whether Postfix may have added the Date: it writes Date last, followed by the name of the
    /// zone.
    private let mayDateBeAdded: Bool
    private let body = SHA256()
    private let sender: [UInt8]

    init(header: HeaderSection, sender: String) {
        self.sender = Array(sender.utf8)
        fields = header.fields.filter(Self.names.contains)
        mayDateBeAdded =
            header.fields.last.map {
                ($0.isNamed("Date") || $0.isNamed("Resent-Date"))
                    && $0.bytes.last == UInt8(ascii: ")")
            }
            ?? false
    }

    func update(body chunk: UnsafeRawBufferPointer) { body.update(chunk) }

    /// Ends the digest. Call it once.
    /// - Parameter queueID: Postfix's name of this attempt, which is in a Message-ID that Postfix
    ///   adds; empty if unknown.
    func marks(keys: TokenKeys, queueID: String) -> FanOutMarks {
        let added = Array(".\(queueID)@".utf8)
        let own = fields.filter { field in
            let isID = field.isNamed("Message-ID") || field.isNamed("Resent-Message-ID")
            return queueID.isEmpty || !isID || !field.bytes.contains(added)
        }
        let ids =
            own.contains { $0.isNamed("Resent-From") || $0.isNamed("Resent-To") }
            ? "Resent-Message-ID" : "Message-ID"
        let rest = body.finalize() + sender
        func digest(_ fields: [HeaderField]) -> [UInt8] {
            SHA256.hash(fields.reduce(into: []) { $0 += $1.bytes + [0x0D, 0x0A] }) + rest
        }
        return FanOutMarks(
            keys: keys, dated: digest(own),
            undated: digest(own.filter { !$0.isNamed("Date") && !$0.isNamed("Resent-Date") }),
            mayDateBeAdded: mayDateBeAdded, isIdentified: own.contains { $0.isNamed(ids) })
    }
}

/// Recognises the recipients that already have a message.
struct FanOutMarks {
    let keys: TokenKeys
    fileprivate let dated: [UInt8]
    fileprivate let undated: [UInt8]
    fileprivate let mayDateBeAdded: Bool
    /// Whether the sender gave the message an identifier. A message without one may be another
    /// message with the same words, so its marks count only until it is accepted.
    let isIdentified: Bool

    /// The marks under which a copy for a recipient is recorded.
    /// - Parameter path: exactly as in RCPT.
    func recorded(_ path: String) -> [[UInt8]] {
        [mark(dated, path, keys.activeKey), mark(undated, path, keys.activeKey)]
    }

    /// The marks of a recipient, under the active key first. Any one of them shows that the
    /// recipient has the message.
    func known(_ path: String) -> [[UInt8]] {
        ([keys.activeKey] + keys.ids.compactMap(keys.key)).flatMap { marks(path, $0) }
    }

    /// The marks under the active key.
    func current(_ path: String) -> [[UInt8]] { marks(path, keys.activeKey) }

    private func marks(_ path: String, _ key: HMACSHA256) -> [[UInt8]] {
        [mark(dated, path, key)] + (mayDateBeAdded ? [mark(undated, path, key)] : [])
    }

    private func mark(_ digest: [UInt8], _ path: String, _ key: HMACSHA256) -> [UInt8] {
        key.authenticationCode(
            for: Array("postern fan-out 2\n".utf8) + digest + [0] + RecipientPath.comparable(path))
    }
}

/// Copies that were handed over but that the store could not record, as on a full disk. Keeps their
/// marks until the process ends.
package final class HandedOverCopies: Sendable {
    /// At this number all marks are dropped, and a message with such a mark may be delivered twice.
    /// Each mark requires a separate store failure, as no more copies of a message are made after
    /// one that cannot be recorded.
    private static let capacity = 20_000

    private let marks = Mutex<Set<[UInt8]>>([])

    func insert(_ mark: [UInt8]) {
        marks.withLock { marks in
            if marks.count >= Self.capacity { marks.removeAll() }
            marks.insert(mark)
        }
    }

    func remove(_ mark: [UInt8]) { marks.withLock { _ = $0.remove(mark) } }

    func contains(_ mark: [UInt8]) -> Bool { marks.withLock { $0.contains(mark) } }
}

/// The messages that are now in transactions of this process, by recipient. A sender that times out
/// sends the message again before the first transaction ends.
package final class MessagesUnderWay: Sendable {
    private let marks = Mutex<Set<[UInt8]>>([])

    /// Takes all of these marks. If another transaction has one of them, takes none and returns
    /// false.
    func begin(_ all: [[UInt8]]) -> Bool {
        marks.withLock { marks in
            guard marks.isDisjoint(with: all) else { return false }
            marks.formUnion(all)
            return true
        }
    }

    func end(_ all: [[UInt8]]) { marks.withLock { $0.subtract(all) } }
}
