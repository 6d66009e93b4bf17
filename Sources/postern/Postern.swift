// The command `postern`: its subcommands, and how it ends.

import ArgumentParser
import Glibc

@main
struct Postern: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "postern",
        abstract: "A private-email relay beside Postfix.",
        discussion: """
            Every command reads the configuration that --config or POSTERN_CONFIG names (otherwise \
            /etc/postern/postern.yaml). Commands work while the relay runs, and take effect at once.

            A first relay address, from nothing:

              postern init --directory /var/lib/postern --relay-domain relay.example
              export POSTERN_CONFIG=/var/lib/postern/postern.yaml
              postern team add juice --name "The Juice Company"
              postern source add juice juice.example
              postern user add jane --inbox jane@home.example --verified
              postern address issue juice jane

            Exit status: 0 done, 64 wrong usage, 65 a value that is not taken, 66 no such thing, 69 the store cannot be \
            reached, 70 a fault of postern's, 73 it exists already or a limit is reached, 74 input/output, 75 try again \
            later, 77 not permitted, 78 configuration.
            """,
        subcommands: [
            InitCommand.self, ServeCommand.self, ExplainCommand.self, ConfigCommand.self, MigrateCommand.self, TeamCommand.self, SourceCommand.self, AppCommand.self,
            UserCommand.self, InboxCommand.self, AddressCommand.self,
        ])

    static func main() async {
        // Whatever a command makes is its owner's alone: databases grow further files as they are used.
        umask(0o077)
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            Failure.exit(error)
        }
    }
}
