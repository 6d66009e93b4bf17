// How long each kind of data is kept, and why.

/// A kind of data that is deleted some time after it was created.
package struct DataClass: Sendable, Hashable {
    /// Its name in commands.
    package let name: String
    package let standardDays: Int
    package let range: ClosedRange<Int>
    /// A description of the data, and why it is kept that long.
    package let reason: String
    /// What a hold on this data can be about; empty if the data is about no one.
    package var scopes: [HoldScope] = HoldScope.allCases

    package static let counters = DataClass(
        name: "counters", standardDays: 35, range: 31...3650,
        reason:
            "Counts of each account by day: policies look back 30 days. Older days become one sum, which is kept as long as the account."
    )
    package static let rejections = DataClass(
        name: "rejections", standardDays: 14, range: 1...90,
        reason:
            "The reasons why mail from a team's sources was refused: long enough to notice and fix them.",
        scopes: [.team])
    package static let audit = DataClass(
        name: "audit", standardDays: 1100, range: 90...36_500,
        reason: "Administrative changes: three years, as auditors commonly require.")
    package static let decisions = DataClass(
        name: "decisions", standardDays: 400, range: 1...3650,
        reason:
            "The log of risk decisions: for replay months later, and to test policies on a year of decisions."
    )
    package static let checks = DataClass(
        name: "checks", standardDays: 400, range: 90...3650,
        reason:
            "Outcomes of challenges: policies look back 90 days, and read the time of the last pass."
    )

    package static let dmarcReports = DataClass(
        name: "dmarc-reports", standardDays: 90, range: 1...400,
        reason:
            "Receivers' reports about mail from the relay domains: a season shows what changed.",
        scopes: [])

    package static let usesByOthers = DataClass(
        name: "uses-by-others", standardDays: 30, range: 1...30,
        reason:
            "The domains that wrote to a relay address without being the team's: the user's page shows a month."
    )

    package static let deliveries = DataClass(
        name: "deliveries", standardDays: 90, range: 8...400,
        reason:
            "What became of forwarded mail, by team, hour and provider: limits look back a week, and a season shows what changed."
    )

    /// Every kind, in the order of names.
    package static let all: [DataClass] = [
        audit, checks, counters, decisions, deliveries, dmarcReports, rejections,
        usesByOthers,
    ]
}

/// A kind of data and how long it is kept here.
package struct Retention: Sendable, Hashable {
    package let dataClass: DataClass
    package let days: Int
    package var isStandard: Bool { days == dataClass.standardDays }

    package init(dataClass: DataClass, days: Int) {
        (self.dataClass, self.days) = (dataClass, days)
    }
}
