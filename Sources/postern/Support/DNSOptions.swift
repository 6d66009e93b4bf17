// The source of a command's DNS answers.

import ArgumentParser
import DNSClient
import Doctor
import Foundation
import MailAuth
import PosternConfiguration
import Relay

/// The system's name servers, others, or a file of answers.
struct DNSOptions: ParsableArguments {
    /// The file of answers.
    @Option(
        help: ArgumentHelp("Take DNS answers only from this JSON file.", valueName: "file"),
        transform: filePath)
    var dns: String?

    /// Name servers as `ADDRESS` or `ADDRESS:PORT`.
    @Option(
        help: ArgumentHelp(
            "Query this name server, as in 127.0.0.1:5353; may be repeated.", valueName: "address"))
    var dnsServer: [String] = []

    init() {}

    /// The answers of the file; nil if no file was named.
    func zone() throws -> ZoneFile? { try dns.map(ZoneFile.read) }

    /// A resolver for a few queries, with the servers and timeouts of an installation. Its failures
    /// name the servers that were queried.
    func named(
        _ configuration: Configuration, _ resolved: ResolvedConfiguration
    ) throws -> NamedResolver {
        if let dns, let zone = try zone() { return NamedResolver(zone.resolver, servers: dns) }
        guard dnsServer.isEmpty else {
            return NamedResolver(try client(), servers: dnsServer.joined(separator: ", "))
        }
        return NamedResolver(
            try Resolvers.client(configuration, path: resolved.path),
            servers: Resolvers.names(configuration))
    }

    /// A resolver that uses only the network.
    func client(_ installation: Installation? = nil) throws -> AresResolver {
        if dnsServer.isEmpty, let installation {
            return try Resolvers.client(
                installation.configuration, path: installation.resolved.path)
        }
        let servers = try dnsServer.map { text in
            guard let server = DNSServerAddress(text) else {
                throw CommandError.usage("--dns-server: \"\(text)\" is not ADDRESS or ADDRESS:PORT")
            }
            return server
        }
        return try AresResolver(settings: DNSClientSettings(servers: servers))
    }
}

extension ZoneFile {
    /// The maximum number of octets of a file of answers; a larger one is refused.
    private static let maximumOctets = 16 << 20

    /// The answers in a file or pipe.
    static func read(_ path: String) throws -> ZoneFile {
        let json = Data(try InputFile.text(path, maximum: maximumOctets).utf8)
        do {
            return try ZoneFile(json: json)
        } catch {
            throw CommandError.data("\(path): \(error)")
        }
    }
}
