// The time at the beginning of a line of a log. Pure: the caller knows the year and the time zone.

import Support

/// The time of a log line.
package enum DeliveryLogTime: Sendable, Hashable {
    /// RFC 3339, as rsyslog and the journal write it: seconds since 1970.
    case absolute(Int64)
    /// RFC 3164, as syslog and Postfix's `maillog_file` write it, in the time zone of the host:
    /// without a year.
    case local(month: Int, day: Int, hour: Int)

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Nil if the line begins in another way.
    package init?(_ line: ArraySlice<UInt8>) {
        if let seconds = Self.absolute(line) {
            self = .absolute(seconds)
            return
        }
        let words = line.prefix(20).split(separator: 0x20, maxSplits: 3)
        guard words.count >= 3,
            let month = Self.months.firstIndex(where: { words[0].elementsEqual($0.utf8) }),
            let day = Self.number(words[1]), (1...31).contains(day), words[2].count >= 8,
            let hour = Self.number(words[2].prefix(2)), hour < 24
        else { return nil }
        self = .local(month: month + 1, day: day, hour: hour)
    }

    /// `2026-11-29T02:00:03.123456+01:00`, `2026-11-29T02:00:03+0100`, `…Z`.
    private static func absolute(_ line: ArraySlice<UInt8>) -> Int64? {
        let text = Array(line.prefix { $0 != 0x20 }.prefix(40))
        guard text.count >= 20, text[4] == 0x2D, text[7] == 0x2D, text[10] == UInt8(ascii: "T"),
            text[13] == 0x3A, text[16] == 0x3A, let year = number(text[0..<4]),
            let month = number(text[5..<7]), let day = number(text[8..<10]),
            let hour = number(text[11..<13]), let minute = number(text[14..<16]),
            let second = number(text[17..<19]), (1970...9999).contains(year),
            hour < 24, minute < 60, second < 61
        else { return nil }
        let zone = text[19...].drop { $0 == 0x2E || $0.isASCIIDigit }
        var offset = 0
        if let sign = zone.first, sign == 0x2B || sign == 0x2D {
            let digits = zone.dropFirst().filter { $0 != 0x3A }
            guard digits.count == 4, let value = number(digits[...]) else { return nil }
            offset = (value / 100 * 60 + value % 100) * 60 * (sign == 0x2D ? -1 : 1)
        } else if !zone.elementsEqual(CollectionOfOne(UInt8(ascii: "Z"))) {
            return nil
        }
        guard let days = CivilDate.checkedDays(Int64(year), Int64(month), Int64(day)) else {
            return nil
        }
        return days * 86_400 + Int64(hour * 3_600 + minute * 60 + second - offset)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard !digits.isEmpty, digits.count <= 4, digits.allSatisfy(\.isASCIIDigit) else {
            return nil
        }
        return digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
    }
}
