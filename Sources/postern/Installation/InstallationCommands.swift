// The commands for an installation as a whole.

import ArgumentParser

/// In the order of the help.
enum InstallationCommands {
    /// Creates an installation.
    static var creation: [any ParsableCommand.Type] { [InitCommand.self] }
    /// Configuration, database and keys.
    static var store: [any ParsableCommand.Type] {
        [
            ConfigCommand.self, MigrateCommand.self, BackupCommand.self, RestoreCommand.self, StoreCommand.self,
            KeyFileCommand.self,
        ]
    }
    /// Its state, who changed it, and how long data is kept.
    static var state: [any ParsableCommand.Type] {
        [StatusCommand.self, TopCommand.self, AuditCommand.self, RetentionCommand.self]
    }
    /// Its teams, lists and policies as files.
    static var declarations: [any ParsableCommand.Type] { [ApplyCommand.self, ExportCommand.self] }
}
