// The version of the rules by which a report counts against an inbox.

package enum ReportRules {
    /// Raised with each change by which answers stop counting against an inbox: suspensions by the rules before are then looked
    /// at again. 1: an answer that refuses the sender's host, rate, reputation or message does not count.
    package static let version: Int64 = 1
}
