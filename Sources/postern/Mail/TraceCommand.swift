// postern trace: a message from arrival to delivery, found by any clue that the operator has.

import ArgumentParser
import Concurrency
import Foundation
import Monitoring
import PosternConfiguration
import Support

struct TraceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace",
        abstract: "Follow a message through the logs, from arrival to delivery.",
        discussion: """
            Prints the lines of Postfix and Postern about every message that the clue leads to, with its copies, its bounces \
            and the replies to it. A clue is a queue id, a Message-ID, the reference in brackets of a refusal, or an address.

            The lines come from the journal, or from the files that --log names. Addresses that are not at a relay domain show \
            as l…@example.com, and replies of other servers are hidden, unless you use --reveal, which the audit records. \
            postern address decode explains a reverse address or a return path.
            """)

    @Argument(
        help: "A queue id, a Message-ID, a reference or an address; - reads it from standard input."
    )
    var clue: String
    @Option(
        help: ArgumentHelp(
            "A log to read instead of the journal; may be repeated; - for standard input.",
            valueName: "file"),
        completion: .file(), transform: filePath)
    var log: [String] = []
    @Option(
        help: ArgumentHelp(
            "How far back in the journal: 12h, 30d, 8w, or a date as in 2026-11-01.",
            valueName: "time"))
    var since = "2d"
    @OptionGroup var reveal: RevealOptions
    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    /// The maximum number of octets of all logs: their lines are kept in memory.
    private static let maximumOctets = 512 << 20

    func run() throws {
        let clue = clue == "-" ? try lineOfInput("give a clue on standard input") : clue
        guard clue.utf8.contains(where: { $0 > 0x20 }) else {
            throw CommandError.usage("the clue is empty")
        }
        let start = try ExpiryText.start(since, now: PosternClock.now())
        let (isFull, domains) = try installation.withInstallation { installation in
            if reveal.reveal {
                // Only a queue id is written to the audit: any other clue may be an inbox in one of
                // its forms.
                let detail = LogTrace.isQueueID(clue) ? clue : "not a queue id"
                try installation.store.audit.note(
                    thisChange(), .trace, "mail", detail, reason: reveal.reason.reason)
            }
            return (reveal.reveal, installation.configuration.relayDomains)
        }
        let octets =
            try log.isEmpty
            ? Self.journal(since: start)
            : log.flatMap { Array(try InputFile.octets($0, maximum: Self.maximumOctets)) }
        if let fault = PlainText.fileFault(octets[...]) {
            throw CommandError.data("the log: \(fault)")
        }
        let lines = octets.split(separator: 0x0A)
        var trace = LogTrace()
        let found = trace.lines(about: clue, in: lines)
        guard !found.isEmpty else {
            throw CommandError(
                status: EX_NOINPUT,
                message:
                    "no line has it among \(Count.text(lines.count, "line")): look further back with --since, or name the logs with --log"
            )
        }
        let texts = found.map {
            isFull
                ? String(decoding: $0, as: UTF8.self)
                : LogTrace.masked($0) { Self.isShown($0, domains) }
        }
        if output.json { try printJSON(texts) } else { for text in texts { print(shown(text)) } }
        if trace.isCut {
            Failure.remark(
                "the clue leads to more than \(Count.text(LogTrace.maximumIdentifiers)) messages: give a queue id of one"
            )
        }
    }

    /// Whether an address may be shown in full. A relay address reveals no person; a reverse
    /// address or a return path contains its correspondent.
    private static func isShown(_ address: String, _ domains: [String]) -> Bool {
        let octets = Array(address.utf8)
        guard let at = octets.lastIndex(of: UInt8(ascii: "@")),
            !octets[..<at].contains(UInt8(ascii: "="))
        else { return false }
        let domain = octets[(at + 1)...].map(\.asciiLowercased)
        return domains.contains { $0.utf8.elementsEqual(domain) }
    }

    /// The journal's lines of the mail system and of Postern.
    private static func journal(since start: Int64) throws -> [UInt8] {
        let places: [String] = ["/usr/bin/journalctl", "/bin/journalctl"]
        guard let program = places.first(where: { (place: String) in access(place, X_OK) == 0 })
        else {
            throw CommandError.noInput(
                "this machine has no journal: name the logs with --log, as in --log /var/log/mail.log"
            )
        }
        let ends = try SystemProcess.pipe()
        let none = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(none) }
        let process: SystemProcess
        do {
            defer { close(ends.write) }
            process = try SystemProcess(
                program,
                [
                    "--quiet", "--no-pager", "--output=short-iso", "--since=@\(start)",
                    "SYSLOG_FACILITY=2", "+",
                    "_SYSTEMD_UNIT=postern.service",
                ], environment: ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"],
                descriptors: (none, ends.write, none)
            )
        }
        let input = FileHandle(fileDescriptor: ends.read, closeOnDealloc: true)
        var octets: [UInt8] = []
        while let piece = try input.read(upToCount: 1 << 20), !piece.isEmpty {
            octets += piece
            guard octets.count <= maximumOctets else {
                kill(process.identifier, SIGTERM)
                _ = process.wait()
                throw CommandError.data(
                    "the journal since then is larger than \(maximumOctets >> 20) MiB: give a later --since"
                )
            }
        }
        guard process.wait() == 0 else {
            throw CommandError(
                status: EX_NOPERM,
                message: "the journal cannot be read: run this as root, or name the logs with --log"
            )
        }
        return octets
    }
}
