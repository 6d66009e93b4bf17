// Limits of the sign-in page, beyond which it refuses or requires more than a code.

/// Limits of the sign-in page. Those of one inbox (`NoticeLimits`, `SignInCodeLimits`) are strict.
/// Those of a network are wide, because a school or a carrier has many users behind one address.
package struct SignInLimits: Sendable, Hashable {
    /// Messages that one network may request in ten minutes.
    package let requestsPerNetwork: Int
    /// Wrong codes and passkeys of one network in ten minutes.
    package let wrongCodesPerNetwork: Int
    /// Wrong codes of all networks in an hour. Beyond it, a code alone opens no session in a
    /// browser that its user has not used before.
    package let wrongCodesPerHour: Int

    package static let standard = SignInLimits(
        requestsPerNetwork: 600, wrongCodesPerNetwork: 60, wrongCodesPerHour: 1_000)

    package init(requestsPerNetwork: Int, wrongCodesPerNetwork: Int, wrongCodesPerHour: Int) {
        self.requestsPerNetwork = requestsPerNetwork
        self.wrongCodesPerNetwork = wrongCodesPerNetwork
        self.wrongCodesPerHour = wrongCodesPerHour
    }
}
