// The commands of `postern --help`, in groups by who needs them.

import ArgumentParser

extension Postern {
    /// In the order of the help.
    static var groups: [CommandGroup] {
        [
            CommandGroup(
                name: "Run it",
                subcommands: [
                    InitCommand.self, ServeCommand.self, SetupCommand.self, DoctorCommand.self, StatusCommand.self,
                    ConfigCommand.self, StoreCommand.self, RetentionCommand.self, AuditCommand.self, ApplyCommand.self,
                    ExportCommand.self,
                ]),
            CommandGroup(
                name: "Teams and users",
                subcommands: [
                    TeamCommand.self, SourceCommand.self, AppCommand.self, APIKeyCommand.self, UserCommand.self,
                    InboxCommand.self, AddressCommand.self, AccountCommand.self, ImportCommand.self, TransferCommand.self,
                ]),
            CommandGroup(
                name: "Mail",
                subcommands: [QueueCommand.self, TraceCommand.self, ExplainCommand.self, VerifyCommand.self]),
            CommandGroup(
                name: "Risk",
                subcommands: [
                    PolicyCommand.self, ListCommand.self, DecideCommand.self, DecisionCommand.self, ReviewCommand.self,
                ]),
            CommandGroup(
                name: "Sign-in and events",
                subcommands: [IssuerCommand.self, EndpointCommand.self, StreamCommand.self, EventCommand.self]),
            CommandGroup(name: "Keys of the installation", subcommands: [KeysCommand.self]),
            CommandGroup(name: "For developers", subcommands: [SandboxCommand.self]),
        ]
    }
}
