// The commands for teams with their apps, sources and keys, and for users with inboxes, accounts and relay addresses.

import ArgumentParser

/// In the order of the help.
enum AccountCommands {
    /// Teams, users, and what belongs to them.
    static var all: [any ParsableCommand.Type] {
        [
            TeamCommand.self, SourceCommand.self, AppCommand.self, UserCommand.self, InboxCommand.self, AddressCommand.self,
            AccountCommand.self, KeyCommand.self,
        ]
    }
    /// Imports of many users and accounts from a file.
    static var imports: [any ParsableCommand.Type] { [ImportCommand.self] }
    /// Transfers of apps between teams.
    static var transfers: [any ParsableCommand.Type] { [TransferCommand.self] }
}
