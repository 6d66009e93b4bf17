// Time zones from the system.

import CEL
import Foundation

extension TimeZoneOffsets {
    /// IANA names from the system's database.
    package static let system = TimeZoneOffsets { zone, seconds in
        TimeZone(identifier: zone).map {
            Int64($0.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
        }
    }
}
