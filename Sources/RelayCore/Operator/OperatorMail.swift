// Mail to the operator's mailboxes that programs write: complaints and reports about DMARC. All of it goes on unchanged; what
// these two say is written down on the way. Other mail is not looked into.

import InternetMessage
import MailAuth
import Support

/// A message to the operator's mailboxes, while it comes. Not thread-safe.
final class OperatorMail {
    private enum Kind { case complaint, aggregate }

    private let engine: RelayEngine
    private let client: SMTPClientIdentity
    private let now: Int64
    private var header = HeaderSection()
    private var headerSize = 0
    private var kind: Kind?
    private var body: HeldBody?
    private var authentication: (any AuthenticationSession)?
    /// Whether the header section is one that a report may have: nothing in it can be wrong otherwise.
    private var isPlain = true

    init(engine: RelayEngine, client: SMTPClientIdentity, now: Int64) {
        (self.engine, self.client, self.now) = (engine, client, now)
    }

    func addHeader(_ field: HeaderField) {
        headerSize += field.bytes.count + 2
        let limits = engine.settings.limits
        isPlain =
            isPlain && field.isSafe && headerSize <= limits.headerSize && header.fields.count < limits.headerFields
            && field.bytes.count < limits.headerFieldSize
        if isPlain { header.fields.append(field) }
    }

    func endHeader() {
        guard isPlain else { return }
        if Complaint.isAnnounced(by: header) {
            kind = .complaint
        } else if AggregateReportReader.isAnnounced(by: header) {
            kind = .aggregate
            authentication = engine.authenticator.begin(client: client, header: header, now: now)
        }
        if kind != nil { body = HeldBody(budget: engine.replyMemory, isRewritten: true, hasCopies: false) }
    }

    /// - Throws: the answer to the sender: to retry, where there is no memory to hold it now.
    func addBody(_ chunk: UnsafeRawBufferPointer) throws(Refusal) {
        authentication?.update(body: chunk)
        do { try body?.append(chunk) } catch {
            // What is too large to be read reaches the operator all the same.
            guard !error.isTemporary else { throw error }
            body = nil
        }
    }

    /// Writes down what it says.
    /// - Returns: what became of it, for the log; nil where it is mail like any other.
    func finish(_ turn: @escaping () -> (any RewritingTurn)?) throws(Refusal) -> RelayReason? {
        guard let kind, let body else { return nil }
        switch kind {
        case .complaint:
            let report = try body.rewrite(turn: turn) { bytes throws(Refusal) in ReportReader.read(header: header, body: bytes) }
            guard let token = Complaint.token(in: report, engine: engine) else { return nil }
            return RelayReason(
                "complaint", try Complaint.record(token, engine: engine, day: UInt64(max(0, now) / 86_400)))
        case .aggregate:
            // Anyone can write here: what is not proved to be of its author says nothing.
            guard let authentication,
                let author = try? Reply.prove(header, evidence: authentication.finish(), client: client).author
            else { return RelayReason("dmarc-report", "not proved") }
            let report = try body.rewrite(turn: turn) { bytes throws(Refusal) in
                AggregateReportReader.read(header: header, body: bytes, now: now)
            }
            guard let report, engine.settings.relayDomains.contains(where: { DomainName.isEqualOrBelow($0, report.domain) })
            else {
                return RelayReason("dmarc-report", report == nil ? "not readable" : "of another domain")
            }
            let isNew = try Refusal.deferring(engine.directory.record(report, reporter: author.asciiDomain, now: now))
            return RelayReason("dmarc-report", isNew ? "of \(author.asciiDomain)" : "known already")
        }
    }
}
