// Recipients that get their own transactions for a while, kept in memory. When the sender repeats
// the message, it learns which recipient was refused.

import MailAuth
import Synchronization

/// Handles a message that one recipient refused. The answer to the whole message cannot name that
/// recipient, and the sender repeats the message.
///
/// Only a proved sender learns the state of an account, at the end of data, and the state is read
/// again each time. If SPF proved the envelope, the same client and envelope sender get one
/// transaction for that recipient alone, and one for all others. Every other sender gets one for
/// each account. In each of them, a recipient of another kind or account gets `452`.
///
/// Kept in memory, as keyed hashes. If they are lost, the sender repeats the message one more time,
/// but no mail is lost.
package final class RefusedRecipients: Sendable {
    /// At this number, the oldest half is removed.
    private static let capacity = 20_000
    /// Seconds. Longer than senders wait before they repeat; Postfix waits at most 4,000.
    private static let lifetime: Int64 = 7_200

    private let keys: TokenKeys
    /// The time until which each entry is kept.
    private let state = Mutex<[[UInt8]: Int64]>([:])

    init(keys: TokenKeys) { self.keys = keys }

    /// Records that a recipient gets its own transaction, for a client and sender that SPF proves.
    func separate(_ path: String, for client: SMTPClientIdentity, now: Int64) {
        note(key(path, client), now)
    }

    /// Records that recipients of several accounts get separate transactions for a while.
    func separate(_ client: SMTPClientIdentity, now: Int64) { note(key(nil, client), now) }

    /// Records that these recipients get separate transactions for a while from this sender and any
    /// client. A large sender uses another address for each attempt. Only for refusals that do not
    /// depend on the state of an account, as the sender is not proved.
    func separate(_ paths: [String], from client: SMTPClientIdentity, now: Int64) {
        for path in paths { note(senderKey(path, client), now) }
    }

    /// Whether one of these recipients must have its own transaction, without recipients of another
    /// kind or account.
    func isAnySeparate(_ paths: [String], for client: SMTPClientIdentity, now: Int64) -> Bool {
        // There are rarely any entries, and without entries nothing must be hashed.
        guard state.withLock({ !$0.isEmpty }) else { return false }
        return isFound(key(nil, client), now)
            || paths.contains {
                isFound(key($0, client), now) || isFound(senderKey($0, client), now)
            }
    }

    private func key(_ path: String?, _ client: SMTPClientIdentity) -> [UInt8] {
        key(path == nil ? "separate" : "refused", client.address ?? "", client.mailFrom, path ?? "")
    }

    private func senderKey(_ path: String, _ client: SMTPClientIdentity) -> [UInt8] {
        key("apart", "", client.mailFrom, path)
    }

    private func key(_ kind: String, _ address: String, _ sender: String, _ path: String) -> [UInt8]
    {
        keys.activeKey.authenticationCode(
            for: Array("postern \(kind) 1\n\(address)\n\(sender)\n".utf8)
                + RecipientPath.comparable(path))
    }

    private func note(_ key: [UInt8], _ now: Int64) {
        state.withLock { state in
            if state.count >= Self.capacity {
                state = state.filter { $0.value > now }
                let old = state.sorted { $0.value < $1.value }.prefix(
                    max(0, state.count - Self.capacity / 2))
                for (key, _) in old { state[key] = nil }
            }
            state[key] = now + Self.lifetime
        }
    }

    private func isFound(_ key: [UInt8], _ now: Int64) -> Bool {
        state.withLock { state in
            guard let until = state[key] else { return false }
            if until <= now { state[key] = nil }
            return until > now
        }
    }
}

enum RecipientPath {
    /// A path without its source route, which servers accept and ignore (RFC 5321 section 4.1.1.3),
    /// as Postfix keeps it.
    static func withoutRoute(_ path: String) -> String {
        let octets = Array(path.utf8)
        guard octets.starts(with: "<@".utf8) else { return path }
        var depth = 0
        for (index, octet) in octets.enumerated() {
            switch octet {
            case UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ":") where depth <= 0:
                return "<" + String(decoding: octets[(index + 1)...], as: UTF8.self)
            default: continue
            }
        }
        return path
    }

    /// A path of RCPT in a form that is the same for every spelling of a relay address: its letters
    /// have no case.
    static func comparable(_ path: String) -> [UInt8] { path.utf8.map(\.asciiLowercased) }
}

extension Refusal {
    /// Whether it is about one recipient and not about the message. Other recipients may still get
    /// the message.
    var isOfRecipient: Bool { SMTPReply.isOfRecipient(reply.code, reply.enhanced) }
}

extension SMTPReply {
    /// Whether it states an account's condition, which only a proved sender learns: unknown to this
    /// team, retired, off, unconfirmed or suspended, over its limit.
    package static func isOfRecipient(_ code: Int, _ enhanced: String) -> Bool {
        code / 100 == 5
            ? ["5.1.1", "5.1.6", "5.2.1"].contains(enhanced)
            : code / 100 == 4 && ["4.2.1", "4.7.1"].contains(enhanced)
    }
}
