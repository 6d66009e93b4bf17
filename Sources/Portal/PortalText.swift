// Dates, counts and lists in the reader's language.

import Accounts
import Foundation
import InternetMessage
import Languages
import Support

/// Formats the values of a page in the language of its reader.
struct PortalText {
    let language: Catalogue
    private let locale: Locale

    init(_ language: Catalogue) {
        self.language = language
        // European English: `3 March 2026`.
        locale = Locale(identifier: language.tag == "en" ? "en-GB" : language.tag)
    }

    /// `3 March 2026`, UTC.
    func date(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(
            Date.FormatStyle(locale: locale, calendar: Self.calendar, timeZone: .gmt).day().month(.wide).year())
    }

    /// `3 March 2026 at 14:05 UTC`.
    func time(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(
            Date.FormatStyle(date: .long, time: .shortened, locale: locale, calendar: Self.calendar, timeZone: .gmt)) + " UTC"
    }

    /// A day since 1970 in the same way.
    func day(_ day: Int64) -> String { date(day.multipliedReportingOverflow(by: 86_400).partialValue) }

    /// A day since 1970 in the format of forms: `2026-03-03`.
    static func formDay(_ day: Int64) -> String {
        Date(timeIntervalSince1970: Double(day) * 86_400).formatted(.iso8601.year().month().day())
    }

    /// The reverse; nil for text that is not such a date.
    static func dayNumber(_ text: String) -> Int64? {
        guard text.utf8.count == 10, let date = try? Date(text, strategy: .iso8601.year().month().day()) else { return nil }
        // Foundation reads 30 February as 2 March.
        let day = Day.number(Int64(date.timeIntervalSince1970))
        return UTCTime.text(day * 86_400).hasPrefix(text) ? day : nil
    }

    func number(_ count: Int) -> String { count.formatted(.number.locale(locale)) }

    /// `no messages`, `1 message`, `12 messages`.
    func messages(_ count: Int) -> String {
        count == 0 ? language.text("no messages") : language.text("{n} messages", count: count, written: number(count))
    }

    /// `a`, `a and b`, `a, b and c`.
    func list(_ items: [String]) -> String { items.formatted(.list(type: .and).locale(locale)) }

    /// Messages by month, the newest first, for at most a year.
    func months(_ counters: [DailyCounter]) -> [[String: Any]] {
        var sums: [Int: (Int, Int)] = [:]
        for counter in counters where counter.kind == .forwarded || counter.kind == .replied {
            let parts = Self.calendar.dateComponents(
                [.year, .month], from: Date(timeIntervalSince1970: Double(counter.day) * 86_400))
            let month = (parts.year ?? 1970) * 12 + (parts.month ?? 1) - 1
            var sum = sums[month] ?? (0, 0)
            if counter.kind == .forwarded { sum.0 += counter.count } else { sum.1 += counter.count }
            sums[month] = sum
        }
        let style = Date.FormatStyle(locale: locale, calendar: Self.calendar, timeZone: .gmt).month(.wide).year()
        return sums.sorted { $0.key > $1.key }.prefix(12).map { key, sum in
            let first = Self.calendar.date(from: DateComponents(year: key / 12, month: key % 12 + 1, day: 1))
            return [
                "month": first?.formatted(style) ?? "", "to_you": number(sum.0), "from_you": number(sum.1),
            ]
        }
    }

    private static let calendar: Calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar
    }()

    /// An inbox in readable form: the domain in its own script.
    static func address(_ inbox: InboxAddress) -> String {
        let address = inbox.revealed
        let wire = address.wireForm
        guard let at = wire.lastIndex(of: "@"), let domain = DomainName.toUnicode(address.domain) else { return wire }
        return wire[...at] + domain
    }

    /// The letter that represents a team: the first of its name, without an article.
    static func initial(_ name: String) -> String {
        let rest = name.lowercased().hasPrefix("the ") ? name.dropFirst(4) : name[...]
        return String(rest.trimmingPrefix(while: { !$0.isLetter && !$0.isNumber }).prefix(1)).uppercased()
    }
}
