// `postern queue`: mail in Postfix's queue that passed no milter.

import ArgumentParser
import Doctor
import Foundation
import InternetMessage
import PosternConfiguration
import PostfixSetup

struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "List and send mail that waits in Postfix's queue because no milter rewrote it.",
        discussion: """
            Nothing is delivered at a relay domain: a message that Postern did not rewrite, as it came in while smtpd_milters \
            was not in force, waits in the queue until Postfix returns it. postsuper -r does not help, since it skips all \
            milters.
            """, subcommands: [List.self, Send.self])

    /// An address as the command shows it: the sender of a reply is a user's inbox, and is
    /// shortened.
    static func shown(_ address: String, _ configuration: Configuration) -> String {
        if address.isEmpty { return address }
        guard let read = AddrSpec(envelope: address) else { return "…" }
        return QueueResend.isAtRelay(read, configuration) ? address : InboxAddress(read).hint
    }

    struct Place: ParsableArguments {
        @Option(help: ArgumentHelp("Postfix's configuration directory.", valueName: "dir"))
        var configDirectory = "/etc/postfix"

        func validate() throws { _ = try filePath(configDirectory) }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "List messages in the queue for addresses at a relay domain, the oldest first.")

        @OptionGroup var place: Place
        @OptionGroup var options: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let (configuration, _) = try options.configuration()
            let waiting = try PostfixQueue.waiting(
                at: configuration.relayDomains, directory: place.configDirectory)
            func shown(_ address: String) -> String { QueueCommand.shown(address, configuration) }
            try output.print(waiting, ["ID", "SINCE", "FROM", "TO"]) {
                [
                    "id": $0.id, "since": $0.arrivedAt.map(timestamp), "from": shown($0.sender),
                    "to": $0.recipients.map(shown),
                    "held": $0.isHeld,
                ] as Members
            } columns: {
                [
                    $0.id, $0.arrivedAt.map(timestamp) ?? "",
                    $0.sender.isEmpty ? "<>" : shown($0.sender),
                    $0.recipients.map(shown).joined(separator: " "),
                ]
            }
        }
    }

    struct Send: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send such messages through Postfix again, and so through Postern.",
            discussion: """
                Each message is put on hold, sent to Postfix as a client does, and deleted once Postfix has accepted it for \
                all its recipients. With fan_out, Postfix gets the original client of the message, so that SPF is evaluated \
                for it. A message that is refused stays in the queue, with the reason printed. Needs root.

                Exit status 1 if a message stays in the queue.
                """)

        @Argument(help: "Queue ids, as postern queue list shows them.") var ids: [String] = []
        @Flag(help: "Send all of them.") var all = false
        @Option(
            help: ArgumentHelp(
                "Where Postfix accepts mail. By default mail.submission.", valueName: "host:port"))
        var smtp: String?
        @OptionGroup var place: Place
        @OptionGroup var options: InstallationOptions

        func validate() throws {
            guard all != !ids.isEmpty else { throw ValidationError("Give queue ids, or --all.") }
            if let smtp, ListenAddress(smtp).map({ $0.port > 0 }) != true {
                throw ValidationError("--smtp must be HOST:PORT, as in 127.0.0.1:25")
            }
        }

        func run() throws {
            let (configuration, _) = try options.configuration()
            let address = smtp.flatMap(ListenAddress.init) ?? configuration.mail.submission
            let probe = PostfixProbe(directory: place.configDirectory, configuration: configuration)
            if let trouble = probe.milterTrouble() {
                throw CommandError(
                    status: EX_CONFIG,
                    message:
                        "\(trouble), so the messages would wait again: run postern doctor, and fix the reported problems first"
                )
            }
            // Two processes that list the same messages would both send them. The lock ends with
            // this process.
            let folder = open(place.configDirectory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            defer { if folder >= 0 { close(folder) } }
            guard folder < 0 || flock(folder, LOCK_EX | LOCK_NB) == 0 else {
                throw CommandError(
                    status: EX_TEMPFAIL,
                    message:
                        "another postern queue send is running: nothing was sent; try again when it has ended"
                )
            }
            let waiting = try PostfixQueue.waiting(
                at: configuration.relayDomains, directory: place.configDirectory)
            if let unknown = ids.first(where: { id in !waiting.contains { $0.id == id } }) {
                throw CommandError.noInput(
                    "no message \(unknown) waits for an address at a relay domain: see postern queue list"
                )
            }
            let chosen = all ? waiting : waiting.filter { ids.contains($0.id) }
            guard
                let resend = QueueResend(
                    configuration, keys: try KeyFile.read(path: configuration.keyFilePath),
                    host: address.host,
                    port: UInt16(clamping: address.port), directory: place.configDirectory,
                    now: PosternClock.now)
            else {
                throw CommandError(
                    status: EX_CONFIG,
                    message: "\(configuration.keyFilePath): the token keys cannot be used")
            }
            var isWhole = true
            for message in chosen {
                switch try resend.send(message) {
                case .sent: print("\(message.id) sent")
                case .kept(let accepted, let refused):
                    isWhole = false
                    for recipient in accepted {
                        print(
                            "\(message.id) sent to \(QueueCommand.shown(recipient, configuration)), and kept for the others"
                        )
                    }
                    for (recipient, reason) in refused {
                        print(
                            "\(message.id) kept: \(QueueCommand.shown(recipient, configuration)): \(reason)"
                        )
                    }
                }
            }
            if chosen.isEmpty { print("No message waits.") }
            if !isWhole { throw ExitCode.failure }
        }
    }
}
