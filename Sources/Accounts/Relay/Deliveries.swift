// What became of forwards: how it is counted, and in which form it is read.

import Database
import RelayCore

extension ProviderFamily: SQLCodable {}
extension DeliveryOutcome: SQLCodable {}

/// What a mark of an account says.
package enum DeliveryMark: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// The user reported a message of the team as unwanted.
    case complaint
    /// The provider refused a message because of the reputation of the sender.
    case reputation

    /// The marks of all accounts, deleted ones included, with team and user.
    static let all: SQL = """
        (SELECT a.team_id, a.user_id, m.provider, m.what, m.day FROM delivery_marks m
            JOIN accounts a ON a.id = m.account_id
        UNION ALL SELECT l.team_id, l.user_id, l.provider, l.what, l.day FROM delivery_marks_left l)
        """

    /// The mark that an outcome leaves; nil for none.
    init?(_ outcome: DeliveryOutcome) {
        guard outcome == .reputation else { return nil }
        self = .reputation
    }
}

/// What became of a team's forwards to one provider. For the operator: small counts could reveal
/// to a team which provider a user has.
package struct DeliveryFigures: Sendable, Hashable {
    /// The team's identifier.
    package let team: String
    package let provider: ProviderFamily
    /// Messages by outcome; without those that are zero.
    package var counts: [DeliveryOutcome: Int]
    /// Days on which users complained, one for each account and day.
    package var complaints = 0

    package func count(_ outcome: DeliveryOutcome) -> Int { counts[outcome, default: 0] }

    package init(
        team: String, provider: ProviderFamily, counts: [DeliveryOutcome: Int] = [:]
    ) {
        (self.team, self.provider, self.counts) = (team, provider, counts)
    }
}

/// What became of forwards of an account within one hour.
package struct DeliveryCount: Sendable, Hashable {
    package let account: Int64
    /// Since 1970.
    package let hour: Int64
    package let provider: ProviderFamily
    package let outcome: DeliveryOutcome
    package let count: Int

    package init(
        account: Int64, hour: Int64, provider: ProviderFamily, outcome: DeliveryOutcome, count: Int
    ) {
        self.account = account
        self.hour = hour
        self.provider = provider
        self.outcome = outcome
        self.count = count
    }
}
