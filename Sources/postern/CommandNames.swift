// Errors for mistyped names of commands, and for subcommands without their command.

import ArgumentParser
import CEL
import Support

enum CommandNames {
    /// The maximum number of commands in a proposal.
    private static let maximumProposals = 3

    /// `team help add` as `help team add`, which is how ArgumentParser reads it.
    static func withHelpFirst(
        _ arguments: [String], below root: any ParsableCommand.Type
    ) -> [String] {
        var known = root
        for (place, word) in arguments.enumerated() {
            let commands = known.configuration.subcommands
            if place > 0, !commands.isEmpty, word.hasSameOctets(as: "help") {
                return ["help"] + arguments[..<place] + arguments[(place + 1)...]
            }
            guard let next = commands.first(where: { $0._commandName.hasSameOctets(as: word) })
            else { return arguments }
            known = next
        }
        return arguments
    }

    /// Throws `CommandError` if the arguments, or those after `help`, name a command that does not
    /// exist. ArgumentParser would only say that an argument is unexpected, and `help` would print
    /// the help of another command.
    static func check(_ arguments: [String], below root: any ParsableCommand.Type) throws {
        var (known, path): (any ParsableCommand.Type, [String]) = (root, [])
        let isHelp = arguments.first?.hasSameOctets(as: "help") ?? false
        for word in arguments.dropFirst(isHelp ? 1 : 0) {
            if word.utf8.starts(with: "-".utf8) {
                guard isHelp else { return }
                continue
            }
            // Commands with subcommands take no other arguments except options.
            let commands = known.configuration.subcommands
            if commands.isEmpty, !isHelp { return }
            guard let next = commands.first(where: { $0._commandName.hasSameOctets(as: word) })
            else {
                let typed = (path + [word]).joined(separator: " ")
                throw CommandError.usage(
                    "unknown command '\(typed)'\(suggestion(for: word, below: known, path))")
            }
            (known, path) = (next, path + [word])
        }
    }

    /// "; did you mean …?", or where the commands are listed. First come commands in whose names
    /// each part of the word begins a part; of these only those with the fewest words. Otherwise
    /// the nearest spelling is proposed.
    private static func suggestion(
        for word: String, below known: any ParsableCommand.Type, _ path: [String]
    ) -> String {
        let all = paths(below: known)
        let parts = word.utf8.split(separator: UInt8(ascii: "-"))
        let alike = all.filter { names in
            let others = names.flatMap { $0.utf8.split(separator: UInt8(ascii: "-")) }
            return !parts.isEmpty
                && parts.allSatisfy { part in others.contains { $0.starts(with: part) } }
        }
        let fewest = alike.map(\.count).min()
        var found = alike.filter { $0.count == fewest }
        if found.isEmpty,
            let near = nearestName(
                to: word, among: all.filter { $0.count == 1 }.compactMap(\.first))
        {
            found = [[near]]
        }
        guard !found.isEmpty else {
            return "; see \((["postern"] + path).joined(separator: " ")) --help"
        }
        let proposals = found.prefix(maximumProposals).map {
            "'\((path + $0).joined(separator: " "))'"
        }
        return "; did you mean \(proposals.joined(separator: " or "))?"
    }

    /// The names of all commands below one, in the order of the help.
    private static func paths(below type: any ParsableCommand.Type) -> [[String]] {
        type.configuration.subcommands.filter { $0.configuration.shouldDisplay }.flatMap {
            command in
            [[command._commandName]] + paths(below: command).map { [command._commandName] + $0 }
        }
    }
}
