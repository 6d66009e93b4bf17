// The only interface that mail authentication uses to query the DNS. Evaluation itself does no I/O.

/// The record types that mail authentication queries.
package enum DNSRecordType: String, Sendable, Hashable, CaseIterable {
    case txt = "TXT"
    case a = "A"
    case aaaa = "AAAA"
    case mx = "MX"
    case ptr = "PTR"
}

/// The data of one resource record.
package enum DNSRecord: Sendable, Hashable {
    /// The character-strings of one TXT record, joined without a separator (RFC 7208 section 3.3).
    case txt([UInt8])
    /// An IPv4 or IPv6 address, 4 or 16 octets in network order.
    case address([UInt8])
    /// A mail exchanger; lower preference first. The name has no trailing dot; it is empty
    /// for a null MX (RFC 7505).
    case mx(preference: UInt16, exchange: String)
    /// A domain name without trailing dot.
    case ptr(String)
}

/// The answer of the DNS. *No answer* is never *no record*: only the first three cases give
/// information about the name.
package enum DNSAnswer: Sendable, Hashable {
    /// One record or more, after following CNAMEs.
    case records([DNSRecord])
    /// The name exists and has no record of this type.
    case noData
    /// The name does not exist (RCODE 3).
    case nxDomain
    /// No usable answer: timeout, SERVFAIL, a malformed message, an exhausted budget. The reason is
    /// for the log.
    case temporaryFailure(String)
}

/// Answers DNS queries. May block; must be callable from any thread.
package protocol DNSResolver: Sendable {
    /// - Parameter name: a domain name in ASCII form, without trailing dot.
    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer
}
