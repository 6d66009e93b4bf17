// Timestamps and durations: ranges, arithmetic, RFC 3339 text, calendar parts. No clock and no
// time-zone database: the caller passes a function that resolves names of zones.

import Support

/// A duration of whole nanoseconds that fit 64 bits, some 292 years (CEL language
/// definition, "Overflow").
package struct CELDuration: Sendable, Equatable {
    /// Seconds, rounded down; with `nanoseconds` added they are the duration.
    package let seconds: Int64
    /// 0..<1e9, added to the seconds.
    package let nanoseconds: Int32

    /// Total in nanoseconds.
    var total: Int128 { Int128(seconds) * 1_000_000_000 + Int128(nanoseconds) }

    /// From nanoseconds; nil if out of range.
    package init?(total: Int128) {
        guard Int64(exactly: total) != nil else { return nil }
        let (seconds, nanoseconds) = floorDivide(total, 1_000_000_000)
        self.seconds = Int64(seconds)
        self.nanoseconds = Int32(nanoseconds)
    }

    /// Parses Go's form, which CEL's `duration()` accepts: `1h30m`, `-1.5s`,
    /// `20ms`, `3us`, `7ns`, `0`.
    package init?(text: String) {
        var bytes = Array(text.utf8)[...]
        var negative = false
        if let sign = bytes.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
            negative = sign == UInt8(ascii: "-")
            bytes = bytes.dropFirst()
        }
        if bytes.elementsEqual([UInt8(ascii: "0")]) {
            self.init(total: 0)
            return
        }
        guard !bytes.isEmpty else { return nil }
        var total: Int128 = 0
        while !bytes.isEmpty {
            let whole = bytes.prefix { $0.isASCIIDigit }
            bytes = bytes.dropFirst(whole.count)
            var fraction: ArraySlice<UInt8> = []
            if bytes.first == UInt8(ascii: ".") {
                fraction = bytes.dropFirst().prefix { $0.isASCIIDigit }
                bytes = bytes.dropFirst(1 + fraction.count)
            }
            guard !whole.isEmpty || !fraction.isEmpty, whole.count <= 19 else { return nil }
            let name = String(
                decoding: bytes.prefix { !$0.isASCIIDigit && $0 != UInt8(ascii: ".") },
                as: UTF8.self)
            guard let unit = Self.units[name] else { return nil }
            bytes = bytes.dropFirst(name.utf8.count)
            total += whole.reduce(Int128(0)) { $0 * 10 + Int128($1 - 48) } * unit
            var place = unit
            for digit in fraction {
                place /= 10
                if place == 0 { break }
                total += Int128(digit - 48) * place
            }
        }
        self.init(total: negative ? -total : total)
    }

    private static let units: [String: Int128] = [
        "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000,
        "m": 60_000_000_000,
        "h": 3_600_000_000_000,
    ]

    /// Seconds with as many decimals as needed: `1.5s`.
    package var text: String {
        let total = total
        let magnitude = total < 0 ? -total : total
        let sign = total < 0 ? "-" : ""
        return "\(sign)\(magnitude / 1_000_000_000)\(fractionText(Int(magnitude % 1_000_000_000)))s"
    }
}

/// A point in time between 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z
/// (google.protobuf.Timestamp).
package struct CELTimestamp: Sendable, Equatable {
    /// Seconds since 1970-01-01T00:00:00Z, rounded down.
    package let seconds: Int64
    /// 0..<1e9.
    package let nanoseconds: Int32

    static let minimumSeconds: Int64 = -62_135_596_800
    static let maximumSeconds: Int64 = 253_402_300_799

    var total: Int128 { Int128(seconds) * 1_000_000_000 + Int128(nanoseconds) }

    init?(total: Int128) {
        let (seconds, nanoseconds) = floorDivide(total, 1_000_000_000)
        guard let seconds = Int64(exactly: seconds) else { return nil }
        self.init(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    /// Nil if out of range.
    package init?(seconds: Int64, nanoseconds: Int32 = 0) {
        guard (Self.minimumSeconds...Self.maximumSeconds).contains(seconds),
            (0..<1_000_000_000).contains(nanoseconds)
        else {
            return nil
        }
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Parses RFC 3339 `date-time` (section 5.6), with at most nine
    /// decimals; a leap second is refused.
    package init?(text: String) {
        let bytes = Array(text.utf8)
        func number(_ start: Int, _ count: Int) -> Int64? {
            guard start + count <= bytes.count,
                bytes[start..<start + count].allSatisfy({ $0.isASCIIDigit })
            else { return nil }
            return bytes[start..<start + count].reduce(Int64(0)) { $0 * 10 + Int64($1 - 48) }
        }
        func byte(_ index: Int) -> UInt8 { index < bytes.count ? bytes[index] : 0 }
        guard let year = number(0, 4), byte(4) == UInt8(ascii: "-"), let month = number(5, 2),
            byte(7) == UInt8(ascii: "-"),
            let day = number(8, 2), byte(10) | 0x20 == UInt8(ascii: "t"), let hour = number(11, 2),
            byte(13) == UInt8(ascii: ":"), let minute = number(14, 2),
            byte(16) == UInt8(ascii: ":"), let second = number(17, 2),
            (1...12).contains(month), day >= 1, day <= daysInMonth(year, month), hour < 24,
            minute < 60, second < 60
        else { return nil }
        var index = 19
        var nanoseconds: Int32 = 0
        if byte(index) == UInt8(ascii: ".") {
            index += 1
            var place: Int32 = 100_000_000
            let start = index
            while index < bytes.count, bytes[index].isASCIIDigit {
                guard index - start < 9 else { return nil }
                nanoseconds += Int32(bytes[index] - 48) * place
                place /= 10
                index += 1
            }
            guard index > start else { return nil }
        }
        var offset: Int64 = 0
        if byte(index) | 0x20 == UInt8(ascii: "z") {
            index += 1
        } else {
            guard byte(index) == UInt8(ascii: "+") || byte(index) == UInt8(ascii: "-"),
                let hours = number(index + 1, 2),
                byte(index + 3) == UInt8(ascii: ":"), let minutes = number(index + 4, 2),
                hours < 24, minutes < 60
            else { return nil }
            offset = (hours * 3600 + minutes * 60) * (byte(index) == UInt8(ascii: "-") ? -1 : 1)
            index += 6
        }
        guard index == bytes.count else { return nil }
        let seconds =
            CivilDate.days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }

    /// RFC 3339 in UTC, with as many decimals as needed.
    package var text: String {
        let parts = CalendarParts(seconds: seconds)
        func pad(_ number: Int64, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return
            "\(pad(parts.year, 4))-\(pad(parts.month, 2))-\(pad(parts.day, 2))T\(pad(parts.hour, 2)):\(pad(parts.minute, 2)):"
            + "\(pad(parts.second, 2))\(fractionText(Int(nanoseconds)))Z"
    }
}

/// A moment in the proleptic Gregorian calendar.
struct CalendarParts {
    let year: Int64
    /// 1...12.
    let month: Int64
    /// 1...31.
    let day: Int64
    /// 0 for the first of January.
    let dayOfYear: Int64
    /// 0 for Sunday.
    let weekday: Int64
    let hour: Int64
    let minute: Int64
    let second: Int64

    /// - Parameter seconds: since 1970-01-01T00:00:00 in the displayed zone.
    init(seconds: Int64) {
        let (days, rest) = floorDivide(seconds, 86_400)
        let date = CivilDate(daysSince1970: days)
        (year, month, day) = (date.year, date.month, date.day)
        dayOfYear = days - CivilDate.days(year, 1, 1)
        weekday = floorDivide(days + 4, 7).remainder
        hour = rest / 3600
        minute = rest / 60 % 60
        second = rest % 60
    }
}

/// Resolves time-zone names. This module has no time-zone database; the caller provides one.
package struct TimeZoneOffsets: Sendable {
    /// Seconds east of UTC at a moment (seconds since 1970), or nil for an unknown name.
    package let offset: @Sendable (_ zone: String, _ seconds: Int64) -> Int64?
    /// Whether it knows any names.
    package private(set) var hasNames = true

    /// A source of IANA names such as `Europe/Berlin`. It is not called for
    /// `UTC` and fixed offsets.
    package init(_ offset: @escaping @Sendable (_ zone: String, _ seconds: Int64) -> Int64?) {
        self.offset = offset
    }

    /// No names: only `UTC` and fixed offsets.
    package static let none: TimeZoneOffsets = {
        var none = TimeZoneOffsets { _, _ in nil }
        none.hasNames = false
        return none
    }()

    /// Seconds east of UTC for `UTC`, `+hh:mm`, `-hh:mm`, `hh:mm` or a name; nil if unknown.
    func seconds(of zone: String, at moment: Int64) -> Int64? {
        if zone == "UTC" || zone == "Z" || zone.isEmpty { return 0 }
        var bytes = Array(zone.utf8)[...]
        if bytes.contains(UInt8(ascii: ":")) {
            var sign: Int64 = 1
            if let first = bytes.first, first == UInt8(ascii: "+") || first == UInt8(ascii: "-") {
                sign = first == UInt8(ascii: "-") ? -1 : 1
                bytes = bytes.dropFirst()
            }
            let digits = Array(bytes)
            guard digits.count == 5, digits[2] == UInt8(ascii: ":"),
                [0, 1, 3, 4].allSatisfy({ digits[$0].isASCIIDigit })
            else {
                return nil
            }
            let hours = Int64(digits[0] - 48) * 10 + Int64(digits[1] - 48)
            let minutes = Int64(digits[3] - 48) * 10 + Int64(digits[4] - 48)
            guard hours < 24, minutes < 60 else { return nil }
            return sign * (hours * 3600 + minutes * 60)
        }
        guard zone.utf8.count <= 64, let found = offset(zone, moment), abs(found) < 2 * 86_400
        else { return nil }
        return found
    }
}

private func daysInMonth(_ year: Int64, _ month: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
}

private func fractionText(_ nanoseconds: Int) -> String {
    guard nanoseconds > 0 else { return "" }
    var digits = String(nanoseconds)
    digits = String(repeating: "0", count: 9 - digits.count) + digits
    while digits.last == "0" { digits.removeLast() }
    return "." + digits
}
