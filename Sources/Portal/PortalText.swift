// Dates, counts and lists as people read them.

import Accounts
import Foundation
import InternetMessage
import Support

enum PortalText {
    private static let months = [
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
    ]

    /// `3 March 2026`, UTC.
    static func date(_ seconds: Int64) -> String {
        let (year, month, day) = civil(seconds)
        return "\(day) \(months[month - 1]) \(year)"
    }

    private static func civil(_ seconds: Int64) -> (year: Int, month: Int, day: Int) {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents([.year, .month, .day], from: Date(timeIntervalSince1970: Double(seconds)))
        return (parts.year ?? 1970, min(max(parts.month ?? 1, 1), 12), parts.day ?? 1)
    }

    /// An inbox as its user writes it: the domain in its own script.
    static func address(_ inbox: InboxAddress) -> String {
        let address = inbox.revealed
        let wire = address.wireForm
        guard let at = wire.lastIndex(of: "@"), let domain = DomainName.toUnicode(address.domain) else { return wire }
        return wire[...at] + domain
    }

    /// The letter that stands for a team: the first of its name, without an article.
    static func initial(_ name: String) -> String {
        let rest = name.lowercased().hasPrefix("the ") ? name.dropFirst(4) : name[...]
        return String(rest.trimmingPrefix(while: { !$0.isLetter && !$0.isNumber }).prefix(1)).uppercased()
    }

    /// `no messages`, `1 message`, `12 messages`.
    static func messages(_ count: Int) -> String { count == 0 ? "no messages" : count == 1 ? "1 message" : "\(count) messages" }

    /// `a`, `a and b`, `a, b and c`.
    static func list(_ items: [String]) -> String {
        guard let last = items.last, items.count > 1 else { return items.first ?? "" }
        return items.dropLast().joined(separator: ", ") + " and " + last
    }

    /// Messages by month, the newest first, at most a year.
    static func months(_ counters: [DailyCounter]) -> [[String: Any]] {
        var sums: [Int: (Int, Int)] = [:]
        for counter in counters where counter.kind == .forwarded || counter.kind == .replied {
            let (year, month, _) = civil(counter.day * 86_400)
            var sum = sums[year * 12 + month - 1] ?? (0, 0)
            if counter.kind == .forwarded { sum.0 += counter.count } else { sum.1 += counter.count }
            sums[year * 12 + month - 1] = sum
        }
        return sums.sorted { $0.key > $1.key }.prefix(12).map { key, sum in
            ["month": "\(months[key % 12]) \(key / 12)", "to_you": sum.0, "from_you": sum.1]
        }
    }
}
