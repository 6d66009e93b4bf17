// Days and times in UTC, without a clock, a locale or a formatter.

/// Division rounding towards minus infinity; the divisor is positive.
@inlinable package func floorDivide<Number: BinaryInteger>(
    _ number: Number, _ divisor: Number
) -> (quotient: Number, remainder: Number) {
    let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
}

/// A day of the proleptic Gregorian calendar.
package struct CivilDate: Sendable, Hashable {
    package let year: Int64
    /// 1 … 12
    package let month: Int64
    /// 1 … 31
    package let day: Int64

    /// - Parameter days: since 1970-01-01.
    package init(daysSince1970 days: Int64) {
        // Howard Hinnant's algorithm: eras of 400 years whose years begin in March, so that the
        // leap day is the last day of a year.
        let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let fromMarch = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * fromMarch + 2) / 153
        day = fromMarch - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days since 1970-01-01 of a year, month and day.
    package static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let (era, yearOfEra) = floorDivide(month <= 2 ? year - 1 : year, 400)
        let fromMarch = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + fromMarch
            - 719_468
    }

    /// Days since 1970-01-01 of a date, as in `2026-11-30`; nil for another text, and for a day
    /// that does not exist.
    package static func days(_ text: String) -> Int64? {
        let octets = Array(text.utf8)
        let digits = [octets.prefix(4), octets.dropFirst(5).prefix(2), octets.dropFirst(8)]
        guard octets.count == 10, octets[4] == UInt8(ascii: "-"), octets[7] == UInt8(ascii: "-"),
            digits.allSatisfy({ $0.allSatisfy(\.isASCIIDigit) })
        else { return nil }
        let numbers = digits.map { $0.reduce(0) { $0 * 10 + Int64($1) - 0x30 } }
        return checkedDays(numbers[0], numbers[1], numbers[2])
    }

    /// Days since 1970-01-01; nil for a day that does not exist.
    package static func checkedDays(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
        guard (0...9999).contains(year), (1...12).contains(month), (1...31).contains(day) else {
            return nil
        }
        let days = days(year, month, day)
        return CivilDate(daysSince1970: days).day == day ? days : nil
    }
}

/// Times as `2026-11-20T21:14:03Z` (RFC 3339), without a formatter: every response has several.
package enum UTCTime {
    /// The date of a day since 1970, as in `2026-11-30`; years 0000 to 9999.
    package static func date(_ day: Int64) -> String {
        String(decoding: text(day * 86_400).utf8.prefix(10), as: UTF8.self)
    }

    /// The text for seconds since 1970; years 0000 to 9999.
    package static func text(_ seconds: Int64) -> String {
        let (days, time) = floorDivide(min(max(seconds, -62_167_219_200), 253_402_300_799), 86_400)
        let date = CivilDate(daysSince1970: days)
        var octets: [UInt8] = []
        octets.reserveCapacity(20)
        func append(_ number: Int64, _ digits: Int, _ mark: Unicode.Scalar) {
            var divisor: Int64 = digits == 4 ? 1_000 : 10
            while divisor > 0 {
                octets.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
                divisor /= 10
            }
            octets.append(UInt8(ascii: mark))
        }
        append(date.year, 4, "-")
        append(date.month, 2, "-")
        append(date.day, 2, "T")
        append(time / 3_600, 2, ":")
        append(time / 60 % 60, 2, ":")
        append(time % 60, 2, "Z")
        return String(decoding: octets, as: UTF8.self)
    }
}
