// Users' complaints about forwarded mail, from providers' feedback loops (RFC 5965): counted, and
// reported to the team.

import InternetMessage
import MailCrypto

enum Complaint {
    /// Whether the Content-Type of mail to the operator announces a complaint. The rest of such
    /// mail is not examined.
    static func isAnnounced(by header: HeaderSection) -> Bool {
        let type = ContentType.parse(header.first("Content-Type")?.unfoldedValue ?? "")
        return type.matches("multipart", "report")
            && type.parameters["report-type"]?.lowercased() == "feedback-report"
    }

    /// Records a complaint, once a day for each token.
    /// - Parameter token: of the message that the user complains about; only the inbox's side knows
    ///   it. A reply's token counts nothing, as the user wrote the reply.
    /// - Returns: the result, for the log.
    static func record(
        _ token: AddressToken, engine: RelayEngine, day: UInt64
    ) throws(Refusal) -> String {
        guard token.purpose != .reply else { return "complaint about a reply" }
        let mark = SHA256.hash(Array("complaint \(token.localPart)".utf8))
        let inbox = try Refusal.deferring(engine.directory.account(token.account))?.inbox
        let isNew = try Refusal.deferring(
            engine.directory.recordComplaint(
                of: token.account, mark: mark, at: inbox.map { engine.provider(of: $0.address) },
                day: day))
        return isNew ? "complaint" : "complaint, known already"
    }

    /// The token in a report: the message's return path, or the reverse address in From, as
    /// providers leave out different parts of the message. A report without a token could be about
    /// any mail.
    static func token(in report: DeliveryReport, engine: RelayEngine) -> AddressToken? {
        guard report.kind == .feedback else { return nil }
        for name in ["original-mail-from", "return-path", "from"] {
            guard let value = report.original[name], let address = address(in: value),
                engine.settings.isRelayDomain(address.domain),
                case .token(let token) = engine.tokens.read(address.localPart)
            else { continue }
            return token
        }
        return nil
    }

    /// The address in the last angle brackets, or the whole value.
    private static func address(in value: String) -> AddrSpec? {
        let inner = value.split(separator: "<", omittingEmptySubsequences: false).last ?? ""
        let path = inner.split(separator: ">", omittingEmptySubsequences: false).first ?? ""
        return AddrSpec.parseForwardPath("<\(path.filter { $0 != " " })>")
    }
}
