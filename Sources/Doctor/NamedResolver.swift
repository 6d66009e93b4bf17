// Names the queried servers in the error when the DNS does not answer.

import MailAuth
import Support

/// A resolver whose failures name the servers that were queried.
package struct NamedResolver: DNSResolver {
    private let base: any DNSResolver
    private let servers: String

    /// - Parameter servers: their names for people, for example `127.0.0.1:53`.
    package init(_ base: any DNSResolver, servers: String) {
        self.base = base
        self.servers = servers
    }

    package func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        let answer = base.query(name, type)
        guard case .temporaryFailure(let reason) = answer else { return answer }
        return .temporaryFailure("\(reason) (asked \(servers))")
    }

    /// Queries names until one query is answered, even with "no such name".
    /// - Returns: nil if a query was answered: then the servers work.
    package func silence(_ names: [String]) -> Check? {
        var reason: String?
        for name in names {
            guard case .temporaryFailure(let failure) = base.query(name, .mx) else { return nil }
            reason = reason ?? failure
        }
        return reason.map {
            .broken(
                .dns,
                "\(servers) gave no answer to any query (\($0)), so nothing outside was checked, and mail waits at its senders",
                remedy:
                    "check that a resolver runs there, or name another one (dns.servers, or nameserver in /etc/resolv.conf)"
            )
        }
    }
}
