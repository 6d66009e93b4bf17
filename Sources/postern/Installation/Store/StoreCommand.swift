// postern store: the database as a whole.

import ArgumentParser

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Migrate, back up, restore and copy the database.",
        subcommands: [
            StoreMigrateCommand.self, StoreBackupCommand.self, StoreRestoreCommand.self,
            StoreCopyCommand.self,
        ])
}
