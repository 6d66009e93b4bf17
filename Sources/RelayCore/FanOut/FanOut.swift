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
    /// Those of its recipients: they show that each has the message, if the sender repeats it.
    let marks: [[UInt8]]
}

/// The message as received, for its copies.
package struct FanOutOriginal {
    /// The reverse-path without angle brackets.
    package let sender: String
    package let header: HeaderSection
    package let body: [UInt8]
}

/// What stays the same when a sender repeats a message, to several recipients or to one: the envelope sender, the fields that
/// the author wrote, and the body. Trace fields, signatures and the marks of filters are made again at each attempt.
final class RepetitionDigest {
    private static let names: FieldNameSet = [
        "message-id", "date", "from", "to", "cc", "subject", "resent-message-id", "resent-date", "resent-from", "resent-to",
        "resent-cc",
    ]

    private let fields: [HeaderField]
    /// Whether Postfix may have added the Date: it writes it last, with the zone's name behind it.
    private let mayDateBeAdded: Bool
    private let body = SHA256()
    private let sender: [UInt8]

    init(header: HeaderSection, sender: String) {
        self.sender = Array(sender.utf8)
        fields = header.fields.filter(Self.names.contains)
        mayDateBeAdded =
            header.fields.last.map { ($0.isNamed("Date") || $0.isNamed("Resent-Date")) && $0.bytes.last == UInt8(ascii: ")") }
            ?? false
    }

    func update(body chunk: UnsafeRawBufferPointer) { body.update(chunk) }

    /// Ends it. Called once.
    /// - Parameter queueID: Postfix's name of this attempt, which is in a Message-ID that Postfix adds; empty if unknown.
    func marks(keys: TokenKeys, queueID: String) -> FanOutMarks {
        let added = Array(".\(queueID)@".utf8)
        let own = fields.filter { field in
            let isID = field.isNamed("Message-ID") || field.isNamed("Resent-Message-ID")
            return queueID.isEmpty || !isID || !field.bytes.contains(added)
        }
        let ids = own.contains { $0.isNamed("Resent-From") || $0.isNamed("Resent-To") } ? "Resent-Message-ID" : "Message-ID"
        let rest = body.finalize() + sender
        func digest(_ fields: [HeaderField]) -> [UInt8] {
            SHA256.hash(fields.reduce(into: []) { $0 += $1.bytes + [0x0D, 0x0A] }) + rest
        }
        return FanOutMarks(
            keys: keys, dated: digest(own), undated: digest(own.filter { !$0.isNamed("Date") && !$0.isNamed("Resent-Date") }),
            mayDateBeAdded: mayDateBeAdded, isIdentified: own.contains { $0.isNamed(ids) })
    }
}

/// Recognises the recipients that have a message already.
struct FanOutMarks {
    let keys: TokenKeys
    fileprivate let dated: [UInt8]
    fileprivate let undated: [UInt8]
    fileprivate let mayDateBeAdded: Bool
    /// Whether the sender gave the message an identifier. One without it may be another message with the same words: its marks
    /// count until it is accepted.
    let isIdentified: Bool

    /// The marks under which a copy for a recipient is recorded.
    /// - Parameter path: as RCPT gave it.
    func recorded(_ path: String) -> [[UInt8]] { [mark(dated, path, keys.activeKey), mark(undated, path, keys.activeKey)] }

    /// The marks of which one shows that a recipient has the message, under the active key first.
    func known(_ path: String) -> [[UInt8]] {
        ([keys.activeKey] + keys.ids.compactMap(keys.key)).flatMap { marks(path, $0) }
    }

    /// Those under the active key.
    func current(_ path: String) -> [[UInt8]] { marks(path, keys.activeKey) }

    private func marks(_ path: String, _ key: HMACSHA256) -> [[UInt8]] {
        [mark(dated, path, key)] + (mayDateBeAdded ? [mark(undated, path, key)] : [])
    }

    private func mark(_ digest: [UInt8], _ path: String, _ key: HMACSHA256) -> [UInt8] {
        key.authenticationCode(for: Array("postern fan-out 2\n".utf8) + digest + [0] + RecipientPath.comparable(path))
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

    func remove(_ mark: [UInt8]) { marks.withLock { _ = $0.remove(mark) } }

    func contains(_ mark: [UInt8]) -> Bool { marks.withLock { $0.contains(mark) } }
}

/// Messages that transactions of this process have now, by recipient: a sender that gave up waiting sends the message again
/// before the first transaction ends.
package final class MessagesUnderWay: Sendable {
    private let marks = Mutex<Set<[UInt8]>>([])

    /// Takes all of these marks; false, and none, if another transaction has one of them.
    func begin(_ all: [[UInt8]]) -> Bool {
        marks.withLock { marks in
            guard marks.isDisjoint(with: all) else { return false }
            marks.formUnion(all)
            return true
        }
    }

    func end(_ all: [[UInt8]]) { marks.withLock { $0.subtract(all) } }
}
