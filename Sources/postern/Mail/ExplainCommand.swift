// `postern explain`: how Postern would handle a message, and why.

import ArgumentParser
import DNSClient
import Foundation
import Relay

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Show what would happen to a message, and why.",
        discussion: """
            Reads a message on standard input and prints the decision, each SMTP reply, the reasons, and the message and \
            envelope as they would be sent on. It runs the same code as the milter, and changes nothing in the store. The \
            output contains the inbox as the envelope recipient, so it is for the operator only.

            With --dns, DNS answers come only from that JSON file: {"name": {"TXT": ["…"], "A": ["…"], "MX": [[10, "mx"]]}}, \
            or {"name": {"error": "NXDOMAIN|NODATA|SERVFAIL|TIMEOUT"}}. A name that is not in the file does not exist.

            With --batch, standard input has one JSON object per line: {id, mail_from, rcpts, ip, helo, dns, now, \
            message_base64}. For each, one JSON object with the same id is written on a line. A message that is accepted and \
            then dropped, such as a second vacation note on one day, has the action "relay", no recipients, and its reason.
            """)

    @OptionGroup var options: InstallationOptions
    @OptionGroup var output: OutputOptions
    @Option(help: ArgumentHelp("The envelope sender; empty or <> for none.", valueName: "address"))
    var mailFrom: String = ""
    @Option(help: ArgumentHelp("A recipient; may be repeated.", valueName: "address")) var rcpt:
        [String] = []
    @Option(help: "The SMTP client's IP address.") var ip: String?
    @Option(help: ArgumentHelp("The name that the client gave in HELO.", valueName: "name"))
    var helo: String = ""
    @Option(
        help: ArgumentHelp("Take DNS answers only from this file.", valueName: "file"),
        transform: filePath) var dns: String?
    @Option(
        name: .customLong("now"),
        help: ArgumentHelp("The time, in seconds since 1970 or ISO 8601.", valueName: "time"))
    var time: String?
    @Flag(help: "Read requests as JSON lines.") var batch = false

    func validate() throws {
        guard batch || !rcpt.isEmpty else {
            throw ValidationError("give at least one --rcpt, or use --batch")
        }
        try ClientAddress.check(ip)
    }

    func run() throws {
        try options.withInstallation { installation in
            let questions = try InstallationExplainer(installation, now: PosternClock.now)
            let zone = try dns.map(ZoneFile.read)
            if batch { return try runBatch(questions, zone) }
            let message = ExplainedMessage(
                mailFrom: mailFrom, recipients: rcpt, address: ip, helo: helo,
                now: try time.map(TimeArgument.seconds) ?? PosternClock.now(),
                message: Array(FileHandle.standardInput.readDataToEndOfFile()))
            let explanation = try questions.explain(message, zone: zone)
            if output.json {
                try BatchLine.print(explanation.members())
            } else {
                try ExplainText.print(explanation)
            }
        }
    }

    private func runBatch(_ questions: InstallationExplainer, _ zone: ZoneFile?) throws {
        while let line = readLine(strippingNewline: true) {
            guard !line.allSatisfy(\.isWhitespace) else { continue }
            do {
                let question = try JSONDecoder().decode(ExplainRequest.self, from: Data(line.utf8))
                let explanation = try questions.explain(
                    question.message(), zone: question.dns ?? zone)
                try BatchLine.print(explanation.members(id: question.id ?? .null))
            } catch {
                try BatchLine.print(
                    BatchLine.Failure(id: BatchLine.id(in: line), error: BatchLine.describe(error)))
            }
        }
    }
}

/// A line of --batch.
struct ExplainRequest: Decodable {
    let id: BatchID?
    /// The null sender if absent or null.
    let mailFrom: String?
    let rcpts: [String]
    let ip: String?
    let helo: String?
    let dns: ZoneFile?
    let now: TimeArgument?
    let messageBase64: String

    // Listed one by one, because a strategy for all keys would also change the names in `dns`.
    enum CodingKeys: String, CodingKey {
        case id, rcpts, ip, helo, dns, now
        case mailFrom = "mail_from"
        case messageBase64 = "message_base64"
    }

    func message() throws -> ExplainedMessage {
        guard let bytes = Data(base64Encoded: messageBase64, options: .ignoreUnknownCharacters)
        else {
            throw CommandError(status: EX_DATAERR, message: "message_base64 is not valid base64")
        }
        try ClientAddress.check(ip)
        return ExplainedMessage(
            mailFrom: mailFrom ?? "", recipients: rcpts, address: ip, helo: helo ?? "",
            now: now?.seconds ?? PosternClock.now(),
            message: Array(bytes))
    }
}

extension Explanation {
    /// As JSON. All members except `copies` and `id` are always present;
    /// without a value they are null.
    fileprivate func members(id: BatchID? = nil) -> Members {
        let replies = replies.map { reply -> Members in
            [
                "rcpt": reply.recipient, "code": reply.reply.code, "enhanced": reply.reply.enhanced,
                "text": reply.reply.text,
            ]
        }
        return [
            "id": id, "action": action.rawValue, "replies": replies,
            "reasons": reasons.map(\.text),
            "envelope_from": Members.orNull(outgoing?.sender), "rcpts": outgoing?.recipients ?? [],
            "message_base64": Members.orNull(outgoing.map { Data($0.bytes).base64EncodedString() }),
            "copies": copies.isEmpty ? nil : copies.map { $0.members() },
        ]
    }
}

/// The explanation as text for people.
enum ExplainText {
    /// Written at once through one stream, because the message may contain any octets.
    static func print(_ explanation: Explanation) throws {
        var output = text(explanation)
        for (index, copy) in explanation.copies.enumerated() {
            output +=
                Data(
                    "\n\nmessage   \(index + 2) of \(explanation.copies.count + 1), a copy for another account\n"
                        .utf8)
                + text(copy)
        }
        try BatchOutput.write(output)
    }

    private static func text(_ explanation: Explanation) -> Data {
        var lines = ["decision  \(explanation.action.rawValue)"]
        lines += explanation.replies.map {
            "reply     \($0.recipient): \($0.reply.code) \($0.reply.enhanced) \($0.reply.text)"
        }
        lines += explanation.reasons.map { "reason    \($0.text)" }
        var output = Data()
        if let outgoing = explanation.outgoing {
            lines.append("sender    <\(outgoing.sender)>")
            lines += outgoing.recipients.map { "recipient <\($0)>" }
            lines.append("")
            output = Data(outgoing.bytes)
        }
        return Data(lines.map { $0 + "\n" }.joined().utf8) + output
    }
}
