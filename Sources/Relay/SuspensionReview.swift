// Checks again the suspensions of inboxes that earlier rules for reports caused.

import Accounts
import PosternConfiguration
import RelayCore

package enum SuspensionReview {
    /// Ends those that a provider's block caused (`InboxRepository.reviewSuspensions`).
    /// - Parameter now: seconds since 1970.
    package static func run(_ installation: Installation, now: Int64) throws -> [ReturnedInboxes] {
        try installation.store.inboxes.reviewSuspensions(
            rules: ReportRules.version, providers: installation.configuration.providers, now: now)
    }
}
