// Times on the command line: how long, or until when.

import Foundation

/// Durations and moments as arguments.
enum ExpiryText {
    /// `90d`, `12h`, `30m` or `45s` in seconds; nil for anything else, and for more than 100 years.
    static func duration(_ text: String) -> Int64? {
        guard let unit = text.last, let factor: Int64 = ["s": 1, "m": 60, "h": 3600, "d": 86_400][unit],
            text.dropLast().utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(text.dropLast())
        else { return nil }
        let (seconds, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow || seconds > 100 * 366 * 86_400 ? nil : seconds
    }

    /// The time in seconds since 1970 of `never` (nil), a duration from now on, a date (its end in UTC), or a time in ISO 8601.
    static func seconds(_ text: String, now: Int64) throws -> Int64? {
        if text == "never" { return nil }
        if let duration = duration(text) { return now + duration }
        if let moment = moment(text, endOfDay: true) { return moment }
        throw CommandError.usage("\(text) is not a valid time: give 90d, 12h, a date as in 2027-01-31, or never")
    }

    /// A date or a time in ISO 8601, in UTC, as seconds since 1970.
    static func moment(_ text: String, endOfDay: Bool) -> Int64? {
        let isDate = text.utf8.count == 10
        let full = isDate ? text + (endOfDay ? "T23:59:59Z" : "T00:00:00Z") : text
        return (try? Date(full, strategy: .iso8601)).map { Int64($0.timeIntervalSince1970) }
    }
}
