// Recipients that get a transaction of their own for a while, in memory: a sender that repeats a message then learns which of
// them was refused.

import MailAuth
import Synchronization

/// What becomes of a message that one recipient refused: the answer to the whole message cannot name that recipient, and the
/// sender repeats the message.
///
/// The state of an account is revealed only to a proved sender, at the end of data, and is read again each time. Where SPF proved
/// the envelope, the same client and envelope sender get a transaction of its own for that recipient alone, and one for all
/// others. Every other sender gets one for each account. In each of them, a recipient of another kind or account gets `452`.
///
/// Kept in memory, as keyed hashes: losing it costs one more repetition, but no mail.
package final class RefusedRecipients: Sendable {
    /// At this number, the oldest half is forgotten.
    private static let capacity = 20_000
    /// Seconds. Longer than senders wait before they repeat: Postfix waits 4,000 at most.
    private static let lifetime: Int64 = 7_200

    private let keys: TokenKeys
    /// Until when each is kept.
    private let state = Mutex<[[UInt8]: Int64]>([:])

    init(keys: TokenKeys) { self.keys = keys }

    /// Records that a recipient gets its own transaction, for a client and sender that SPF proves.
    func separate(_ path: String, for client: SMTPClientIdentity, now: Int64) { note(key(path, client), now) }

    /// Records that recipients of several accounts get separate transactions for a while.
    func separate(_ client: SMTPClientIdentity, now: Int64) { note(key(nil, client), now) }

    /// Records that these recipients get separate transactions for a while where this sender names them, from any client: a
    /// large sender repeats a message from another address each time. Only for what depends on no account's state, as the
    /// sender is not proved.
    func separate(_ paths: [String], from client: SMTPClientIdentity, now: Int64) {
        for path in paths { note(senderKey(path, client), now) }
    }

    /// Whether one of these recipients is to have its own transaction, apart from others of another kind or account.
    func isAnySeparate(_ paths: [String], for client: SMTPClientIdentity, now: Int64) -> Bool {
        // Nearly always there are no entries, and nothing must be hashed.
        guard state.withLock({ !$0.isEmpty }) else { return false }
        return isFound(key(nil, client), now)
            || paths.contains { isFound(key($0, client), now) || isFound(senderKey($0, client), now) }
    }

    private func key(_ path: String?, _ client: SMTPClientIdentity) -> [UInt8] {
        key(path == nil ? "separate" : "refused", client.address ?? "", client.mailFrom, path ?? "")
    }

    private func senderKey(_ path: String, _ client: SMTPClientIdentity) -> [UInt8] { key("apart", "", client.mailFrom, path) }

    private func key(_ kind: String, _ address: String, _ sender: String, _ path: String) -> [UInt8] {
        keys.activeKey.authenticationCode(
            for: Array("postern \(kind) 1\n\(address)\n\(sender)\n".utf8) + RecipientPath.comparable(path))
    }

    private func note(_ key: [UInt8], _ now: Int64) {
        state.withLock { state in
            if state.count >= Self.capacity {
                state = state.filter { $0.value > now }
                let old = state.sorted { $0.value < $1.value }.prefix(max(0, state.count - Self.capacity / 2))
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
    /// A path without its source route, which servers take and do not use (RFC 5321 section 4.1.1.3), as Postfix keeps it.
    static func withoutRoute(_ path: String) -> String {
        let octets = Array(path.utf8)
        guard octets.starts(with: "<@".utf8) else { return path }
        var depth = 0
        for (index, octet) in octets.enumerated() {
            switch octet {
            case UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ":") where depth <= 0: return "<" + String(decoding: octets[(index + 1)...], as: UTF8.self)
            default: continue
            }
        }
        return path
    }

    /// A path as RCPT gave it, in a form that is the same for every spelling of a relay's address: its letters have no case.
    static func comparable(_ path: String) -> [UInt8] { path.utf8.map(\.asciiLowercased) }
}

extension Refusal {
    /// Whether it is about one recipient and not about the message: other recipients may still get the message.
    var isOfRecipient: Bool { SMTPReply.isOfRecipient(reply.code, reply.enhanced) }
}

extension SMTPReply {
    /// The states of an account that a proved sender learns: unknown to this team, retired, off, unconfirmed or suspended, over
    /// its limit.
    package static func isOfRecipient(_ code: Int, _ enhanced: String) -> Bool {
        code / 100 == 5
            ? ["5.1.1", "5.1.6", "5.2.1"].contains(enhanced) : code / 100 == 4 && ["4.2.1", "4.7.1"].contains(enhanced)
    }
}
