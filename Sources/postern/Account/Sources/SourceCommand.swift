// postern source: the domains and addresses that teams send from.

import Accounts
import ArgumentParser
import Doctor
import Foundation

struct SourceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "source",
        abstract: "Add, list, remove and check the domains and addresses that a team sends from.",
        subcommands: [Add.self, List.self, Remove.self, CheckDomain.self])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Register a source.",
            discussion: """
                Mail is relayed if its From is at a registered domain (or below it), or is a registered address, and DKIM \
                or SPF proves it. A team has at most \(SourceRepository.maximumPerTeam) sources. Relay domains are refused, and \
                so are mailbox providers as whole domains.

                --envelope pairs the source with another domain, for senders whose mail leaves with an envelope sender at \
                their provider: an SPF pass for that domain then proves the source. Anyone who can send through that domain \
                can send as the team. Prefer DKIM with the team's own domain.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "A domain, or a single address.")
        var source: String
        @Option(
            help: ArgumentHelp(
                "An envelope domain whose SPF proves this source.", valueName: "domain"))
        var envelope: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let checked = try store.sources.checked(
                    source, envelopeDomain: envelope, now: PosternClock.now())
                try store.sources.add(team: team, checked, thisChange())
                if let domain = checked.envelopeDomain {
                    Failure.warn(
                        "anyone who can send through \(domain) can now send as team \(team)")
                }
                print("Added source \(checked.value) of team \(team).")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List a team's sources, or every team's.",
            discussion: """
                The list includes domains and addresses that teams added themselves and have not proved yet, by a TXT record \
                or by a mailed code. STATE is active, pending or stopped; mail is relayed only from active sources.
                """)

        @Argument(help: "The team's identifier. By default all teams.")
        var team: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let sources = try installation.withStore { store in
                try (team.map { [$0] } ?? store.teams.all().map(\.id)).flatMap { team in
                    try store.sourceClaims.list(team: team, now: PosternClock.now()).map {
                        (team: team, listed: $0)
                    }
                }
            }
            try output.print(
                sources, ["TEAM", "SOURCE", "KIND", "ENVELOPE", "SINCE", "STATE", "NEEDS"]
            ) {
                SourceView($0.listed, team: $0.team)
            } columns: { team, listed in
                let source = listed.source
                return [
                    team, source.value, source.kind.rawValue, source.envelopeDomain ?? "-",
                    timestamp(source.createdAt),
                    listed.state, listed.need ?? "-",
                ]
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a source. Mail from it is then refused.")

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The domain or address.")
        var source: String
        @Option(
            help: ArgumentHelp(
                "Remove only the pairing with this envelope domain.", valueName: "domain"))
        var envelope: String?
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                try store.sources.remove(team: team, source, envelopeDomain: envelope, thisChange())
                print("Removed source \(source) of team \(team).")
            }
        }
    }

    struct CheckDomain: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Report what a domain still needs before its mail can be forwarded.",
            discussion: """
                Checks the domain's SPF, DKIM and DMARC records. The DNS cannot list DKIM selectors: without --selector a few \
                dozen common ones are tried, and a key under another name is not found. Exit status 0 if mail from the domain \
                can be forwarded, 1 if something is broken.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The domain in From.")
        var domain: String
        @Option(
            help: ArgumentHelp(
                "A DKIM selector that the team uses; may be repeated.", valueName: "name"))
        var selector: [String] = []
        @Option(
            help: ArgumentHelp(
                "An address that the team sends from, to try SPF with.", valueName: "address"))
        var ip: String?
        @OptionGroup var dns: DNSOptions
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            if let ip { try ClientAddress.check(ip) }
            guard let name = HostName(domain) else {
                throw CommandError(
                    status: EX_DATAERR, message: "\(domain) is not a valid domain name")
            }
            let checks = try installation.withInstallation { installation in
                guard
                    !installation.configuration.relayDomains.contains(where: {
                        $0.hasSameOctets(as: name.text)
                    })
                else {
                    throw CommandError.data("\(name.text) is a relay domain: no team sends from it")
                }
                return SourceChecks(
                    team: team, domain: name.text,
                    sources: try installation.store.sources.sources(team: team),
                    selectors: selector.map { $0.lowercased() },
                    address: ip,
                    resolver: try dns.named(installation.configuration, installation.resolved)
                ).all()
            }
            try CheckOutput.print(checks, of: installation, json: output.json)
            if checks.worst == .broken { throw ExitCode(1) }
        }
    }
}
