// One mail transaction, from RCPT to the end of data: the order in which things are asked and answered.
// The milter feeds it from Postfix, `postern explain` from a file.

import InternetMessage
import MailAuth

/// A mail transaction of the relay. Not thread-safe: one caller at a time.
package final class RelayTransaction {
    /// What the recipients accepted so far have in common. One transaction carries one of these.
    private enum Scope {
        case empty
        case elsewhere
        case operatorMail([AddrSpec])
        case forward(RelayAccount)
        case reply(AccountNumber, correspondents: [AddrSpec])
        case returnPath(AddressToken)
        case answer(AnswerToken)
    }

    private let engine: RelayEngine
    private let client: SMTPClientIdentity
    /// Seconds since 1970.
    private let now: Int64

    private var scope = Scope.empty
    /// The accepted paths of our own, exactly as RCPT gave them.
    private var paths: [String] = []
    private var header = HeaderSection()
    private var headerSize = 0
    private var messageSize = 0
    private var early: Refusal?
    private var forward: ForwardSession?
    private var authentication: (any AuthenticationSession)?
    private var held: HeldBody?

    /// - Parameters:
    ///   - client: SMTP client, HELO and reverse-path without angle brackets.
    ///   - now: seconds since 1970.
    package init(engine: RelayEngine, client: SMTPClientIdentity, now: Int64) {
        self.engine = engine
        self.client = client
        self.now = now
    }

    private var day: UInt64 { UInt64(max(0, now) / 86_400) }

    /// Whether anything in this transaction is the relay's business. Told from the first accepted recipient on.
    package var isOurs: Bool {
        switch scope {
        case .empty, .elsewhere: false
        default: true
        }
    }

    /// Which way the message goes, for counters; nil where it is not the relay's business.
    package var direction: TransactionDirection? {
        switch scope {
        case .empty, .elsewhere: nil
        case .operatorMail: .operator
        case .forward: .forward
        case .reply: .reply
        case .returnPath: .report
        case .answer: .answer
        }
    }

    /// Of a forward whose author somebody registered: the author, proved or not, and the account that it was for.
    package var forwardAttribution: (author: AddrSpec, account: AccountNumber)? {
        guard case .forward = scope, let forward else { return nil }
        return (forward.author, forward.account.number)
    }

    // MARK: RCPT

    /// Judges a recipient by form and MAC, and by whether a relay address exists; nothing of an account's state is told here.
    /// - Parameter path: the argument of RCPT TO as it stands there.
    package func addRecipient(_ path: String) throws(Refusal) {
        let scope = try joined(with: path)
        switch scope {
        case .elsewhere: break
        default:
            guard paths.count < engine.settings.limits.recipients else { throw .tooManyRecipients }
            paths.append(path)
        }
        self.scope = scope
    }

    private func joined(with path: String) throws(Refusal) -> Scope {
        switch RecipientReading.read(path, settings: engine.settings, tokens: engine.tokens) {
        case .unknown: throw .unknownAddress("no such local part")
        case .forgedReverse: throw .replyNotProved(RelayReason("bad-reverse-address", "MAC is wrong"))
        case .forgedReturnPath: throw .badReturnPath("MAC is wrong")
        case .elsewhere:
            switch scope {
            case .empty, .elsewhere: return .elsewhere
            default: throw .otherScope
            }
        case .operatorMailbox(let target):
            guard let target else { throw .notConfigured("operator_address is not set") }
            switch scope {
            case .empty: return .operatorMail([target])
            case .operatorMail(let targets): return .operatorMail(targets.contains(target) ? targets : targets + [target])
            default: throw .otherScope
            }
        case .relayAddress(let localPart, let domain):
            guard let account = try ask({ () throws(DirectoryFailure) in try engine.directory.account(relayAddress: localPart, domain: domain) })
            else { throw .unknownAddress("relay address was never issued") }
            switch scope {
            case .empty: return .forward(account)
            case .forward(let other) where other.number == account.number: return scope
            default: throw .otherScope
            }
        case .reverse(let token):
            let correspondent = try correspondent(of: token)
            switch scope {
            case .empty: return .reply(token.account, correspondents: [correspondent])
            case .reply(token.account, let others):
                return .reply(token.account, correspondents: others.contains(correspondent) ? others : others + [correspondent])
            default: throw .otherScope
            }
        case .returnPath(let token):
            guard token.expiryDay >= day else { throw .badReturnPath("expired") }
            switch scope {
            case .empty: return .returnPath(token)
            case .returnPath(token): return scope
            default: throw .otherScope
            }
        case .answer(let token):
            guard token.expiryDay >= day else { throw .unknownAddress("the verification has expired") }
            switch scope {
            case .empty: return .answer(token)
            case .answer(token): return scope
            default: throw .otherScope
            }
        }
    }

    private func correspondent(of token: AddressToken) throws(Refusal) -> AddrSpec {
        let stored = StoredAddresses(directory: engine.directory, tokens: engine.tokens)
        let address = stored.address(of: token)
        if let failure = stored.failure { throw .storeTrouble(failure.detail) }
        guard let address else { throw .replyNotProved(RelayReason("bad-reverse-address", "nothing is stored under it")) }
        return address
    }

    private func ask<Value>(_ question: () throws(DirectoryFailure) -> Value) throws(Refusal) -> Value {
        do { return try question() } catch { throw .storeTrouble(error.detail) }
    }

    // MARK: Header section

    /// Takes the next header field. What is wrong with it is answered by `endHeader`.
    package func addHeader(_ field: HeaderField) {
        guard isOurs, early == nil else { return }
        // Mail to the operator goes on as it is: nothing in it is read, so nothing in it can be wrong.
        if case .operatorMail = scope { return }
        let limits = engine.settings.limits
        headerSize += field.bytes.count + 2
        messageSize = headerSize
        if field.bytes.count >= limits.headerFieldSize {
            early = .malformedHeader("a field of \(limits.headerFieldSize) octets or more")
        } else if header.fields.count >= limits.headerFields {
            early = .malformedHeader("more than \(limits.headerFields) fields")
        } else if headerSize > limits.headerSize {
            early = .malformedHeader("more than \(limits.headerSize) octets")
        } else if !field.isSafe {
            early = unsafeHeader
        } else {
            header.fields.append(field)
        }
    }

    /// A field that two programs read differently proves no author, whatever else the message says.
    private var unsafeHeader: Refusal {
        let reason = RelayReason("unsafe-header", "NUL, bare CR or another octet that two programs read differently")
        return switch scope {
        case .forward: .proofFailed(reason)
        case .reply, .answer: .replyNotProved(reason)
        default: .malformedHeader(reason.detail)
        }
    }

    /// Ends the header section. A refusal thrown here is the answer to the whole message.
    package func endHeader() throws(Refusal) {
        if let early { throw early }
        if case .operatorMail = scope { return }
        switch engine.mark.trace(header) {
        case .ours: throw .loop
        case .hops(let hops): if hops > engine.settings.limits.hops { throw .loop }
        }
        switch scope {
        case .empty, .elsewhere, .operatorMail: break
        case .forward(let account):
            forward = try ForwardSession(engine: engine, account: account, client: client, header: header, now: now)
        case .reply, .returnPath:
            held = HeldBody(budget: engine.replyMemory)
            authentication = engine.authenticator.begin(client: client, header: header, now: now)
        case .answer:
            // Nothing of it is kept: that it was written, and by whom, is all that counts.
            authentication = engine.authenticator.begin(client: client, header: header, now: now)
        }
    }

    // MARK: Body

    /// Takes the next octets of the body, line ends as CRLF. After a refusal nothing more of the message is needed.
    package func addBody(_ chunk: UnsafeRawBufferPointer) throws(Refusal) {
        messageSize += chunk.count
        guard messageSize <= engine.settings.limits.messageSize else { throw .messageTooLarge(engine.settings.limits.messageSize) }
        forward?.update(body: chunk)
        authentication?.update(body: chunk)
        if let held, !held.append(chunk) { throw .replyMemory }
    }

    /// As `addBody` for a buffer.
    package func addBody(_ chunk: ArraySlice<UInt8>) throws(Refusal) {
        // Typed throws do not cross `withUnsafeBytes`.
        let result: Result<Void, Refusal> = chunk.withUnsafeBytes { bytes in
            do throws(Refusal) { return .success(try addBody(bytes)) } catch { return .failure(error) }
        }
        try result.get()
    }

    // MARK: End of data

    /// Decides. Called once.
    package func finish() -> RelayDecision {
        do {
            switch scope {
            case .empty, .elsewhere: return RelayDecision(.untouched, reasons: [])
            case .operatorMail(let targets): return operatorMail(to: targets)
            case .forward:
                guard let forward else { throw Refusal.notConfigured("end of data before end of header") }
                return try forward.finish(paths: paths)
            case .reply(let number, let correspondents):
                let message = try incoming()
                return try Reply.decide(
                    engine: engine, message: message, account: number, correspondents: correspondents, paths: paths)
            case .returnPath(let token):
                return try Bounce.decide(engine: engine, message: try incoming(), token: token, paths: paths)
            case .answer(let token):
                guard let authentication else { throw Refusal.notConfigured("end of data before end of header") }
                return try VerificationAnswer.decide(
                    engine: engine, client: client, header: header, evidence: authentication.finish(), token: token)
            }
        } catch let refusal as Refusal {
            return .refuse(refusal)
        } catch {
            return .refuse(.storeTrouble("unexpected failure"))
        }
    }

    private func incoming() throws(Refusal) -> IncomingMessage {
        guard let authentication, let held else { throw .notConfigured("end of data before end of header") }
        return IncomingMessage(
            client: client, header: header, body: held, evidence: authentication.finish(), now: now, day: day)
    }

    /// Mail to the operator: to the operator's address, with the null sender, so that nothing of ours ever answers it.
    private func operatorMail(to targets: [AddrSpec]) -> RelayDecision {
        RelayDecision(
            .relay,
            modifications: [.changeSender("<>")] + paths.map { .deleteRecipient($0) } + targets.map { .addRecipient("<\($0.wireForm)>") },
            reasons: [RelayReason("operator-mail")])
    }
}

/// What a transaction carries.
package enum TransactionDirection: String, Sendable, Hashable {
    case forward, reply, report, answer, `operator`
}

/// A message whose body was held, as replies and reports are decided on.
struct IncomingMessage {
    let client: SMTPClientIdentity
    let header: HeaderSection
    let body: HeldBody
    let evidence: AuthenticationEvidence
    let now: Int64
    let day: UInt64
}

/// A body held in memory against the shared budget, which gets it back when the body is let go.
final class HeldBody {
    private(set) var bytes: [UInt8] = []
    private let budget: ReplyMemory
    private var taken = 0
    /// The budget is asked for in steps, so that many small chunks cost few locks.
    private static let step = 65_536

    init(budget: ReplyMemory) { self.budget = budget }

    /// False where the budget is used up.
    func append(_ chunk: UnsafeRawBufferPointer) -> Bool {
        if bytes.count + chunk.count > taken {
            let more = max(Self.step, bytes.count + chunk.count - taken)
            guard budget.take(more) else { return false }
            taken += more
        }
        bytes.append(contentsOf: chunk)
        return true
    }

    deinit { budget.give(back: taken) }
}
