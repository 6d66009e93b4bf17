// Mail from programs to the operator's mailboxes: complaints and DMARC reports. All such mail is
// delivered unchanged. The content of these two kinds is also recorded, if there is memory and
// time. Other mail is not examined.

import InternetMessage
import MailAuth
import Support

/// A message to the operator's mailboxes, during its arrival. The operator gets it even if an error
/// occurs in reading it. Not thread-safe.
final class OperatorMail {
    private enum Kind { case complaint, aggregate }

    /// Octets of a complaint that are read. The facts are at its beginning, and anyone can send
    /// one.
    private static let complaintLimit = 131_072

    private let engine: RelayEngine
    private let client: SMTPClientIdentity
    private let now: Int64
    private var header = HeaderSection()
    private var headerSize = 0
    private var kind: Kind?
    private var body: HeldBody?
    private var authentication: (any AuthenticationSession)?
    /// Whether the header section is possible for a report: safe, and within the limits.
    private var isPlain = true

    init(engine: RelayEngine, client: SMTPClientIdentity, now: Int64) {
        (self.engine, self.client, self.now) = (engine, client, now)
    }

    func addHeader(_ field: HeaderField) {
        headerSize += field.bytes.count + 2
        let limits = engine.settings.limits
        isPlain =
            isPlain && field.isSafe && headerSize <= limits.headerSize
            && header.fields.count < limits.headerFields
            && field.bytes.count < limits.headerFieldSize
        if isPlain { header.fields.append(field) }
    }

    func endHeader() {
        guard isPlain else { return }
        if Complaint.isAnnounced(by: header) {
            kind = .complaint
        } else if AggregateReportReader.isAnnounced(by: header) {
            kind = .aggregate
            // The DNS queries come before the body is kept. If no body could prove the message,
            // none is kept.
            let session = engine.authenticator.begin(client: client, header: header, now: now)
            if let best = session.prepare(),
                (try? Reply.prove(header, evidence: best, client: client)) == nil
            {
                return
            }
            authentication = session
        }
        if kind != nil {
            body = HeldBody(budget: engine.operatorMemory, isRewritten: true, hasCopies: false)
        }
    }

    func addBody(_ chunk: UnsafeRawBufferPointer) {
        authentication?.update(body: chunk)
        guard let held = body else { return }
        let room = kind == .complaint ? max(0, Self.complaintLimit - held.count) : chunk.count
        do { try held.append(UnsafeRawBufferPointer(rebasing: chunk.prefix(room))) } catch {
            body = nil
        }
    }

    /// Records its contents.
    /// - Returns: the outcome, for the log; nil for ordinary mail.
    func finish(_ turn: @escaping () -> (any RewritingTurn)?) -> RelayReason? {
        guard let kind else { return nil }
        let code: RelayReason.Code = kind == .complaint ? .complaint : .dmarcReport
        do {
            return try (kind == .complaint ? complaint(turn) : aggregate(turn)).map {
                RelayReason(code, $0)
            }
        } catch {
            return RelayReason(code, "not written down: \(error.reason.code)")
        }
    }

    private func complaint(_ turn: @escaping () -> (any RewritingTurn)?) throws(Refusal) -> String?
    {
        guard let body else { return "not read: no room" }
        let report = try body.rewrite(turn: turn) { bytes throws(Refusal) in
            ReportReader.read(header: header, body: bytes)
        }
        guard let token = Complaint.token(in: report, engine: engine) else { return nil }
        guard report.isComplaint else { return "of another kind" }
        let day = UInt64(max(0, now) / 86_400)
        guard token.purpose.isReverse || token.expiryDay >= day else {
            return "about a message of long ago"
        }
        return try Complaint.record(token, engine: engine, day: day)
    }

    /// Anyone can write here, so a report without a proved author does not count.
    private func aggregate(_ turn: @escaping () -> (any RewritingTurn)?) throws(Refusal) -> String?
    {
        guard let authentication else { return "not proved" }
        let author: AddrSpec
        do {
            author = try Reply.prove(header, evidence: authentication.finish(), client: client)
                .author
        } catch {
            return error.isTemporary ? "cannot be proved now" : "not proved"
        }
        guard let body else { return "not read: no room" }
        let report = try body.rewrite(turn: turn) { bytes throws(Refusal) in
            AggregateReportReader.read(header: header, body: bytes, now: now)
        }
        guard let report else { return "not readable" }
        guard
            engine.settings.relayDomains.contains(where: {
                DomainName.isEqualOrBelow($0, report.domain)
            })
        else {
            return "of another domain"
        }
        let isNew = try Refusal.deferring(
            engine.directory.record(report, reporter: author.asciiDomain, now: now))
        return isNew ? "of \(author.asciiDomain)" : "known already, or too many"
    }
}
