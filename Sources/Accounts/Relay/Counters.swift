// Counters for an account and day, never for its correspondents.

import Database

/// The kind of a daily counter. The raw values are in databases: never change or reuse one.
package struct CounterKind: RawRepresentable, SQLCodable, Sendable, Hashable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }

    /// Messages from the team that were relayed to the user; the daily limit applies to them.
    package static let forwarded = CounterKind(rawValue: 1)
    /// Messages from the user that were relayed to the team; the daily limit applies to them.
    package static let replied = CounterKind(rawValue: 2)
    /// The inbox refused permanently (5.1.x, 5.2.1).
    package static let bouncedPermanently = CounterKind(rawValue: 3)
    /// Other failures and delays reported for the inbox.
    package static let bouncedTemporarily = CounterKind(rawValue: 4)
    /// Automatic notes relayed in either direction.
    package static let automaticRelayed = CounterKind(rawValue: 5)
    /// Automatic notes beyond one for each day and correspondent, and notes to a return path
    /// without a known recipient.
    package static let automaticDiscarded = CounterKind(rawValue: 6)
    /// Messages refused because a daily limit was reached.
    package static let overLimit = CounterKind(rawValue: 7)
    /// Messages refused because forwarding is off.
    package static let refusedForwardingOff = CounterKind(rawValue: 8)
    /// Forwarding switched on or off.
    package static let forwardingToggled = CounterKind(rawValue: 9)
    /// Reports about mail whose sender could not be determined, so Postern notified no one.
    package static let reportsDropped = CounterKind(rawValue: 10)
    /// Reports rebuilt and sent on to the envelope sender or the user.
    package static let reportsRelayed = CounterKind(rawValue: 11)
    /// Consent given again after it was revoked.
    package static let rejoined = CounterKind(rawValue: 12)
    /// Messages refused because the leak check found the inbox after the rewriting. Each is a fault
    /// of Postern to be fixed.
    package static let leakIncident = CounterKind(rawValue: 13)
    /// Complaints of the user about mail of the team (RFC 5965). An index names this number.
    package static let complaints = CounterKind(rawValue: 21)
    /// Reports of an identity provider about the account (OpenID CAEP and RISC): policies count
    /// them.
    package static let riskEvents = CounterKind(rawValue: 22)
    /// New reverse addresses that had to be stored; their daily limit applies to them.
    package static let addressesStored = CounterKind(rawValue: 17)
}

extension CounterKind {
    /// All that was ever counted of this kind: the days that are kept, and what is summed up of
    /// those before.
    package func total(account: SQL) -> SQL {
        """
        CAST((SELECT COALESCE(SUM(c.count), 0) FROM daily_counters c
            WHERE c.account_id = \(account) AND c.kind = \(self))
        + COALESCE((SELECT s.count FROM counter_totals s
            WHERE s.account_id = \(account) AND s.kind = \(self)), 0) AS BIGINT)
        """
    }
}

/// Days for counters.
package enum Day {
    /// Whole days since 1970 UTC for a time in seconds.
    package static func number(_ seconds: Int64) -> Int64 {
        seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    }
}

/// Messages relayed for an account in some time.
package struct DailyUsage: Sendable, Hashable {
    package let forwarded: Int
    package let replied: Int

    package init(forwarded: Int, replied: Int) {
        self.forwarded = forwarded
        self.replied = replied
    }
}

/// One counter of an account and a day.
package struct DailyCounter: Sendable, Hashable {
    package let accountNumber: Int64
    /// Days since 1970 UTC.
    package let day: Int64
    package let kind: CounterKind
    package let count: Int

    package init(accountNumber: Int64, day: Int64, kind: CounterKind, count: Int) {
        self.accountNumber = accountNumber
        self.day = day
        self.kind = kind
        self.count = count
    }
}
