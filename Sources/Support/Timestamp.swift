// A time in the form of responses and commands.

/// A time, shown as `2026-11-21T07:02:28Z`.
package struct Timestamp: Encodable, Sendable, Hashable {
    /// Since 1970.
    package let seconds: Int64
    /// Nil if only whole seconds are known.
    private var milliseconds: Int64?

    /// - Parameter seconds: since 1970.
    package init(_ seconds: Int64) { self.seconds = seconds }

    /// - Parameter milliseconds: since 1970.
    package init(milliseconds: Int64) {
        seconds = milliseconds / 1000
        self.milliseconds = milliseconds % 1000
    }

    /// Nil for nil.
    package init?(_ seconds: Int64?) {
        guard let seconds else { return nil }
        self.seconds = seconds
    }

    /// In ISO 8601, in UTC.
    package var text: String {
        let text = UTCTime.text(seconds)
        guard let milliseconds else { return text }
        return text.dropLast() + ".\(String(milliseconds + 1000).dropFirst())Z"
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
