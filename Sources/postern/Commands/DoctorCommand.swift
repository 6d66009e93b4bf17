// `postern doctor`: looks at the relay from outside, at Postfix, and at this machine.

import ArgumentParser
import Foundation
import MailAuth
import PosternServer
import PosternStore

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Look whether everything is as it should be, and say how to mend it.",
        discussion: """
            local: configuration, key file, database, disk, clock, and whether a filter answers at the milter's socket.
            postfix: every setting that the relay needs, services in master.cf that bypass it, the certificate.
            outside: each relay domain as the DNS has it: MX, SPF, DKIM, DMARC with its reports, and PTR = HELO.

            Nothing is changed. Exit status 0 if nothing is broken; warnings do not count.
            """)

    enum Part: String, ExpressibleByArgument, CaseIterable { case local, postfix, outside }

    @OptionGroup var options: InstallationOptions
    @OptionGroup var output: OutputOptions
    @Option(
        help: ArgumentHelp(
            "An address that the relay sends from; may be repeated. Otherwise those of its name.", valueName: "address"))
    var ip: [String] = []
    @Option(help: ArgumentHelp("Where main.cf is.", valueName: "dir")) var configDirectory = "/etc/postfix"
    @Option(help: ArgumentHelp("Leave a part out: local, postfix, outside; may be repeated.", valueName: "part")) var skip:
        [Part] = []
    @OptionGroup var dns: DNSOptions

    func run() throws {
        let environment = ProcessInfo.processInfo.environment
        let now = PosternClock.now()
        let facts = LocalProbe.gather(flag: options.config, environment: environment, set: options.set, now: now)
        var checks = skip.contains(.local) ? [] : LocalChecks.judge(facts)
        if case .trouble = facts.configuration {
            // Without the relay domains there is nothing else to look at.
            try finish(skip.contains(.local) ? LocalChecks.judge(facts) : checks)
            return
        }
        let (configuration, resolved) = try options.configuration()
        var heloName = configuration.hostname
        if !skip.contains(.postfix) {
            let probe = PostfixProbe(directory: configDirectory, configuration: configuration)
            let (facts, certificates, name) = probe.gather()
            checks += PostfixChecks.judge(facts)
            if let name { heloName = name }
            checks += certificates.map { $0.judge(host: name ?? configuration.hostname, now: now) }
        }
        if !skip.contains(.outside) { checks += try outside(configuration, resolved, facts, heloName: heloName, now: now) }
        try finish(checks)
    }

    private func finish(_ checks: [Check]) throws {
        try CheckOutput.print(checks, json: output.json)
        if checks.worst == .broken { throw ExitCode(1) }
    }

    private func outside(
        _ configuration: Configuration, _ resolved: ResolvedConfiguration, _ facts: LocalFacts, heloName: String, now: Int64
    ) throws -> [Check] {
        let resolver: any DNSResolver =
            if let zone = try dns.zone() { zone.resolver } else if dns.dnsServer.isEmpty {
                try Resolvers.client(configuration, path: resolved.path)
            } else { try dns.client() }
        let host: RelayHost
        do {
            host = try RelayHost.find(heloName: heloName, given: ip, resolver: resolver)
        } catch {
            throw CommandError.usage("--ip: \(error)")
        }
        var checks = [host.presence()] + host.reverse(resolver)
        // Keys are in the database: where that cannot be read, said already, the rest is still worth a look.
        var keys: [RelayDomainChecks.Key] = []
        let hasKeys = facts.keyFile == .fine && facts.database == .fine && facts.pendingMigrations.isEmpty
        if hasKeys {
            keys = try options.withStore { store in
                try store.dkimKeys.keys().filter(\.isPublished).map {
                    RelayDomainChecks.Key(key: $0, publication: try SigningKey.publication($0, in: store))
                }
            }
        }
        var localParts = Set(configuration.localRecipients.keys)
        if configuration.operatorAddress != nil { localParts.formUnion(["postmaster", "abuse"]) }
        for (index, domain) in configuration.relayDomains.enumerated() {
            let view = RelayDomainChecks(
                domain: domain, host: host, keys: keys.filter { $0.key.domain == domain }, localParts: localParts,
                relayDomains: configuration.relayDomains, now: now, resolver: resolver)
            if index == 0, !configuration.relayDomains.contains(heloName) { checks += view.helo() }
            checks += view.mx() + view.spf() + (hasKeys ? view.dkim() : []) + view.dmarc()
        }
        return checks
    }
}
