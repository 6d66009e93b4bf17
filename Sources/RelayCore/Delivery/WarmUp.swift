// The ceilings of a new host: how many forwards it sends on a day. Pure.

/// The warm-up of one host. Providers judge a host by the mail that they know from it; they defer
/// or refuse a host from which much mail comes at once.
///
/// All forwards count together, as no provider gets more than all of them. A ceiling for each
/// provider would tell a team who uses which: it could use up one with mail to an account of its
/// own, and see whose mail waits.
package struct WarmUp: Sendable, Hashable {
    /// Forwards on each day; each day half more than the day before. Providers ask
    /// that a host at most doubles its mail from day to day. After the last day there is none.
    package static let ceilings = [
        100, 150, 220, 330, 500, 750, 1_100, 1_700, 2_500, 3_800, 5_700, 8_500, 12_800, 19_200,
        28_800, 43_000, 65_000, 97_000, 146_000, 219_000,
    ]

    /// The name of the host.
    package let host: String
    /// In days since 1970 (UTC).
    package let firstDay: Int64

    package init(host: String, firstDay: Int64) { (self.host, self.firstDay) = (host, firstDay) }

    /// What one team may have of a ceiling if other teams send through this host too.
    package static func share(of ceiling: Int) -> Int { max(1, ceiling / 2) }

    /// The ceiling of a day (since 1970); nil for none. Before the first day, that of the first.
    package func ceiling(day: Int64) -> Int? {
        let number = max(0, day - firstDay)
        return number < Self.ceilings.count ? Self.ceilings[Int(number)] : nil
    }
}
