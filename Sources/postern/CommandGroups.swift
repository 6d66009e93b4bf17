// The commands of `postern --help`, grouped by the people who need them.

import ArgumentParser

extension Postern {
    /// In the order of the help, which adds SUBCOMMANDS after each name.
    static var groups: [CommandGroup] {
        [
            CommandGroup(
                name: "Installation",
                subcommands: [
                    InitCommand.self, ServeCommand.self, SetupCommand.self, DoctorCommand.self,
                    StatusCommand.self, SupportBundleCommand.self,
                    ConfigCommand.self, StoreCommand.self, RetentionCommand.self, HoldCommand.self,
                    AuditCommand.self,
                    ApplyCommand.self,
                    ExportCommand.self,
                ]),
            CommandGroup(
                name: "Team and user",
                subcommands: [
                    TeamCommand.self, SourceCommand.self, AppCommand.self, APIKeyCommand.self,
                    UserCommand.self,
                    InboxCommand.self, AddressCommand.self, AccountCommand.self, ImportCommand.self,
                    TransferCommand.self,
                ]),
            CommandGroup(
                name: "Mail",
                subcommands: [
                    DeliveryCommand.self, QueueCommand.self, TraceCommand.self, ExplainCommand.self,
                    VerifyCommand.self,
                ]),
            CommandGroup(
                name: "Risk",
                subcommands: [
                    PolicyCommand.self, ListCommand.self, DecideCommand.self, DecisionCommand.self,
                    ReviewCommand.self,
                ]),
            CommandGroup(
                name: "Sign-in and event",
                subcommands: [
                    IssuerCommand.self, EndpointCommand.self, StreamCommand.self, EventCommand.self,
                ]),
            CommandGroup(name: "Key", subcommands: [KeysCommand.self]),
            CommandGroup(name: "Developer", subcommands: [SandboxCommand.self]),
        ]
    }
}
