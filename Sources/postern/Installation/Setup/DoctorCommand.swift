// `postern doctor`: checks the relay from outside, Postfix, and this machine.

import Accounts
import ArgumentParser
import Doctor
import Foundation
import MailAuth
import PosternConfiguration
import Relay
import Support

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check that everything works, and say how to fix what does not.",
        discussion: """
            local: configuration, key file, database and its integrity (of a SQLite file up to 4 GiB), policy, disk, clock, \
            whether a milter answers at the milter's socket and the HTTP API at its address, and the HTTP certificate.
            postfix: every setting that the relay needs, services in master.cf that bypass it, the certificate.
            probe: sends a test reply and a test bounce through the running Postfix and milter, captures them on their way \
            out, and checks whether anything in them reveals the user. They arrive like mail from other servers, so that they \
            pass the same filters. They are sent only if the parts above found nothing broken. The probe needs root, to listen \
            where Postfix sends undeliverable mail (virtual_transport). No other mail is touched, and nothing of the probe \
            remains.
            outside: the DNS records of each relay domain: MX, SPF, DKIM, DMARC with its reports, MTA-STS, TLS-RPT, and PTR \
            = HELO; block_lists; and whether much more mail was sent to a provider yesterday than in the week before.

            Nothing is changed. Exit status 0 if nothing is broken; warnings do not count.
            """)

    enum Part: String, ExpressibleByArgument, CaseIterable { case local, postfix, probe, outside }

    @OptionGroup var options: InstallationOptions
    @OptionGroup var output: OutputOptions
    @Option(
        help: ArgumentHelp(
            "An address that the relay sends from; may be repeated. By default the addresses of its name.",
            valueName: "address"))
    var ip: [String] = []
    @Option(
        help: ArgumentHelp(
            "Where main.cf is. By default postfix_directory of the configuration.", valueName: "dir"
        ),
        transform: filePath)
    var configDirectory: String?
    @Option(
        help: ArgumentHelp(
            "Skip a part: local, postfix, probe, outside; may be repeated.", valueName: "part"))
    var skip: [Part] = []
    @Option(
        help: ArgumentHelp(
            "The address at which Postfix accepts the probe's mail. By default the one for other servers, or else mail.submission.",
            valueName: "host:port"))
    var smtp: String?
    @Option(help: ArgumentHelp("Timeout for the probe's mail, in seconds.", valueName: "seconds"))
    var patience = 60
    @OptionGroup var dns: DNSOptions

    func validate() throws {
        guard (1...3600).contains(patience) else {
            throw ValidationError("--patience must be a number of seconds from 1 to 3600")
        }
        if let smtp, ListenAddress(smtp).map({ $0.port > 0 }) != true {
            throw ValidationError("--smtp must be HOST:PORT, as in 127.0.0.1:25")
        }
    }

    func run() async throws {
        for text in ip { try ClientAddress.check(text) }
        let environment = ProcessInfo.processInfo.environment
        let now = PosternClock.now()
        let facts = LocalProbe.gather(
            flag: options.config, environment: environment, set: options.set, now: now)
        var checks = skip.contains(.local) ? [] : LocalChecks.judge(facts)
        if case .trouble = facts.configuration {
            // Without the relay domains there is nothing else to check.
            try finish(skip.contains(.local) ? LocalChecks.judge(facts) : checks)
            return
        }
        let (configuration, resolved) = try options.configuration()
        var heloName = configuration.hostname
        var relayhost: String?
        if !skip.contains(.postfix) {
            let probe = PostfixProbe(
                directory: directory(configuration), configuration: configuration)
            let (facts, certificates, name) = probe.gather()
            checks += PostfixChecks.judge(facts)
            relayhost = facts.relayhost.isEmpty ? nil : facts.relayhost
            if let name { heloName = name }
            checks += certificates.map { $0.judge(host: name ?? configuration.hostname, now: now) }
        }
        if !skip.contains(.local), let chain = configuration.http.certificate?.chain {
            let host =
                configuration.publicURL.flatMap { URL(string: $0)?.host() }
                ?? configuration.hostname
            checks.append(
                PostfixProbe.certificate(chain, host: host).judge(
                    host: host, now: now, service: .http))
        }
        if !skip.contains(.probe) {
            checks += probe(configuration, isHealthy: checks.worst != .broken, now: now)
        }
        if !skip.contains(.outside) {
            checks += try await outside(
                configuration, resolved, facts, heloName: heloName, relayhost: relayhost, now: now)
        }
        try finish(checks)
    }

    /// The folder of Postfix's configuration.
    private func directory(_ configuration: Configuration) -> String {
        configDirectory ?? configuration.postfixDirectory
    }

    /// Sends a test reply and a test bounce, and deletes what they leave behind.
    private func probe(_ configuration: Configuration, isHealthy: Bool, now: Int64) -> [Check] {
        func unsent(_ why: String, _ remedy: Remedy) -> [Check] {
            [
                .warning(
                    .probe, "no reply and no bounce was sent through Postfix: \(why)",
                    remedy: remedy)
            ]
        }
        guard isHealthy else {
            return unsent(
                "a check above is broken", "fix what is named above, and run \(.diagnose) again")
        }
        let address = smtp.flatMap(ListenAddress.init) ?? configuration.mail.submission
        guard smtp != nil || address.isLoopback else {
            return unsent(
                "mail.submission is another machine",
                "give the address where this machine's Postfix accepts mail with --smtp")
        }
        let postfix = PostfixProbe(
            directory: directory(configuration), configuration: configuration)
        let domain = configuration.relayDomains.first ?? ""
        do {
            guard let port = try postfix.capturePort(of: SelfProbe.address(at: domain)) else {
                return unsent(
                    "undeliverable mail at \(domain) does not go to a port of 127.0.0.1",
                    "let virtual_transport, or transport_maps, send \(domain) to smtp:[127.0.0.1]:9 as postern setup postfix does"
                )
            }
            let route = SelfProbe.Route(
                doors: smtp == nil ? try postfix.incomingDoors() : [], host: address.host,
                port: UInt16(clamping: address.port),
                capturePort: port, timeout: Double(patience))
            let nonce =
                String(UUID().uuidString.lowercased().filter(\.isLetter).prefix(4))
                + String(UInt32.random(in: 0 ... .max), radix: 36)
            guard
                let probe = SelfProbe(
                    configuration, keys: try KeyFile.read(path: configuration.keyFilePath),
                    route: route, now: now, nonce: nonce)
            else {
                return unsent(
                    "the token keys cannot be used", "restore the key file of this installation")
            }
            let outcome = probe.run()
            var checks = outcome.checks
            if !outcome.isFinished, let count = try? postfix.clearQueue(of: probe.isProbes),
                count > 0
            {
                checks.append(
                    .warning(
                        .probeQueue,
                        "\(Count.text(count, "message")) of the probe \(count == 1 ? "was" : "were") removed from Postfix's queue",
                        remedy: "no action is needed"))
            }
            return checks
        } catch {
            return unsent("\(error)", "run \(.diagnose) as root; --skip probe skips this part")
        }
    }

    private func finish(_ checks: [Check]) throws {
        try CheckOutput.print(checks, of: options, json: output.json)
        if checks.worst == .broken { throw ExitCode(1) }
    }

    private func outside(
        _ configuration: Configuration, _ resolved: ResolvedConfiguration, _ facts: LocalFacts,
        heloName: String,
        relayhost: String?,
        now: Int64
    ) async throws -> [Check] {
        let resolver = try dns.named(configuration, resolved)
        // If the name servers do not answer, one line reports that one cause.
        if let silence = resolver.silence([heloName] + configuration.relayDomains) {
            return [silence]
        }
        let host: RelayHost
        do {
            host = try RelayHost.find(
                heloName: heloName, given: ip, relayhost: relayhost, resolver: resolver)
        } catch {
            throw CommandError.usage("--ip: \(error)")
        }
        var checks = [host.presence()] + host.reverse(resolver)
        // Behind NAT an identity is bound to another address than others see: the DNS says which.
        let identities = try configuration.outgoingIdentities.map { identity in
            let found = try RelayHost.find(
                heloName: identity.heloName, given: [], resolver: resolver)
            if relayhost == nil { checks += found.identity(identity.name.text, resolver) }
            return found
        }
        let sending = host.sending(alsoAs: identities)
        // The keys are in the database. If it cannot be read, an earlier check reported that, and
        // the other checks still run.
        var keys: [RelayDomainChecks.Key] = []
        let hasKeys =
            facts.keyFile == .fine && facts.database == .fine && facts.pendingMigrations.isEmpty
        if hasKeys {
            let (found, days) = try options.withStore { store in
                let keys = try store.dkimKeys.keys().filter(\.isPublished).map {
                    RelayDomainChecks.Key(
                        key: $0, publication: try DKIMKeyMaker.publication($0, in: store))
                }
                let today = Day.number(now)
                return (
                    keys,
                    try (1...7).map {
                        ReputationChecks.byProvider(
                            try store.relay.forwardedByDomain(day: today - $0))
                    }
                )
            }
            keys = found
            checks += ReputationChecks.warmUp(days)
        }
        checks += ReputationChecks.blocked(
            sending.addresses, lists: configuration.blockLists, resolver: resolver)
        var localParts = Set(configuration.localRecipients.keys)
        if configuration.operatorAddress != nil { localParts.formUnion(["postmaster", "abuse"]) }
        for (index, domain) in configuration.relayDomains.enumerated() {
            let view = RelayDomainChecks(
                domain: domain, host: sending, keys: keys.filter { $0.key.domain == domain },
                localParts: localParts,
                relayDomains: configuration.relayDomains, now: now, resolver: resolver)
            if index == 0, !configuration.relayDomains.contains(heloName) {
                let own = RelayDomainChecks(
                    domain: domain, host: host, keys: [], localParts: localParts,
                    relayDomains: configuration.relayDomains, now: now, resolver: resolver)
                checks += own.helo()
            }
            checks += view.mx() + view.spf() + (hasKeys ? view.dkim() : []) + view.dmarc()
            // If DNS answers come from a file, nothing is fetched over the network.
            let policy =
                dns.dns == nil && view.announcesTransportPolicy
                ? await PolicyFile.fetch(view.transportPolicyURL) : nil
            checks += view.transport(policy)
        }
        return checks
    }
}
