// The command `postern`: its subcommands, and the end of the process.

import ArgumentParser
import Glibc
import Monitoring

@main
struct Postern: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "postern",
        abstract: "Relay mail between app teams and users, so that no team sees a user's inbox.",
        discussion: """
            Postern runs beside your Postfix. It issues relay addresses, rewrites mail in both directions, signs users in to \
            apps, and says which accounts need an extra check. Three commands come first:

              postern setup     starts an installation, step by step
              postern doctor    checks everything, and says how to fix it
              postern status    shows what runs, and what needs attention

            A first relay address, from scratch:

              postern init --directory /var/lib/postern --relay-domain relay.example
              export POSTERN_CONFIG=/var/lib/postern/postern.yaml
              postern team add juice --name "The Juice Company"
              postern source add juice juice.example
              postern user add jane --inbox jane@home.example --verified
              postern address issue juice jane

            Every command reads the configuration that --config or POSTERN_CONFIG names (otherwise \
            /etc/postern/postern.yaml). Commands work while the relay runs, and take effect at once.

            Exit status: 0 done, 64 wrong usage, 65 a value that is not accepted, 66 not found, 69 the store cannot be \
            reached, 70 an internal error, 73 it already exists or a limit is reached, 74 input/output, 75 try again \
            later, 77 not permitted, 78 configuration.
            """,
        version: PosternVersion.text,
        groupedSubcommands: groups)

    /// More arguments than the entries and options of a list command can need.
    private static let maximumArguments = 2_000

    static func main() async {
        // Only the owner can access the files that a command creates: databases create further
        // files while they are used.
        umask(0o077)
        do {
            // ArgumentParser needs seconds for thousands of arguments, and minutes for more.
            guard CommandLine.argc <= maximumArguments else {
                throw CommandError.usage(
                    "more than \(maximumArguments) arguments: give a file instead, or repeat the command"
                )
            }
            // Swift replaces octets that are not UTF-8 with U+FFFD, which would change a name.
            for argument in UnsafeBufferPointer(
                start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
            {
                guard let argument, String(validatingCString: argument) == nil else { continue }
                throw CommandError(status: EX_USAGE, message: "an argument is not UTF-8")
            }
            let arguments = CommandNames.withHelpFirst(
                hoisted(Array(CommandLine.arguments.dropFirst())), below: Postern.self)
            try CommandNames.check(arguments, below: Postern.self)
            var command = try parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            try finishOutput()
        } catch {
            // A command that ends with a status, for example doctor, has printed its result too.
            if error is ExitCode { do { try finishOutput() } catch { Failure.exit(error) } }
            Failure.exit(error)
        }
    }

    /// Allows --config and --set before the subcommand too: they are moved behind it.
    private static func hoisted(_ arguments: [String]) -> [String] {
        var rest = arguments[...]
        var moved: [String] = []
        while let first = rest.first {
            if first.hasPrefix("--config=") || first.hasPrefix("--set=") {
                moved.append(first)
                rest = rest.dropFirst()
            } else if first == "--config" || first == "--set", rest.count >= 2 {
                moved += rest.prefix(2)
                rest = rest.dropFirst(2)
            } else {
                break
            }
        }
        let end = rest.firstIndex(of: "--") ?? rest.endIndex
        return rest[..<end] + moved + rest[end...]
    }
}
