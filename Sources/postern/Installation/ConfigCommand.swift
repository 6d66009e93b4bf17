// postern config: the configuration in force.

import ArgumentParser
import Doctor
import Foundation
import PosternConfiguration
import Support

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Show the configuration, and check it.",
        subcommands: [Show.self, Check.self, Keys.self])

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Report whether postern serve could start, without starting it.",
            discussion: """
                Checks the configuration, the key file, the database and its schema, the policies in force, files with \
                secrets, the addresses to listen at and the certificate. Nothing is changed. A port that the running service \
                uses is not an error. Exit status 78 if something prevents the start. postern doctor checks what mail needs \
                beyond that.
                """)

        @Flag(
            help:
                "Check only the parts that a reload applies: the configuration, and that no relay domain is lost."
        )
        var reload = false
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let run = reload ? StartChecks.ofReload : StartChecks.run
            let checks = run(
                installation.config, ProcessInfo.processInfo.environment, installation.set,
                PosternClock.now())
            try CheckOutput.print(checks, of: installation, json: output.json)
            if checks.worst == .broken { throw ExitCode(78) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Print every key with its value, the source of the value, and the reason for the default.",
            discussion: """
                A key is set in postern.yaml. An environment variable overrides the file (POSTERN_LIMITS_HOPS for \
                limits.hops), and --set limits.hops=30 overrides both. An unknown key is an error. Passwords are not shown.
                """)

        @Flag(help: "Only keys that a file, the environment or --set gives, as postconf -n does.")
        var changed = false
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        private struct Row: Encodable {
            let value: JSONValue
            let source: String
            let reason: String
            let beyond: String?
        }

        func run() throws {
            let (_, resolved) = try installation.configuration()
            let entries = resolved.entries.filter { !changed || $0.origin != .standard }
            if output.json {
                let rows = entries.map { entry in
                    let row = Row(
                        value: JSONValue(entry), source: entry.origin.text,
                        reason: entry.key.facts.reason,
                        beyond: entry.key.facts.beyond)
                    return (entry.key.rawValue, row)
                }
                try printJSON(Dictionary(uniqueKeysWithValues: rows))
                return
            }
            for entry in entries {
                let why =
                    entry.key.facts.reason
                    + (entry.key.facts.beyond.map { " Beyond it: \($0)." } ?? "")
                if isTerminal {
                    // One line would be too long for any terminal.
                    print(
                        "\(emphasised(entry.key.rawValue)): \(entry.shownValue)  (\(entry.origin.text))\n    \(why)"
                    )
                } else {
                    print(
                        [entry.key.rawValue, entry.shownValue, entry.origin.text, why].joined(
                            separator: "\t"))
                }
            }
        }
    }
}

extension ConfigCommand {
    struct Keys: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Print every key, with its values, its default, and the reason for the default.",
            discussion: "Needs no installation: this is the table of docs/CONFIGURATION.md.")

        @OptionGroup var output: OutputOptions

        private struct Row: Encodable {
            let values: String
            let standard: String
            let isLive: Bool
            let reason: String
            let beyond: String?
        }

        func run() throws {
            let rows = ConfigurationKey.allCases.map { key in
                let facts = key.facts
                return (
                    key.rawValue,
                    Row(
                        values: facts.values, standard: facts.standardText, isLive: facts.isLive,
                        reason: facts.reason,
                        beyond: facts.beyond)
                )
            }
            guard !output.json else { return try printJSON(Dictionary(uniqueKeysWithValues: rows)) }
            for (key, row) in rows {
                let why = row.reason + (row.beyond.map { " Beyond it: \($0)." } ?? "")
                let change = row.isLive ? "a reload puts it in force" : "needs a restart"
                if isTerminal {
                    print(
                        "\(emphasised(key)): \(row.values)\n    default: \(row.standard); \(change)\n    \(why)"
                    )
                } else {
                    print([key, row.values, row.standard, change, why].joined(separator: "\t"))
                }
            }
        }
    }
}

extension JSONValue {
    /// A configuration value in JSON's types.
    fileprivate init(_ entry: ResolvedConfiguration.Entry) {
        switch entry.value {
        case .none: self = .null
        case .integer(let number): self = .integer(Int64(number))
        case .list(let items): self = .array(items.map(JSONValue.string))
        case .table(let items):
            var object: JSONObject = [:]
            for (name, item) in items { object[name] = .string(item) }
            self = .object(object)
        case .text, .providers, .issuers, .identities: self = .string(entry.shownValue)
        }
    }
}
