// Fan-out: a message to several users arrives in one transaction, but needs a message of its own for each. What belongs to the first
// one goes on in place; the others get a copy of the original, which comes back to the relay as a transaction of its own.

import InternetMessage
import MailCrypto
import Synchronization

/// A copy of the original message that has to be handed over before the message may be accepted.
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

/// What recipients were refused with when their copy was handed over. The answer to the whole message could not say it; the sender
/// repeats the message, and is told at RCPT. Kept in memory for an hour, as keyed hashes: were it lost, one more repetition would be
/// needed, and no mail.
package final class RefusedRecipients: Sendable {
    /// Beyond so many, the oldest half is forgotten.
    private static let capacity = 20_000
    /// Seconds. Longer than senders wait before they repeat.
    private static let lifetime: Int64 = 3_600

    private let state = Mutex<[[UInt8]: (reply: SMTPReply, until: Int64)]>([:])

    init() {}

    func note(_ reply: SMTPReply, for key: @autoclosure () -> [UInt8], now: Int64) {
        let key = key()
        state.withLock { state in
            if state.count >= Self.capacity {
                state = state.filter { $0.value.until > now }
                let old = state.sorted { $0.value.until < $1.value.until }.prefix(max(0, state.count - Self.capacity / 2))
                for (key, _) in old { state[key] = nil }
            }
            state[key] = (reply, now + Self.lifetime)
        }
    }

    func reply(for key: @autoclosure () -> [UInt8], now: Int64) -> SMTPReply? {
        // Nearly always there is nothing, and nothing has to be hashed.
        guard state.withLock({ !$0.isEmpty }) else { return nil }
        let key = key()
        return state.withLock { state in
            guard let found = state[key] else { return nil }
            if found.until <= now {
                state[key] = nil
                return nil
            }
            return found.reply
        }
    }
}

extension Refusal {
    /// Whether it is about one recipient and not about the message: others may have it although this one may not.
    var isOfRecipient: Bool { SMTPReply.isOfRecipient(reply.code, reply.enhanced) }
}

extension SMTPReply {
    /// The states of an account that a proved sender is told: unknown to this team, retired, off, unconfirmed or suspended, over its limit.
    package static func isOfRecipient(_ code: Int, _ enhanced: String) -> Bool {
        code / 100 == 5
            ? ["5.1.1", "5.1.6", "5.2.1"].contains(enhanced) : code / 100 == 4 && ["4.2.1", "4.7.1"].contains(enhanced)
    }
}
