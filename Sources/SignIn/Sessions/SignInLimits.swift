// What the sign-in page lets happen before it refuses, or asks for more than a code.

/// Limits of the sign-in page. Those of one inbox (`NoticeLimits`, `SignInCodeLimits`) do the work; those of a network are wide,
/// because a school or a carrier has many users behind one address.
package struct SignInLimits: Sendable, Hashable {
    /// Messages that one network may ask for in ten minutes.
    package let requestsPerNetwork: Int
    /// Wrong codes and passkeys of one network in ten minutes.
    package let wrongCodesPerNetwork: Int
    /// Wrong codes of all networks in an hour; beyond it a code alone opens nothing in a browser that its user did not use
    /// before.
    package let wrongCodesPerHour: Int

    package static let standard = SignInLimits(requestsPerNetwork: 600, wrongCodesPerNetwork: 60, wrongCodesPerHour: 1_000)

    package init(requestsPerNetwork: Int, wrongCodesPerNetwork: Int, wrongCodesPerHour: Int) {
        self.requestsPerNetwork = requestsPerNetwork
        self.wrongCodesPerNetwork = wrongCodesPerNetwork
        self.wrongCodesPerHour = wrongCodesPerHour
    }
}
