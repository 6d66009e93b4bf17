// Recipients of a fan-out that were refused, in memory, so that a sender that repeats the message gets an answer for each.

import MailAuth
import Synchronization

/// What becomes of a message that one recipient refused: the answer to the whole message cannot name that recipient, and the
/// sender repeats the message.
///
/// The state of an account is revealed only to a proved sender, and at RCPT the author is not known yet. Where SPF proved the
/// envelope, the same client and envelope sender prove the same again, and get the state at RCPT. Every other sender gets a
/// separate transaction for each account, as the second account gets `452`. It learns at the end of data what the author of
/// that message may know.
///
/// Kept in memory, as keyed hashes: losing it costs one more repetition, but no mail.
package final class RefusedRecipients: Sendable {
    /// At this number, the oldest half is forgotten.
    private static let capacity = 20_000
    /// Seconds. Longer than senders wait before they repeat: Postfix waits 4,000 at most.
    private static let lifetime: Int64 = 7_200

    private let keys: TokenKeys
    /// The state of an account; nil where recipients get separate transactions.
    private let state = Mutex<[[UInt8]: (reply: SMTPReply?, until: Int64)]>([:])

    init(keys: TokenKeys) { self.keys = keys }

    /// Records the state of a recipient's account, for a client and sender that SPF proves.
    func note(_ reply: SMTPReply, of path: String, for client: SMTPClientIdentity, now: Int64) {
        note(reply, key(path, client), now)
    }

    /// Records that recipients of several accounts get separate transactions for a while.
    func separate(_ client: SMTPClientIdentity, now: Int64) { note(nil, key(nil, client), now) }

    /// Records that these recipients get separate transactions for a while where this sender names them, from any client: a
    /// large sender repeats a message from another address each time. Only for what depends on no account's state, as the
    /// sender is not proved.
    func separate(_ paths: [String], from client: SMTPClientIdentity, now: Int64) {
        for path in paths { note(nil, senderKey(path, client), now) }
    }

    /// The recorded state of a recipient.
    func reply(to path: String, for client: SMTPClientIdentity, now: Int64) -> SMTPReply? {
        found(now) { key(path, client) } ?? nil
    }

    /// Whether a recipient is to have its own transaction, apart from others of another kind or account.
    func isSeparate(_ path: String, for client: SMTPClientIdentity, now: Int64) -> Bool {
        found(now) { key(nil, client) } != nil || found(now) { senderKey(path, client) } != nil
    }

    private func key(_ path: String?, _ client: SMTPClientIdentity) -> [UInt8] {
        key(path == nil ? "separate" : "refused", client.address ?? "", client.mailFrom, path ?? "")
    }

    private func senderKey(_ path: String, _ client: SMTPClientIdentity) -> [UInt8] { key("apart", "", client.mailFrom, path) }

    private func key(_ kind: String, _ address: String, _ sender: String, _ path: String) -> [UInt8] {
        keys.activeKey.authenticationCode(for: Array("postern \(kind) 1\n\(address)\n\(sender)\n\(path)".utf8))
    }

    private func note(_ reply: SMTPReply?, _ key: [UInt8], _ now: Int64) {
        state.withLock { state in
            if state.count >= Self.capacity {
                state = state.filter { $0.value.until > now }
                let old = state.sorted { $0.value.until < $1.value.until }.prefix(max(0, state.count - Self.capacity / 2))
                for (key, _) in old { state[key] = nil }
            }
            state[key] = (reply, now + Self.lifetime)
        }
    }

    /// The entry of a key; nil where there is none.
    private func found(_ now: Int64, _ key: () -> [UInt8]) -> SMTPReply?? {
        // Nearly always there are no entries, and nothing must be hashed.
        guard state.withLock({ !$0.isEmpty }) else { return nil }
        let key = key()
        return state.withLock { state in
            guard let found = state[key] else { return nil }
            if found.until <= now {
                state[key] = nil
                return nil
            }
            return .some(found.reply)
        }
    }
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
