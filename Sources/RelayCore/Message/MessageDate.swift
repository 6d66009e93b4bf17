// The Date field (RFC 5322 section 3.3), written without a clock and without a locale.

import Support

package enum MessageDate {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// `Sat, 21 Nov 2026 06:49:30 +0000` for seconds since 1970.
    package static func format(_ seconds: Int64) -> String {
        let (day, time) = floorDivide(seconds, 86_400)
        let date = CivilDate(daysSince1970: day)
        let weekday = days[Int(floorDivide(day, 7).remainder)]
        return
            "\(weekday), \(date.day) \(months[Int(date.month) - 1]) \(date.year) \(pad(time / 3600)):\(pad(time / 60 % 60)):\(pad(time % 60)) +0000"
    }

    private static func pad(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
