// postern verify message: SPF, DKIM, DMARC and From of a message.

import Accounts
import ArgumentParser
import DNSClient
import Foundation
import InternetMessage
import MailAuth
import PosternConfiguration
import Relay

struct VerifyMessage: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "message", abstract: "Check SPF, DKIM, DMARC and From of a message.",
        discussion: """
            Reads a message on standard input and prints one JSON object: spf (for the envelope sender, or for HELO if the \
            sender is null), dkim (each signature from the top), dmarc, from (the one address, or why there is no address on \
            which all programs agree), and proof: whether an aligned signature or an aligned SPF pass proves the author, \
            which a reply needs. If standard input is empty, only spf is checked.

            No installation is needed. If there is one, proof also says for each registered source that covers the author \
            whether it is proved, which a forward needs.

            Without --dns or --dns-server, the name servers of the installation are used, or else those of the system. The \
            file of answers is JSON: {"name": {"TXT": ["…"], "A": ["…"], "MX": [[10, "mx"]]}}, or {"name": {"error": \
            "NXDOMAIN|NODATA|SERVFAIL|TIMEOUT"}}. A name that is not in the file does not exist.

            With --batch, standard input has one JSON object per line: {id, mail_from, ip, helo, dns, now, message_base64}. \
            The responses are written in the same order, each with its id.
            """)

    @OptionGroup var options: InstallationOptions
    @Option(help: "The SMTP client's IP address.") var ip: String?
    @Option(help: ArgumentHelp("The name that the client gave in HELO.", valueName: "name"))
    var helo: String = ""
    @Option(help: ArgumentHelp("The envelope sender; empty or <> for none.", valueName: "address"))
    var mailFrom: String = ""
    @OptionGroup var dns: DNSOptions
    @Option(
        name: .customLong("now"),
        help: ArgumentHelp("The time, in seconds since 1970 or ISO 8601.", valueName: "time"))
    var time: String?
    @Flag(help: "Read requests as JSON lines.") var batch = false

    func validate() throws {
        try ClientAddress.check(ip)
        guard AddrSpec.parseReversePath(mailFrom) != nil else {
            throw ValidationError(
                "--mail-from must be an address, as in bounces@juice.example, or <> for none.")
        }
    }

    func run() throws {
        let installation = try options.installationIfAny()
        defer { try? installation?.close() }
        let questions = MessageQuestions(
            installation: installation, fileZone: try dns.zone()?.resolver,
            client: { try dns.client(installation) })
        if batch { return try runBatch(questions) }
        let question = MessageToVerify(
            mailFrom: mailFrom, address: ip, helo: helo,
            message: Array(FileHandle.standardInput.readDataToEndOfFile()),
            now: try time.map(TimeArgument.seconds) ?? PosternClock.now())
        try BatchLine.print(questions.answer(question, id: nil, zone: nil))
    }

    private func runBatch(_ questions: MessageQuestions) throws {
        while let line = readLine(strippingNewline: true) {
            guard !line.allSatisfy(\.isWhitespace) else { continue }
            do {
                let question = try JSONDecoder().decode(MessageRequest.self, from: Data(line.utf8))
                try ClientAddress.check(question.ip)
                try BatchLine.print(
                    questions.answer(
                        question.message(), id: question.id ?? .null, zone: question.dns))
            } catch {
                try BatchLine.print(
                    BatchLine.Failure(id: BatchLine.id(in: line), error: BatchLine.describe(error)))
            }
        }
    }
}

/// Answers requests, with a file of DNS answers or with one network client, which is created at the
/// first request that needs it.
final class MessageQuestions {
    private let directory: StoreDirectory?
    private let fileZone: ZoneResolver?
    private let makeClient: () throws -> AresResolver
    private var client: AresResolver?

    init(
        installation: Installation?, fileZone: ZoneResolver?,
        client: @escaping () throws -> AresResolver
    ) {
        directory = installation.map {
            StoreDirectory(store: $0.store, counters: nil, now: PosternClock.now)
        }
        self.fileZone = fileZone
        makeClient = client
    }

    func answer(_ question: MessageToVerify, id: BatchID?, zone: ZoneFile?) throws -> Members {
        Self.members(
            id,
            try MessageVerifier.verify(question, resolver: try resolver(zone), directory: directory)
        )
    }

    private func resolver(_ zone: ZoneFile?) throws -> any DNSResolver {
        if let zone { return zone.resolver }
        if let fileZone { return fileZone }
        let client = try self.client ?? makeClient()
        self.client = client
        return BudgetedResolver(client)
    }
}

/// A line of --batch.
struct MessageRequest: Decodable {
    let id: BatchID?
    let mailFrom: String?
    let ip: String?
    let helo: String?
    let dns: ZoneFile?
    let now: TimeArgument?
    let messageBase64: String?

    // Listed one by one, because a strategy for all keys would also change the names in `dns`.
    enum CodingKeys: String, CodingKey {
        case id, ip, helo, dns, now
        case mailFrom = "mail_from"
        case messageBase64 = "message_base64"
    }

    func message() throws -> MessageToVerify {
        guard
            let bytes = Data(base64Encoded: messageBase64 ?? "", options: .ignoreUnknownCharacters)
        else {
            throw CommandError(status: EX_DATAERR, message: "message_base64 is not valid base64")
        }
        return MessageToVerify(
            mailFrom: mailFrom ?? "", address: ip, helo: helo ?? "", message: Array(bytes),
            now: now?.seconds ?? PosternClock.now())
    }
}

extension MessageQuestions {
    /// The response as JSON. Without a message it has only `spf`.
    private static func members(_ id: BatchID?, _ report: AuthenticationReport) -> Members {
        let spf = report.spf
        let answer: Members = [
            "id": id,
            "spf": [
                "result": spf.result.rawValue, "domain": spf.domain,
                "identity": spf.identity.rawValue, "reason": spf.reason,
            ] as Members,
        ]
        guard let content = report.content else { return answer }
        let dkim = content.dkim.map { finding -> Members in
            [
                "d": finding.domain, "s": finding.selector, "a": finding.algorithm,
                "result": finding.result.rawValue,
                "reason": finding.reason, "covers_whole_body": finding.coversWholeBody,
            ]
        }
        // A From field without an author has no domain, and so no policy to look up.
        let dmarc: Members = [
            "result": (content.dmarc?.result ?? .permerror).rawValue,
            "domain": content.dmarc?.domain ?? "",
            "policy": content.dmarc?.policy ?? "",
        ]
        let from: Members =
            switch content.author {
            case .success(let author): ["addresses": [author.wireForm]]
            case .failure(let defect): ["error": defect.description]
            }
        let proof: Members = [
            "author_domain": Members.orNull(content.proof.authorDomain),
            "aligned_dkim": content.proof.alignedDKIM,
            "aligned_spf": Members.orNull(content.proof.alignedSPF),
            "proved": content.proof.isProved,
            "temporary": content.proof.isTemporary, "reason": content.proof.reason,
            "sources": content.proof.sources?.map {
                ["source": $0.source, "proved": $0.isProved, "reason": $0.reason] as Members
            },
        ]
        return answer.merging(["dkim": dkim, "dmarc": dmarc, "from": from, "proof": proof])
    }
}
