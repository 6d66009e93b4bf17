// The DNS of an installation: one caching client for the process, one budget for each message.

import DNSClient
import Foundation
import MailAuth
import PosternConfiguration
import PosternMetrics

package enum Resolvers {
    /// Makes resolvers over one client.
    package typealias Maker = @Sendable () -> any DNSResolver

    /// A maker of resolvers, one for each message, over one client.
    /// - Parameters:
    ///   - limits: of one message; if nil, those of the configuration.
    ///   - resolver: answers instead of the configured servers; nil to use those.
    /// - Throws: `ConfigurationError` for a server that cannot be read, `DNSClientError` if the
    ///   client cannot be opened.
    package static func perMessage(
        _ configuration: Configuration, path: String, limits: BudgetedResolver.Limits? = nil,
        metrics: ServiceMetrics? = nil, resolver: (any DNSResolver)? = nil
    ) throws -> Maker {
        if let resolver { return { resolver } }
        let ares = try client(configuration, path: path)
        let client: any TimedDNSResolver =
            metrics.map { MeteredResolver(ares, metrics: $0) } ?? ares
        let limits =
            limits
            ?? BudgetedResolver.Limits(milliseconds: Int64(configuration.dns.budgetMilliseconds))
        return { BudgetedResolver(client, limits: limits) }
    }

    /// The configured servers in readable form.
    package static func names(_ configuration: Configuration) -> String {
        guard configuration.dns.servers.isEmpty else {
            return configuration.dns.servers.joined(separator: ", ")
        }
        let text = (try? String(contentsOfFile: systemFile, encoding: .utf8)) ?? ""
        var servers: [String] = []
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: \.isWhitespace)
            if words.count > 1, words[0] == "nameserver" { servers.append(String(words[1])) }
        }
        return servers.isEmpty
            ? "the name servers of the system"
            : servers.joined(separator: ", ") + ", of \(systemFile)"
    }

    /// The file with the system's name servers (resolv.conf(5)).
    private static let systemFile = "/etc/resolv.conf"

    /// Only the client, for a caller with a few queries.
    /// - Parameter remembers: whether answers are cached for as long as their TTL allows.
    package static func client(
        _ configuration: Configuration, path: String, remembers: Bool = true
    ) throws -> AresResolver {
        let servers = try configuration.dns.servers.map { text in
            guard let server = DNSServerAddress(text) else {
                throw ConfigurationError(
                    .invalidValue, at: path,
                    "dns.servers: \"\(text)\" is not ADDRESS or ADDRESS:PORT")
            }
            return server
        }
        return try AresResolver(
            settings: DNSClientSettings(
                servers: servers,
                tryMilliseconds: Int32(clamping: configuration.dns.timeoutMilliseconds),
                tries: Int32(clamping: configuration.dns.tries),
                questionMilliseconds: Int64(configuration.dns.budgetMilliseconds),
                cache: remembers ? DNSCacheLimits() : DNSCacheLimits(entries: 0)))
    }
}

/// Counts and measures queries, including those answered from the cache.
private struct MeteredResolver: TimedDNSResolver {
    /// The metrics of one record type, looked up once, as a message makes about six queries.
    private struct Meters {
        let answer, none, failure: Counter
        let seconds: Histogram
    }

    private let base: AresResolver
    private let meters: [DNSRecordType: Meters]

    init(_ base: AresResolver, metrics: ServiceMetrics) {
        self.base = base
        meters = Dictionary(
            uniqueKeysWithValues: DNSRecordType.allCases.map { type in
                let name = "\(type)"
                return (
                    type,
                    Meters(
                        answer: metrics.dnsQueries(name, "answer"),
                        none: metrics.dnsQueries(name, "none"),
                        failure: metrics.dnsQueries(name, "failure"),
                        seconds: metrics.dnsSeconds(name))
                )
            })
    }

    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        measured(type) { base.query(name, type) }
    }

    func query(_ name: String, _ type: DNSRecordType, within milliseconds: Int64) -> DNSAnswer {
        measured(type) { base.query(name, type, within: milliseconds) }
    }

    private func measured(_ type: DNSRecordType, _ ask: () -> DNSAnswer) -> DNSAnswer {
        guard let meters = meters[type] else { return ask() }
        let answer = meters.seconds.timed(ask)
        switch answer {
        case .records: meters.answer.add()
        case .noData, .nxDomain: meters.none.add()
        case .temporaryFailure: meters.failure.add()
        }
        return answer
    }
}
