// Limits with their consequences.

/// A maximum and its consequence.
package struct Limit: Sendable, Hashable {
    /// The reply to the sender beyond a limit.
    package enum Consequence: Sendable, Hashable {
        /// Refused permanently, with this SMTP code and enhanced code.
        case refuse(code: Int, enhanced: String)
        /// The sender keeps the message and tries again.
        case tryLater(code: Int, enhanced: String)

        /// For example `452 4.7.1`.
        package var text: String {
            switch self {
            case .refuse(let code, let enhanced), .tryLater(let code, let enhanced):
                "\(code) \(enhanced)"
            }
        }
    }

    /// The largest accepted value.
    package let max: Int
    package let onExceed: Consequence

    package init(max: Int, onExceed: Consequence) {
        self.max = max
        self.onExceed = onExceed
    }
}
