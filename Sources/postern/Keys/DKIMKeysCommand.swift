// postern keys dkim: the keys that sign relayed mail.

import Accounts
import ArgumentParser
import Foundation
import MailAuth
import Relay

struct DKIMKeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dkim",
        abstract: "Generate, publish, activate and retire the keys that sign relayed mail.",
        discussion: """
            Each relay domain signs with one active key of each algorithm: RSA, which every provider checks, and Ed25519 as \
            a second signature if there is such a key. Keys are sealed in the database, so that all hosts of a relay sign \
            with the same keys. A running relay applies changes within seconds.

            To rotate without a gap:

              postern keys dkim generate        the next key; publish the record it prints
              postern keys dkim activate NEXT   checks the DNS, then signs with it
              postern keys dkim retire OLD      two weeks later; then remove its record
            """,
        subcommands: [List.self, Generate.self, Publish.self, Activate.self, Retire.self])

    private static func members(_ key: DKIMKey) -> Members {
        [
            "domain": key.domain, "selector": key.selector, "algorithm": key.algorithm.rawValue,
            "bits": key.bits,
            "state": key.state.rawValue, "created_at": timestamp(key.createdAt),
            "activated_at": key.activatedAt.map(timestamp),
            "deactivated_at": key.deactivatedAt.map(timestamp),
            "retired_at": key.retiredAt.map(timestamp),
        ]
    }

    private static func record(_ key: DKIMKey, _ publication: DKIMKeyPublication) -> Members {
        [
            "domain": key.domain, "selector": key.selector, "state": key.state.rawValue,
            "name": publication.name, "type": "TXT",
            "text": publication.text, "strings": publication.characterStrings,
            "zone": publication.zoneFileRecord,
        ]
    }

    struct Generate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Generate a key and print the record to publish.",
            discussion: "The key is pending: it signs nothing until postern keys dkim activate.")

        @Option(help: ArgumentHelp("The relay domain; by default the first.", valueName: "domain"))
        var domain: String?
        @Option(help: ArgumentHelp("The algorithm.", valueName: "name")) var algorithm:
            DKIMAlgorithm = .rsa
        @Option(
            help: ArgumentHelp(
                "The selector. By default the algorithm and the month, as in rsa202611.",
                valueName: "name"))
        var selector: String?
        @Option(
            help: ArgumentHelp(
                "Length of an RSA key, \(DKIMAlgorithm.rsa.newKeyBits.lowerBound) to "
                    + "\(DKIMAlgorithm.rsa.newKeyBits.upperBound); by default the shortest.",
                valueName: "number"))
        var bits: Int?
        @OptionGroup var options: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try options.withInstallation { installation in
                let key = try DKIMKeyMaker.generate(
                    installation.store,
                    domain: domain ?? installation.configuration.relayDomains.first ?? "",
                    algorithm: algorithm, selector: selector, bits: bits, thisChange())
                let publication = try DKIMKeyMaker.publication(key, in: installation.store)
                if output.json { return try printJSON(record(key, publication)) }
                print(
                    """
                    Generated the \(key.algorithm.rawValue) key \(key.selector) of \(key.domain). Publish this record:

                    \(publication.zoneFileRecord)

                    Then: postern keys dkim activate \(key.selector)
                    """)
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys.",
            discussion: """
                pending: to be published, does not sign yet. active: signs. retiring: replaced, no longer signs, and stays \
                published for the mail that it signed. retired: ended, and the private key is deleted.
                """)

        @OptionGroup var options: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let keys = try options.withStore { try $0.dkimKeys.keys() }
            try output.print(
                keys, ["DOMAIN", "SELECTOR", "ALGORITHM", "BITS", "STATE", "SINCE"], json: members
            ) { key in
                let since: Int64? =
                    switch key.state {
                    case .pending: key.createdAt
                    case .active: key.activatedAt
                    case .retiring: key.deactivatedAt
                    case .retired: key.retiredAt
                    }
                return [
                    key.domain, key.selector, key.algorithm.rawValue, String(key.bits),
                    key.state.rawValue,
                    timestamp(since ?? key.createdAt),
                ]
            }
        }
    }

    struct Activate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sign with a key from now on.",
            discussion: """
                First checks in the DNS whether verifiers find this key, and changes nothing if they do not. The key that \
                signed until now becomes retiring; to go back, activate it again.
                """)

        @Argument(help: "The key's selector.") var selector: String
        @Option(
            help: ArgumentHelp(
                "The relay domain, if several have this selector.", valueName: "domain"))
        var domain: String?
        @Flag(help: "Do not check the DNS: mail fails DKIM until the record is published.")
        var force = false
        @OptionGroup var dns: DNSOptions
        @OptionGroup var options: InstallationOptions

        func run() throws {
            try options.withInstallation { installation in
                let keys = installation.store.dkimKeys
                let key = try keys.key(selector: selector, domain: domain)
                if !force, key.state == .pending || key.state == .retiring {
                    let publication = try DKIMKeyMaker.publication(key, in: installation.store)
                    let answer = try dns.named(installation.configuration, installation.resolved)
                        .query(publication.name, .txt)
                    if let objection = publication.objection(to: answer) {
                        throw CommandError(
                            status: EX_TEMPFAIL,
                            message:
                                "\(publication.name): \(objection); publish the record that postern keys dkim publish \(key.selector) "
                                + "prints and try again, or repeat with --force; nothing was changed"
                        )
                    }
                }
                let result = try keys.activate(key.number, thisChange())
                print(
                    "\(result.key.domain) signs with \(result.key.selector) (\(result.key.algorithm.rawValue)) now."
                )
                if let old = result.replaced {
                    print(
                        "\(old.selector) is retiring: leave its record until \(timestamp(Retire.endOfUse(old))), then: "
                            + "postern keys dkim retire \(old.selector)")
                }
            }
        }
    }

    struct Retire: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End a key and delete its private part.",
            discussion: """
                A pending key, which was never used, can be retired at any time. A retiring key must stay published for two \
                weeks after its last signature; until then the command refuses to retire it.
                """)

        @Argument(help: "The key's selector.") var selector: String
        @Option(
            help: ArgumentHelp(
                "The relay domain, if several have this selector.", valueName: "domain"))
        var domain: String?
        @Flag(
            help:
                "Retire it even if it signs and no other key replaces it, or if mail that it signed may still be in transit."
        )
        var force = false
        @OptionGroup var options: InstallationOptions

        func run() throws {
            try options.withStore { store in
                let key = try store.dkimKeys.key(selector: selector, domain: domain)
                let retired = try store.dkimKeys.retire(key.number, force: force, thisChange())
                let name = "\(retired.selector)._domainkey.\(retired.domain)"
                let end = Self.endOfUse(retired)
                print(
                    retired.activatedAt == nil || end <= PosternClock.now()
                        ? "Retired \(retired.selector) of \(retired.domain). Remove the record \(name)."
                        : "Retired \(retired.selector) of \(retired.domain). Remove the record \(name), "
                            + "but not before \(timestamp(end)): mail that it signed may still be in transit."
                )
            }
        }

        /// The time after which no mail signed with the key can be in transit.
        static func endOfUse(_ key: DKIMKey) -> Int64 {
            (key.deactivatedAt ?? PosternClock.now()) + DKIMKeyRepository.publicationAfterUse
        }
    }

    struct Publish: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the records to publish, in zone file format.",
            discussion: """
                The command does not change the DNS: put the records into the zone of the relay domain. A text is split into \
                strings of at most 255 octets, which are joined again without a space.
                """)

        @Argument(help: "The selector of one key; otherwise all that are not retired.")
        var selector: String?
        @Option(help: ArgumentHelp("Only keys of this relay domain.", valueName: "domain"))
        var domain: String?
        @OptionGroup var options: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            try options.withStore { store in
                var keys = try store.dkimKeys.keys().filter {
                    $0.isPublished && (domain == nil || $0.domain == domain?.lowercased())
                }
                if let selector {
                    keys = [try store.dkimKeys.key(selector: selector, domain: domain)]
                }
                let records = try keys.map { ($0, try DKIMKeyMaker.publication($0, in: store)) }
                if output.json { return try printJSON(records.map(record)) }
                for (_, publication) in records { print(publication.zoneFileRecord) }
            }
        }
    }
}

extension DKIMAlgorithm: ExpressibleByArgument {}
