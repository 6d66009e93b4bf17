// The mailboxes of the operator of a mail domain.

/// Local parts that belong to the operator at every domain (RFC 2142 sections 4 and 5), in lower
/// case.
package enum OperatorMailbox {
    package static let names: Set<String> = ["postmaster", "abuse"]
}
