// postern api-key: the keys of teams and of the operator for the HTTP API.

import Accounts
import ArgumentParser
import Database

struct APIKeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "api-key", abstract: "Issue, list, rotate and revoke API keys.",
        discussion: """
            A key is shown once, when it is issued; the store keeps a hash. Scopes of a team's key: \
            \(names(.team)). Of an operator's: \(names(.operator)).
            """,
        subcommands: [Issue.self, List.self, Rotate.self, Revoke.self])

    private static func names(_ owner: Scope.Owner) -> String {
        Scope.available(to: owner).map(\.rawValue).joined(separator: ", ")
    }

    private static func lastUse(_ key: APIKey) -> String? {
        key.lastUsedDay.map {
            String(timestamp($0.multipliedReportingOverflow(by: 86_400).partialValue).prefix(10))
        }
    }

    private static func members(_ key: APIKey) -> Members {
        [
            "key": key.id, "team": key.team?.id,
            "state": key.state(now: PosternClock.now()).rawValue,
            "scopes": key.scopes.map(\.rawValue).sorted(),
            "note": key.note.isEmpty ? nil : key.note,
            "created_at": timestamp(key.createdAt), "expires_at": key.expiresAt.map(timestamp),
            "revoked_at": key.revokedAt.map(timestamp), "last_used_on": lastUse(key),
            "rotated_to": key.rotatedTo,
        ]
    }

    /// Prints a new key. The key itself is the only line on standard output.
    private static func show(_ key: APIKey, _ text: APIKeyText, json: Bool) throws {
        struct Shown: Encodable {
            let key: String
            let secret: String
            let team: String?
            let scopes: [String]
            let expiresAt: String?
        }
        guard json else { return print(text.revealed) }
        try printJSON(
            Shown(
                key: key.id, secret: text.revealed, team: key.team?.id,
                scopes: key.scopes.map(\.rawValue).sorted(),
                expiresAt: key.expiresAt.map(timestamp)))
    }

    /// Tells the user which key was issued.
    private static func tell(_ key: APIKey, json: Bool, further: String = "") {
        guard !json else { return }
        Failure.note(
            "Key \(key.id) of \(key.team.map { "team \($0.id)" } ?? "the operator"), "
                + (key.expiresAt.map { "until \(timestamp($0))" } ?? "without an end")
                + ". It is not shown again\(further).")
    }

    struct Issue: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Issue a key.",
            discussion:
                "The key goes to standard output, and everything else to standard error: redirect standard output to keep the key."
        )

        @Argument(help: "The team that owns the key.")
        var team: String?
        @Flag(name: .customLong("operator"), help: "A key for the operator, not for a team.")
        var isOperator = false
        @Option(
            help: ArgumentHelp("Its scopes, separated by commas or repeated.", valueName: "scope"))
        var scope: [String]
        @Option(
            help: ArgumentHelp(
                "When it expires: 90d, 12h, a date as in 2027-01-31, or never.", valueName: "when"))
        var expires = "never"
        @Option(help: "A description of what it is for.")
        var note = ""
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            guard isOperator == (team == nil) else {
                throw CommandError.usage(
                    "give a team, or --operator; see 'postern api-key issue --help'")
            }
            let change = thisChange()
            let scopes = Set(
                scope.flatMap { $0.split(separator: ",") }.map { Scope(rawValue: String($0)) })
            let end = try ExpiryText.seconds(expires, now: change.now)
            try installation.withStore { store in
                let (key, _) = try SecretOutput.issue { secret in
                    try store.apiKeys.issue(
                        team: team, scopes: scopes, expiresAt: end, note: note, change
                    ) {
                        key, text throws(StoreFailure) in
                        try secret.write { try APIKeyCommand.show(key, text, json: output.json) }
                    }
                }
                APIKeyCommand.tell(key, json: output.json)
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List keys.")

        @Argument(help: "Only keys of this team.")
        var team: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let rows = try installation.withStore { try $0.apiKeys.keys(team: team) }
            try output.print(
                rows, ["KEY", "OWNER", "STATE", "EXPIRES", "LAST USED", "SCOPES", "NOTE"],
                json: members
            ) {
                [
                    $0.id, $0.team?.id ?? "(operator)",
                    $0.state(now: PosternClock.now()).rawValue
                        + ($0.rotatedTo.map { ", rotated to \($0)" } ?? ""),
                    $0.expiresAt.map(timestamp) ?? "never",
                    lastUse($0) ?? "-", $0.scopes.map(\.rawValue).sorted().joined(separator: ","),
                    $0.note,
                ]
            }
        }
    }

    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Issue a key that replaces another.",
            discussion:
                """
                The new key has the same owner and scopes, and lives as long as the old one was issued for. Both work until the \
                overlap is over; then the old key expires, with the keys that it issued: the new key issues others. For a key that \
                was stolen, use postern api-key revoke.
                """)

        @Argument(help: "The key's id, as in postern api-key list.")
        var key: String
        @Option(
            help: ArgumentHelp(
                "How long the old key still works, as in 7d or 12h. By default 7d, at most as long as the new key.",
                valueName: "time"))
        var overlap: String?
        @Option(
            help: ArgumentHelp(
                "When the new key expires: 90d, 12h, a date as in 2027-01-31, or never.",
                valueName: "when"))
        var expires: String?
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        /// In seconds.
        private static let usualOverlap: Int64 = 7 * 86_400

        func run() throws {
            let change = thisChange()
            let given = overlap.map { ExpiryText.duration($0) }
            if let given, given == nil {
                throw CommandError.usage("--overlap must be a duration as in 7d, 12h or 0d")
            }
            try installation.withStore { store in
                let end: Int64?
                if let expires {
                    end = try ExpiryText.seconds(expires, now: change.now)
                } else {
                    let old = try store.apiKeys.key(self.key)
                    end = old.expiresAt.map { change.now + max(0, $0 - old.createdAt) }
                }
                let life = end.map { $0 - change.now }
                let seconds =
                    given.flatMap { $0 } ?? min(Self.usualOverlap, life ?? Self.usualOverlap)
                if let life, seconds > life,
                    try store.apiKeys.key(self.key).state(now: change.now) == .active
                {
                    throw CommandError.usage(
                        "the new key would end before the old one: shorten --overlap, or give --expires; nothing was changed"
                    )
                }
                let (key, _, old) = try SecretOutput.issue { secret in
                    try store.apiKeys.rotate(self.key, overlap: seconds, expiresAt: end, change) {
                        new, text throws(StoreFailure) in
                        try secret.write { try APIKeyCommand.show(new, text, json: output.json) }
                    }
                }
                let oldEnd = old.expiresAt.map(timestamp) ?? "never"
                let issued = try store.apiKeys.keys(team: old.team?.id).count {
                    $0.issuedBy == old.id && $0.state(now: change.now) == .active
                }
                let others =
                    issued == 0
                    ? ""
                    : ", and \(issued == 1 ? "the key" : "the \(issued) keys") that it issued ended"
                APIKeyCommand.tell(
                    key, json: output.json,
                    further: "; key \(old.id) works until \(oldEnd)\(others)")
            }
        }
    }

    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke a key at once.",
            discussion: "A running service refuses it within two seconds.")

        @Argument(help: "The key's id, as in postern api-key list.")
        var key: String
        @OptionGroup var confirmation: ConfirmationOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let found = try store.apiKeys.key(key)
                if found.revokedAt == nil, !confirmation.yes {
                    throw CommandError.usage(
                        "requests with key \(key) will be refused: repeat with --yes to revoke it; nothing was changed"
                    )
                }
                _ = try store.apiKeys.revoke(key, thisChange())
                print("Revoked key \(key).")
            }
        }
    }
}
