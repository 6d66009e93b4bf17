// Times on the command line: a duration, or the end of a period.

import CEL

/// Durations and moments as arguments.
enum ExpiryText {
    /// The seconds of `8w`, `90d`, `12h`, `30m` or `45s`; nil for other texts, and for more than
    /// 100 years.
    static func duration(_ text: String) -> Int64? {
        let units: [UInt8: Int64] = [0x73: 1, 0x6D: 60, 0x68: 3_600, 0x64: 86_400, 0x77: 604_800]
        guard let factor = text.utf8.last.flatMap({ units[$0] }),
            text.utf8.dropLast().allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int64(text.dropLast())
        else { return nil }
        let (seconds, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow || seconds > 100 * 366 * 86_400 ? nil : seconds
    }

    /// The time in seconds since 1970 of `never` (nil), a duration from now on, a date (its end in
    /// UTC), or a time in ISO 8601.
    static func seconds(_ text: String, now: Int64) throws -> Int64? {
        if text == "never" { return nil }
        if let duration = duration(text) { return now + duration }
        if let moment = moment(text, endOfDay: true) { return moment }
        throw CommandError.usage(
            "\(text) is not a valid time: give 90d, 8w, 12h, a date as in 2027-01-31, or never")
    }

    /// The time in seconds since 1970 at which a listing begins: a duration before now, a date (its
    /// beginning in UTC), or a time in ISO 8601.
    static func start(_ text: String, now: Int64) throws -> Int64 {
        if let duration = duration(text) { return max(0, now - duration) }
        if let moment = moment(text, endOfDay: false) {
            guard moment <= now else { throw CommandError.usage("\(text) is in the future") }
            return moment
        }
        throw CommandError.usage(
            "\(text) is not a valid time: give 12h, 30d, 8w, or a date as in 2027-01-31")
    }

    /// A date or a time in ISO 8601, in UTC, as seconds since 1970.
    static func moment(_ text: String, endOfDay: Bool) -> Int64? {
        let isDate = text.utf8.count == 10
        let full = isDate ? text + (endOfDay ? "T23:59:59Z" : "T00:00:00Z") : text
        return CELTimestamp(text: full)?.seconds
    }
}
