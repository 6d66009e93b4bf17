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

    /// The name of a language in itself: `Deutsch`.
    static func name(of language: Catalogue) -> String {
        let name =
            Locale(identifier: language.tag).localizedString(forIdentifier: language.tag)
            ?? language.tag
        // Some languages write their own name in lower case. In the list it begins with a capital
        // letter.
        return name.unicodeScalars.first.map {
            $0.properties.titlecaseMapping + String(name.unicodeScalars.dropFirst())
        } ?? name
    }

    /// `3 March 2026`, UTC.
    func date(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(
            Date.FormatStyle(locale: locale, calendar: Self.calendar, timeZone: .gmt).day().month(
                .wide
            ).year())
    }

    /// `3 March 2026 at 14:05 UTC`.
    func time(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(
            Date.FormatStyle(
                date: .long, time: .shortened, locale: locale, calendar: Self.calendar,
                timeZone: .gmt)) + " UTC"
    }

    /// A day since 1970 in the same way.
    func day(_ day: Int64) -> String {
        date(day.multipliedReportingOverflow(by: 86_400).partialValue)
    }

    /// The select lists of a form for a day: day, month and year, in the order and the words of the
    /// reader. A date field would use the language of the browser, which may differ from that of
    /// the page.
    func lists(for days: ClosedRange<Int64>, chosen: FormDay, isInvalid: Bool) -> [DayList] {
        let format =
            DateFormatter.dateFormat(fromTemplate: "yMMMMd", options: 0, locale: locale) ?? ""
        let order = DayPart.allCases.sorted { $0.place(in: format) < $1.place(in: format) }
        return order.map { part in
            DayList(
                name: part.rawValue, label: label(part), isInvalid: isInvalid,
                isFocused: isInvalid && part == order[0],
                options: values(part, days).map { value in
                    DayOption(
                        value: value, text: written(part, value),
                        isChosen: chosen[part].hasSameOctets(as: String(value)))
                })
        }
    }

    private func label(_ part: DayPart) -> String {
        switch part {
        case .day: language.text("Day")
        case .month: language.text("Month")
        case .year: language.text("Year")
        }
    }

    private func values(_ part: DayPart, _ days: ClosedRange<Int64>) -> ClosedRange<Int> {
        switch part {
        case .day: 1...31
        case .month: 1...12
        case .year: FormDay.year(days.lowerBound)...FormDay.year(days.upperBound)
        }
    }

    /// A part of a date as the reader writes it: `3`, `3日`, `March`.
    private func written(_ part: DayPart, _ value: Int) -> String {
        let style = Date.FormatStyle(locale: locale, calendar: Self.calendar, timeZone: .gmt)
        let (date, parts) =
            switch part {
            case .day: (DateComponents(year: 2026, month: 1, day: value), style.day())
            case .month: (DateComponents(year: 2026, month: value, day: 1), style.month(.wide))
            case .year: (DateComponents(year: value, month: 1, day: 1), style.year())
            }
        return Self.calendar.date(from: date)?.formatted(parts) ?? String(value)
    }

    func number(_ count: Int) -> String { count.formatted(.number.locale(locale)) }

    /// `no messages`, `1 message`, `12 messages`.
    func messages(_ count: Int) -> String {
        count == 0
            ? language.text("no messages")
            : language.text("{n} messages", count: count, written: number(count))
    }

    /// A text with a number, as in `{n} refused in 7 days`.
    func count(_ english: String, _ count: Int) -> String {
        language.text(english, count: count, written: number(count))
    }

    /// `a`, `a and b`, `a, b and c`.
    func list(_ items: [String]) -> String { items.formatted(.list(type: .and).locale(locale)) }

    /// The kinds of records that are kept of the user, as a list.
    func kinds(_ kept: KeptRecords) -> String {
        list(
            kept.data.compactMap { kind in
                switch kind {
                case .counters: language.text("the daily counts of your mail")
                case .decisions: language.text("the decisions about extra checks")
                case .checks: language.text("the results of these checks")
                case .deliveries: language.text("complaints about mail to you")
                case .usesByOthers: language.text("the domains that used your addresses")
                case .audit: language.text("the log of changes to your account")
                // Nothing else is kept of a user.
                default: nil
                }
            })
    }

    /// Messages by month, the newest first, for at most a year.
    func months(_ counters: [DailyCounter]) -> [AccountView.Month] {
        var sums: [Int: (Int, Int)] = [:]
        for counter in counters where counter.kind == .forwarded || counter.kind == .replied {
            let parts = Self.calendar.dateComponents(
                [.year, .month], from: Date(timeIntervalSince1970: Double(counter.day) * 86_400))
            let month = (parts.year ?? 1970) * 12 + (parts.month ?? 1) - 1
            var sum = sums[month] ?? (0, 0)
            if counter.kind == .forwarded { sum.0 += counter.count } else { sum.1 += counter.count }
            sums[month] = sum
        }
        let style = Date.FormatStyle(locale: locale, calendar: Self.calendar, timeZone: .gmt).month(
            .wide
        ).year()
        return sums.sorted { $0.key > $1.key }.prefix(12).map { key, sum in
            let first = Self.calendar.date(
                from: DateComponents(year: key / 12, month: key % 12 + 1, day: 1))
            return AccountView.Month(
                month: first?.formatted(style) ?? "", toYou: number(sum.0), fromYou: number(sum.1))
        }
    }

    static let calendar: Calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar
    }()

    /// An inbox in readable form: the domain in its own script.
    static func address(_ inbox: InboxAddress) -> String {
        let address = inbox.revealed
        let wire = address.wireForm
        guard let at = wire.lastIndex(of: "@"), let domain = DomainName.toUnicode(address.domain)
        else { return wire }
        return wire[...at] + domain
    }

    /// The letter that represents a team: the first of its name, without an article.
    static func initial(_ name: String) -> String {
        let rest = name.lowercased().hasPrefix("the ") ? name.dropFirst(4) : name[...]
        return String(rest.trimmingPrefix(while: { !$0.isLetter && !$0.isNumber }).prefix(1))
            .uppercased()
    }
}

/// The fields of a form for a day.
enum DayPart: String, CaseIterable {
    case day, month, year

    /// The position of the part in a pattern of CLDR.
    func place(in format: String) -> Int {
        let letters: [UInt8] =
            switch self {
            case .day: Array("d".utf8)
            case .month: Array("ML".utf8)
            case .year: Array("y".utf8)
            }
        return Array(format.utf8).firstIndex(where: letters.contains) ?? Int.max
    }
}

/// A select list of a form, as its template reads it.
struct DayList {
    let name: String
    let label: String
    let isInvalid: Bool
    let isFocused: Bool
    let options: [DayOption]
}

struct DayOption {
    let value: Int
    let text: String
    let isChosen: Bool
}

/// A day in a form: each part as it was sent, or empty.
struct FormDay {
    var day = ""
    var month = ""
    var year = ""

    init(_ field: (WireText) -> String) {
        (day, month, year) = (field("day"), field("month"), field("year"))
    }

    /// - Parameter number: since 1970.
    init(number: Int64?) {
        guard let number else { return }
        let date = Date(timeIntervalSince1970: Double(number) * 86_400)
        let parts = PortalText.calendar.dateComponents(in: .gmt, from: date)
        (day, month, year) = ("\(parts.day ?? 0)", "\(parts.month ?? 0)", "\(parts.year ?? 0)")
    }

    subscript(part: DayPart) -> String {
        switch part {
        case .day: day
        case .month: month
        case .year: year
        }
    }

    /// The year of a day since 1970.
    static func year(_ number: Int64) -> Int {
        PortalText.calendar.component(
            .year, from: Date(timeIntervalSince1970: Double(number) * 86_400))
    }

    var isIncomplete: Bool { day.isEmpty || month.isEmpty || year.isEmpty }
    var isEmpty: Bool { day.isEmpty && month.isEmpty && year.isEmpty }

    /// Since 1970; nil for a day that does not exist.
    var number: Int64? {
        guard let year = Int(year), (1970...9999).contains(year), let month = Int(month),
            (1...12).contains(month),
            let day = Int(day), (1...31).contains(day),
            let date = PortalText.calendar.date(
                from: DateComponents(timeZone: .gmt, year: year, month: month, day: day))
        else { return nil }
        // Calendars accept 30 February as 2 March.
        let number = Day.number(Int64(date.timeIntervalSince1970))
        return Int(FormDay(number: number).day) == day ? number : nil
    }
}
