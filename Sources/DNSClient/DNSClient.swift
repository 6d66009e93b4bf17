// The settings of the DNS client: servers, timeouts, and cache limits. Every default is
// here with its reason.

import MailAuth

/// Settings of an `AresResolver`.
package struct DNSClientSettings: Sendable {
    /// Name servers in the order of use; empty uses those of the system (resolv.conf).
    package var servers: [DNSServerAddress]
    /// Milliseconds for the first try of each server; c-ares doubles them in every further round. A
    /// recursive server without an answer after two seconds is probably waiting for a dead server
    /// itself.
    package var tryMilliseconds: Int32
    /// Rounds through the servers. Two are enough for one lost packet.
    package var tries: Int32
    /// Milliseconds that one query may take for its caller, tries and TCP included; beyond: a
    /// temporary failure.
    package var questionMilliseconds: Int64
    /// Maximum queries in flight; beyond: a temporary failure. Well below the 65,536 message ids.
    package var maximumInFlight: Int
    /// Requested octets of a UDP answer (EDNS), 512 to 4,096; 1,232 pass every link unfragmented.
    /// Longer answers come by TCP.
    package var udpPayload: Int32
    package var cache: DNSCacheLimits

    package init(
        servers: [DNSServerAddress] = [], tryMilliseconds: Int32 = 2_000, tries: Int32 = 2,
        questionMilliseconds: Int64 = 10_000,
        maximumInFlight: Int = 4_096, udpPayload: Int32 = 1_232,
        cache: DNSCacheLimits = DNSCacheLimits()
    ) {
        self.servers = servers
        self.tryMilliseconds = tryMilliseconds
        self.tries = tries
        self.questionMilliseconds = questionMilliseconds
        self.maximumInFlight = maximumInFlight
        self.udpPayload = min(max(udpPayload, 512), 4_096)
        self.cache = cache
    }
}

/// Limits of the cache; the least recently used answer is removed first.
package struct DNSCacheLimits: Sendable {
    /// Maximum answers.
    package var entries: Int
    /// Maximum octets of answers and names, including an estimate of the overhead.
    package var bytes: Int
    /// Minimum seconds for which a cacheable answer is kept, so that a TTL of zero cannot make one
    /// message query twice.
    package var minimumTTL: Int64
    /// Maximum seconds for which an answer with records is kept. A changed SPF record is used after
    /// at most one day.
    package var maximumTTL: Int64
    /// Maximum seconds for which *no such name* or *no such record* is kept (RFC 2308 section 5
    /// advises one to three hours).
    package var maximumNegativeTTL: Int64

    package init(
        entries: Int = 20_000, bytes: Int = 16 << 20, minimumTTL: Int64 = 1,
        maximumTTL: Int64 = 86_400,
        maximumNegativeTTL: Int64 = 3_600
    ) {
        self.entries = entries
        self.bytes = bytes
        self.minimumTTL = minimumTTL
        self.maximumTTL = maximumTTL
        self.maximumNegativeTTL = maximumNegativeTTL
    }
}

/// The reason why a client could not be made. Permanent: the settings must be changed.
package struct DNSClientError: Error, Sendable, CustomStringConvertible {
    package let description: String
}

/// A resolver that accepts a time limit.
package protocol TimedDNSResolver: DNSResolver {
    /// Like `query`, but with a temporary failure after at most `milliseconds`.
    func query(_ name: String, _ type: DNSRecordType, within milliseconds: Int64) -> DNSAnswer
}
