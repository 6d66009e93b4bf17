// Looks again at suspensions of inboxes by earlier rules for reports.

import Accounts
import PosternConfiguration
import RelayCore

package enum SuspensionReview {
    /// Ends those that came from a provider's block (`InboxRepository.reviewSuspensions`).
    /// - Parameter now: seconds since 1970.
    package static func run(_ installation: Installation, now: Int64) throws -> [ReturnedInboxes] {
        try installation.store.inboxes.reviewSuspensions(
            rules: ReportRules.version, providers: installation.configuration.providers, now: now)
    }
}
