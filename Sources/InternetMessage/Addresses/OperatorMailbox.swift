// Mailboxes of whoever runs a mail domain.

/// Local parts that are the operator's at every domain (RFC 2142 sections 4 and 5), in lower case.
package enum OperatorMailbox {
    package static let names: Set<String> = ["postmaster", "abuse"]
}
