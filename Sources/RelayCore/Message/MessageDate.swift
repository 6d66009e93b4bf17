// The Date field (RFC 5322 section 3.3), written without a clock and without a locale.

package enum MessageDate {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// `Sat, 21 Nov 2026 06:49:30 +0000` for seconds since 1970.
    package static func format(_ seconds: Int64) -> String {
        let day = seconds.quotient(flooringBy: 86_400)
        let time = seconds - day * 86_400
        let (year, month, date) = civil(day)
        let weekday = days[Int((day % 7 + 7) % 7)]
        return "\(weekday), \(date) \(months[month - 1]) \(year) \(pad(time / 3600)):\(pad(time / 60 % 60)):\(pad(time % 60)) +0000"
    }

    private static func pad(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// Year, month 1–12 and day 1–31 of a day number, by the proleptic Gregorian calendar in eras of 400 years.
    private static func civil(_ day: Int64) -> (Int64, Int, Int64) {
        let shifted = day + 719_468
        let era = shifted.quotient(flooringBy: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = Int(monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9)
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }
}

extension Int64 {
    fileprivate func quotient(flooringBy divisor: Int64) -> Int64 {
        self >= 0 ? self / divisor : -((-self + divisor - 1) / divisor)
    }
}
