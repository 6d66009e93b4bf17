// The commands about teams with their apps, sources and keys; users with inboxes, accounts and relay addresses.

import ArgumentParser

/// In the order of the help.
package enum AccountCommands {
    /// Teams, users, and what they have with each other.
    package static var all: [any ParsableCommand.Type] {
        [
            TeamCommand.self, SourceCommand.self, AppCommand.self, UserCommand.self, InboxCommand.self, AddressCommand.self,
            AccountCommand.self, KeyCommand.self,
        ]
    }
    /// Many of these from a file.
    package static var imports: [any ParsableCommand.Type] { [ImportCommand.self] }
    /// Apps that change teams.
    package static var transfers: [any ParsableCommand.Type] { [TransferCommand.self] }
}
