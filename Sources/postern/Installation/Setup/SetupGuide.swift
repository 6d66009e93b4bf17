// `postern setup`: a guide for the first start. Each step is a command, which is shown before it
// runs.

import Accounts
import Foundation
import InternetMessage
import Support

/// One command of the guide.
struct GuidedCommand: Equatable {
    enum Program: Equatable {
        /// The program that is running now, not another one of the same name.
        case postern
        case system(String)
    }

    let program: Program
    let arguments: [String]
    /// The user that it is run as; nil for the user of this process.
    var user: String?

    static func postern(_ arguments: String...) -> GuidedCommand {
        GuidedCommand(program: .postern, arguments: arguments)
    }
    static func system(_ program: String, _ arguments: String...) -> GuidedCommand {
        GuidedCommand(program: .system(program), arguments: arguments)
    }

    /// Program and arguments.
    /// - Parameter postern: the program that is running now.
    func line(postern: String) -> [String] {
        let name =
            switch program {
            case .postern: postern
            case .system(let name): name
            }
        return (user.map { ["runuser", "-u", $0, "--"] } ?? []) + [name] + arguments
    }

    /// The command as a person would type it.
    var shown: String {
        line(postern: "postern").map { $0.contains(" ") ? "\"\($0)\"" : $0 }.joined(separator: " ")
    }
}

/// The guide's input and output: a terminal and the shell, or a test.
protocol SetupDialogue {
    func say(_ text: String)
    /// The next line, without white space around it; nil at the end of the input.
    func answer() -> String?
    /// Runs a command with visible output; returns its exit status.
    func run(_ command: GuidedCommand) -> Int32
    /// Runs a command without output; returns whether it succeeded.
    func succeeds(_ command: GuidedCommand) -> Bool
}

/// The situation in which the guide starts.
struct SetupSituation {
    /// The configuration file, and whether it already exists.
    var configuration = "/var/lib/postern/postern.yaml"
    var isInstalled = false
    /// The system's host name.
    var hostname = ""
    /// Whether commands that open the store run as the user `postern`: if this process is root's
    /// and the user exists.
    var switchesUser = false
    var hasPostfix = true
    var hasSystemd = true

    var folder: String { (configuration as NSString).deletingLastPathComponent }
}

struct SetupGuide {
    /// The reason for an early end.
    enum Ending: Error { case noMoreAnswers, failed }

    let dialogue: any SetupDialogue
    let situation: SetupSituation

    func run() throws {
        dialogue.say(
            """
            A first start of Postern, in five steps. Each one is a command that you could give yourself; it is shown first. \
            The first one creates new files; existing files are changed only after you agree. Run this again at any time: \
            steps that are done already are left out. Ctrl-C ends it.
            """)
        let new = try install()
        try publish(new)
        try start()
        try attach()
        try writeToYourself(new?.you)
    }

    // MARK: Steps

    /// The user's answers for a new installation.
    private struct Answers {
        let domain: String
        let host: String
        let you: String
    }

    /// - Returns: nil if an installation already exists.
    private func install() throws -> Answers? {
        title(1, "The installation")
        guard !situation.isInstalled else {
            dialogue.say("An installation exists already: \(situation.configuration).")
            return nil
        }
        let domain = try ask("Domain of the relay addresses, as in relay.example") {
            isDomain($0) ? nil : "is not a domain name"
        }.lowercased()
        let host = try ask("Name of this host in the DNS", standard: situation.hostname) {
            isDomain($0) ? nil : "is not a full host name, as in mx.\(domain)"
        }
        let you = try ask("Your own address, for mail to postmaster and abuse") {
            guard let address = try? AddrSpec.typed($0) else {
                return "is not a valid email address"
            }
            return DomainName.isEqualOrBelow(address.asciiDomain, domain)
                ? "must not be at the relay domain" : nil
        }
        try command(
            .postern(
                "init", "--directory", situation.folder, "--relay-domain", domain,
                "--operator-address", you, "--set",
                "hostname=\(host)"),
            opensStore: true)
        return Answers(domain: domain, host: host, you: you)
    }

    private func publish(_ new: Answers?) throws {
        title(2, "The DNS")
        if let (domain, host) = new.map({ ($0.domain, $0.host) }) {
            dialogue.say(
                """
                Publish, besides what was printed above for DKIM:
                  \(domain). IN MX 10 \(host).
                  \(domain). IN TXT "v=spf1 mx -all"
                  _dmarc.\(domain). IN TXT "v=DMARC1; p=reject; rua=mailto:postmaster@\(domain)"
                and have the owner of this host's address set its PTR record to \(host). docs/OPERATING-DNS.md says what each is for.
                """)
        } else {
            try command(.postern("keys", "dkim", "publish"), opensStore: true)
        }
    }

    private func start() throws {
        title(3, "The service")
        try command(.postern("config", "check"), opensStore: true)
        guard situation.hasSystemd else {
            return dialogue.say(
                "This machine has no systemd: start `postern serve` as your system starts services."
            )
        }
        if try agrees("Start it now, and with the machine?", standard: true) {
            try command(.system("systemctl", "enable", "--now", "postern"))
        }
    }

    private func attach() throws {
        title(4, "Postfix")
        guard situation.hasPostfix else {
            return dialogue.say(
                "Postfix is not installed. Install it, and run postern setup again.")
        }
        try command(.postern("setup", "postfix"))
        dialogue.say(
            "Once this is set, Postfix answers 451 while the service does not run: no mail is lost, but none arrives."
        )
        guard try agrees("Set what differs?", standard: false) else { return }
        try command(.postern("setup", "postfix", "--apply"))
        try command(.system("postfix", "reload"))
    }

    private func writeToYourself(_ known: String?) throws {
        title(5, "A message to yourself")
        guard
            try agrees("Create a team `try` with you as its only source and user?", standard: true)
        else { return finish() }
        let you =
            try known
            ?? ask("Your address") {
                (try? AddrSpec.typed($0)) == nil ? "is not a valid email address" : nil
            }
        let source = GuidedCommand.postern("source", "add", "try", you)
        if exists(.postern("team", "show", "try")) {
            // An earlier run may have stopped halfway.
            _ = exists(source)
        } else {
            try command(.postern("team", "add", "try", "--name", "A try"), opensStore: true)
            try command(source, opensStore: true)
        }
        if exists(.postern("user", "show", "you")) {
            dialogue.say("The user `you` exists already: its inbox stays unchanged.")
        } else {
            try command(
                .postern("user", "add", "you", "--inbox", you, "--verified"), opensStore: true)
        }
        try command(.postern("address", "issue", "try", "you"), opensStore: true)
        dialogue.say(
            """
            Write to that address from \(you): the message comes back from the relay, and so does your answer to it. Afterwards: \
            postern team remove try --yes, postern user remove you --yes.
            """)
        finish()
    }

    /// Prints the steps that are left; some, such as DNS, take days.
    private func finish() {
        dialogue.say("\nWhat is left to do:")
        _ = run(.postern("doctor"), opensStore: false)
    }

    // MARK: Asking and running

    private func title(_ number: Int, _ text: String) { dialogue.say("\n\(number). \(text)\n") }

    private func isDomain(_ text: String) -> Bool {
        !text.hasSuffix(".") && HostName(text).map { $0.labels.count > 1 } ?? false
    }

    /// - Parameter objection: returns the error in an answer; nil if there is none.
    private func ask(
        _ question: String, standard: String = "", _ objection: (String) -> String?
    ) throws -> String {
        while true {
            dialogue.say(standard.isEmpty ? question + ":" : "\(question) [\(standard)]:")
            guard let line = dialogue.answer() else { throw Ending.noMoreAnswers }
            let answer = line.isEmpty ? standard : line
            guard let objection = objection(answer) else { return answer }
            if !answer.isEmpty { dialogue.say("\"\(answer.prefix(100))\" \(objection).") }
        }
    }

    private func agrees(_ question: String, standard: Bool) throws -> Bool {
        let answer = try ask(question + (standard ? " [Y/n]" : " [y/N]")) {
            ["", "y", "yes", "n", "no"].contains($0.lowercased()) ? nil : "is neither yes nor no"
        }
        return answer.isEmpty ? standard : answer.lowercased().hasPrefix("y")
    }

    private func asItsUser(_ command: GuidedCommand, opensStore: Bool) -> GuidedCommand {
        var command = command
        if situation.switchesUser && opensStore { command.user = "postern" }
        return command
    }

    private func exists(_ command: GuidedCommand) -> Bool {
        dialogue.succeeds(asItsUser(command, opensStore: true))
    }

    private func run(_ command: GuidedCommand, opensStore: Bool) -> Int32 {
        let command = asItsUser(command, opensStore: opensStore)
        dialogue.say("$ " + command.shown)
        return dialogue.run(command)
    }

    private func command(_ command: GuidedCommand, opensStore: Bool = false) throws {
        if run(command, opensStore: opensStore) != 0 { throw Ending.failed }
    }
}
