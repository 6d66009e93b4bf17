// Complaints of users about forwarded mail, as providers' feedback loops report them (RFC 5965): counted, and told to the team.

import InternetMessage
import MailCrypto

enum Complaint {
    /// Whether mail to the operator may be a complaint, by its Content-Type alone: anything else of theirs is not looked into.
    static func isAnnounced(by header: HeaderSection) -> Bool {
        let type = ContentType.parse(header.first("Content-Type")?.unfoldedValue ?? "")
        return type.matches("multipart", "report") && type.parameters["report-type"]?.lowercased() == "feedback-report"
    }

    /// Records a complaint, once a day for each token.
    /// - Parameter token: of the message that it is about: only the inbox's side knows it. One of a reply counts nothing, as the
    ///   user wrote that.
    /// - Returns: what became of it, for the log.
    static func record(
        _ token: AddressToken, engine: RelayEngine, day: UInt64
    ) throws(Refusal) -> String {
        guard token.purpose != .reply else { return "complaint about a reply" }
        let mark = SHA256.hash(Array("complaint \(token.localPart)".utf8))
        let isNew = try Refusal.deferring(engine.directory.recordComplaint(of: token.account, mark: mark, day: day))
        return isNew ? "complaint" : "complaint, known already"
    }

    /// The token that a report names, as providers leave out more or less of the message: its return path, or the reverse address
    /// in From. A report without one could be about anyone's mail.
    static func token(in report: DeliveryReport, engine: RelayEngine) -> AddressToken? {
        guard report.kind == .feedback else { return nil }
        for name in ["original-mail-from", "return-path", "from"] {
            guard let value = report.original[name], let address = address(in: value),
                engine.settings.isRelayDomain(address.domain), case .token(let token) = engine.tokens.read(address.localPart)
            else { continue }
            return token
        }
        return nil
    }

    /// What is in the last angle brackets, or all of it.
    private static func address(in value: String) -> AddrSpec? {
        let inner = value.split(separator: "<", omittingEmptySubsequences: false).last ?? ""
        let path = inner.split(separator: ">", omittingEmptySubsequences: false).first ?? ""
        return AddrSpec.parseForwardPath("<\(path.filter { $0 != " " })>")
    }
}
