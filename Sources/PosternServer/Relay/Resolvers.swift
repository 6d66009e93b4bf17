// The DNS of an installation: one caching client for the process, one budget for each message.

import DNSClient
import MailAuth

package enum Resolvers {
    /// A maker of resolvers, one for each message, over one client.
    /// - Throws: `ConfigurationError` for a server that cannot be read, `DNSClientError` where the client cannot be opened.
    package static func perMessage(_ configuration: Configuration, path: String) throws -> @Sendable () -> any DNSResolver {
        let client = try client(configuration, path: path)
        let limits = BudgetedResolver.Limits(milliseconds: Int64(configuration.dns.budgetMilliseconds))
        return { BudgetedResolver(client, limits: limits) }
    }

    /// The client alone, for a command that asks a few questions.
    package static func client(_ configuration: Configuration, path: String) throws -> AresResolver {
        let servers = try configuration.dns.servers.map { text in
            guard let server = DNSServerAddress(text) else {
                throw ConfigurationError(.invalidValue, at: path, "dns.servers: \"\(text)\" is no ADDRESS or ADDRESS:PORT")
            }
            return server
        }
        return try AresResolver(
            settings: DNSClientSettings(
                servers: servers, tryMilliseconds: Int32(clamping: configuration.dns.timeoutMilliseconds),
                tries: Int32(clamping: configuration.dns.tries), questionMilliseconds: Int64(configuration.dns.budgetMilliseconds)))
    }
}
