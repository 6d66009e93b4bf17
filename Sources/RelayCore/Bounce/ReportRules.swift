// The version of the rules that decide whether a report counts against an inbox.

package enum ReportRules {
    /// Raised with each change after which fewer answers count against an inbox. Suspensions by
    /// earlier rules are then checked again. Version 1: an answer that refuses the sender's host,
    /// rate, reputation or message does not count.
    package static let version: Int64 = 1
}
