// The last message to each address, shown only to its user: when it was forwarded, and its author.
// Kept for 30 days.

import Accounts
import Database
import InternetMessage
import RelayCore
import Synchronization

/// The last message that was forwarded to an account.
package struct LastMail: Sendable, Hashable {
    /// Its author, proved when it came.
    package let sender: String
    /// Seconds since 1970.
    package let at: Int64

    /// Seconds for which it is shown and kept.
    static let lifetime: Int64 = 30 * 86_400
}

/// Collects the last messages in memory, outside the mail path; `flush` writes them in few
/// transactions. If the process is killed, unwritten messages are lost.
package final class LastMailBuffer: Sendable {
    /// Accounts in memory while the store is unavailable; those of further ones are dropped.
    package static let capacity = 100_000
    /// Accounts written in one transaction.
    package static let step = 250

    private let write: @Sendable ([Int64: LastMail]) throws(StoreFailure) -> Void
    private let mails = Mutex<[Int64: LastMail]>([:])

    init(write: @escaping @Sendable ([Int64: LastMail]) throws(StoreFailure) -> Void) {
        self.write = write
    }

    /// Never blocks on the store.
    package func add(_ forward: ForwardAttribution, at time: Int64) {
        mails.withLock {
            Self.add(
                LastMail(sender: forward.author.folded.wireForm, at: time),
                of: forward.account.stored, to: &$0)
        }
    }

    private static func add(_ mail: LastMail, of account: Int64, to mails: inout [Int64: LastMail])
    {
        guard mails.count < capacity || mails[account] != nil, mails[account]?.at ?? 0 <= mail.at
        else { return }
        mails[account] = mail
    }

    /// Writes the collected messages. If the store is unavailable, the rest waits for the next
    /// call, and the error is thrown.
    package func flush() throws(StoreFailure) {
        var rest = mails.withLock { mails in
            defer { mails = [:] }
            // The order is the same on every host, so that two hosts never wait for each other.
            return mails.sorted { $0.key < $1.key }[...]
        }
        while !rest.isEmpty {
            let step = Dictionary(
                uniqueKeysWithValues: rest.prefix(Self.step).map { ($0.key, $0.value) })
            do { try write(step) } catch {
                mails.withLock { mails in
                    for (account, mail) in rest { Self.add(mail, of: account, to: &mails) }
                }
                throw error
            }
            rest = rest.dropFirst(Self.step)
        }
    }
}

extension UserExportRepository {
    package func lastMailBuffer() -> LastMailBuffer {
        LastMailBuffer { mails throws(StoreFailure) in try self.add(mails) }
    }

    private func add(_ mails: [Int64: LastMail]) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try sealer.require(connection)
            for (account, mail) in mails.sorted(by: { $0.key < $1.key }) {
                let sealed = try sealer.seal(mail.sender, .lastSender(account: account), nil)
                try connection.run(
                    """
                    INSERT INTO last_mail (account_id, at, sender_key, sender_sealed)
                    SELECT a.id, \(mail.at), \(sealed.key), \(sealed.octets) FROM accounts a WHERE a.id = \(account)
                    ON CONFLICT (account_id) DO UPDATE SET at = excluded.at, sender_key = excluded.sender_key,
                        sender_sealed = excluded.sender_sealed WHERE last_mail.at <= excluded.at
                    """)
            }
        }
    }

    /// From the columns `last_at`, `sender_key` and `sender_sealed`, which may be
    /// NULL; nil if it is too old.
    func lastMail(_ row: SQLRow, account: Int64, now: Int64) throws(StoreFailure) -> LastMail? {
        guard let at: Int64 = try row["last_at"], at > now - LastMail.lifetime,
            let sealed = try SealedValue(row: row, "sender")
        else {
            return nil
        }
        return LastMail(sender: try sealer.openText(sealed, .lastSender(account: account)), at: at)
    }

    /// Deletes messages older than 30 days, at most `limit`; returns how many.
    package func deleteLastMail(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM last_mail WHERE account_id IN
                    (SELECT account_id FROM last_mail WHERE at <= \(now - LastMail.lifetime) LIMIT \(limit))
                """)
        }
    }
}
