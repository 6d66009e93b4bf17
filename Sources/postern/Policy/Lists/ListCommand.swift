// postern list: lists that policies read, and that can change at any time.

import Accounts
import ArgumentParser
import CEL
import Decisions
import Foundation
import Support

extension LiveListKind: ExpressibleByArgument {}

struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Create, change and show the lists that policies read (lists.NAME).",
        discussion: """
            A policy that declares live_lists: {bad_networks: range} can test context.ip in lists.bad_networks. Every host \
            uses a change within two seconds; no policy has to be activated.

            Kinds: text (compared octet for octet), domain (the domain and all domains below it), range (addresses and CIDR \
            ranges), personal (for email addresses and phone numbers; only keyed hashes are kept).
            """,
        subcommands: [Create.self, Add.self, Remove.self, Import.self, Show.self, RemoveList.self])

    struct Owner: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "The team that has the list. By default the installation.", valueName: "team"))
        var team: String?
    }

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create an empty list.")

        @Argument(help: "The list's name: letters, digits and _.") var name: String
        @Option(help: "text, domain, range or personal.") var kind: LiveListKind
        @OptionGroup var owner: Owner
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                try store.liveLists.create(team: owner.team, name: name, kind: kind, thisChange())
                print("Created list \(name) of kind \(kind.rawValue).")
            }
        }
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add entries.",
            discussion: "If an entry is in the list already, its reason and expiry are replaced.")

        @Argument(help: "The list's name.") var name: String
        @Argument(help: "The entries to add.") var values: [String]
        @Option(help: "The reason, for people; no names or addresses.") var reason = ""
        @Option(
            help: ArgumentHelp(
                "When the entries end: 90d, 12h, a date, or never.", valueName: "time"))
        var expires = "never"
        @OptionGroup var owner: Owner
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let now = PosternClock.now()
                let end = try ExpiryText.seconds(expires, now: now)
                if let end, end <= now {
                    throw CommandError.data("--expires \(expires) is in the past")
                }
                let entries = values.map { LiveListEntry($0, reason: reason, expiresAt: end) }
                let added = try store.liveLists.add(
                    team: owner.team, name: name, entries, thisChange())
                let known = values.count - Int(added)
                print(
                    "\(Count.text(Int(added))) new in list \(name)."
                        + (known > 0
                            ? " \(Count.text(known)) in it already: reason and expiry are replaced."
                            : ""))
                let kind = try store.liveLists.list(team: owner.team, name: name).kind
                for value in values {
                    if let note = Self.note(value, kind) { Failure.remark(note) }
                }
            }
        }

        /// A note if an entry covers more than its author may have meant.
        private static func note(_ value: String, _ kind: LiveListKind) -> String? {
            switch kind {
            case .range:
                guard let network = CELNetwork(value),
                    let normal = LiveListEntries.normal(value, .range)
                else { return nil }
                // `198.51.100.7/24` may have been meant as one address.
                if !network.description.hasSameOctets(as: normal) {
                    return "\(value) means the whole range \(normal)"
                }
                let isHuge = network.prefixLength < (network.address.isIPv4 ? 8 : 16)
                return isHuge ? "\(value) is a large part of all addresses" : nil
            case .domain:
                guard let domain = LiveListEntries.normal(value, .domain),
                    !domain.utf8.contains(UInt8(ascii: "."))
                else {
                    return nil
                }
                return "\(value) means every domain that ends in it"
            case .text: return nil
            case .personal:
                guard let normal = LiveListEntries.normal(value, .personal),
                    !LiveListEntries.isAddressOrNumber(normal)
                else {
                    return nil
                }
                return
                    "an entry is neither an email address nor a phone number: it matches only the same text"
            }
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Remove entries.")

        @Argument(help: "The list's name.") var name: String
        @Argument(help: "The entries to remove.") var values: [String]
        @OptionGroup var owner: Owner
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let removed = try store.liveLists.remove(
                    team: owner.team, name: name, values, thisChange())
                print("\(Count.text(Int(removed))) removed from list \(name).")
                // Entries of other kinds match only themselves. Only the first entries get a note,
                // because more would be a second table.
                let kind = try store.liveLists.list(team: owner.team, name: name).kind
                guard kind == .range || kind == .domain else { return }
                for value in values.prefix(20) {
                    guard
                        let found = try store.liveLists.matching(
                            team: owner.team, name: name, value, now: PosternClock.now()
                        ).first
                    else { continue }
                    Failure.remark("\(value) is still matched by the entry \(found.value)")
                }
            }
        }
    }

    struct RemoveList: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove-list", abstract: "Remove a list with all of its entries.",
            discussion: "Policies that still name the list find it empty; the log says so.")

        @Argument(help: "The list's name.") var name: String
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var owner: Owner
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let entries = try store.liveLists.list(team: owner.team, name: name).entries
                let readers = try store.policies.arrangement().policies.filter {
                    try LoadedPolicy(try store.policies.policy(hash: $0.hash)).policy.liveLists
                        .contains {
                            $0.isTeams == (owner.team != nil) && $0.name.hasSameOctets(as: name)
                        }
                }
                if !confirmation.yes, let reader = readers.first {
                    throw CommandError.usage(
                        "policy \(reader.name) reads list \(name): repeat with --yes to remove it; nothing was changed"
                    )
                }
                try confirmation.check("list \(name)", takes: [(Int(entries), "entry")])
                try store.liveLists.removeList(team: owner.team, name: name, thisChange())
                while try store.liveLists.step(now: PosternClock.now()) {}
                print("Removed list \(name).")
                for reader in readers {
                    Failure.warn("policy \(reader.name) reads list \(name), and finds it empty now")
                }
            }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show all lists, or the entries of one.",
            discussion: "The entries of a personal list are keyed hashes.")

        @Argument(help: "The list's name. By default all lists.") var name: String?
        @Option(
            help: ArgumentHelp(
                "Only the entries that match this address, domain or text: a range that contains it, a parent domain.",
                valueName: "value"))
        var matching: String?
        @OptionGroup var owner: Owner
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard matching == nil || name != nil else {
                throw ValidationError("--matching needs the list's name.")
            }
        }

        func run() throws {
            guard let name else { return try lists() }
            try installation.withStore { store in
                try output.print(["VALUE", "ADDED", "EXPIRES", "REASON"]) {
                    (after: String?) -> (rows: [KeptListEntry], next: String?) in
                    let now = PosternClock.now()
                    if let matching {
                        return (
                            try store.liveLists.matching(
                                team: owner.team, name: name, matching, now: now), nil
                        )
                    }
                    let entries = try store.liveLists.entries(
                        team: owner.team, name: name, after: after ?? "", limit: OutputOptions.page,
                        now: now)
                    return (entries, entries.count < OutputOptions.page ? nil : entries.last?.value)
                } json: {
                    [
                        "value": $0.value, "reason": $0.reason, "added_at": timestamp($0.addedAt),
                        "expires_at": $0.expiresAt.map(timestamp) ?? "never",
                    ]
                } columns: {
                    [
                        $0.value, timestamp($0.addedAt), $0.expiresAt.map(timestamp) ?? "never",
                        $0.reason,
                    ]
                }
            }
        }

        private func lists() throws {
            let lists = try installation.withStore { store in
                try store.liveLists.lists(team: owner.team).map { list in
                    (
                        list: list,
                        entries: list.entries
                            - (try store.liveLists.ended(list, now: PosternClock.now()))
                    )
                }
            }
            try output.print(lists, ["NAME", "KIND", "ENTRIES", "CHANGED"]) {
                [
                    "name": $0.list.name, "kind": $0.list.kind.rawValue, "entries": "\($0.entries)",
                    "created_at": timestamp($0.list.createdAt),
                    "changed_at": timestamp($0.list.changedAt),
                ]
            } columns: {
                [
                    $0.list.name, $0.list.kind.rawValue, "\($0.entries)",
                    timestamp($0.list.changedAt),
                ]
            }
        }
    }
}
