// The relay as both sides of a pair see it: an installation for each, with everything recorded.

import InternetMessage
import LeakSearch
import MailAuth
import MailTesting
import PairTesting

@testable import RelayCore

/// Plays a mail of the team's and its answer.
struct PairRelay: Sendable {
    let forms: [ProgramForm]

    private static func jane(of team: String) -> RelayAccount {
        Fixture.account(1, "annarelay2", team: team, inboxes: Guess.inboxes)
    }
    /// Her account with a partner of the team.
    private static let janeElsewhere = Fixture.account(
        3, "annaother2", team: "partner.example", inboxes: Guess.inboxes)

    /// Units of work of the bodies that were rewritten. One transaction runs on one thread.
    private final class Work: @unchecked Sendable { var all: [Int] = [] }

    /// Records the work of rewriting a body. The check after it is charged by form alone
    /// (`LeakCheckTests`), and octets that decode to letters by chance differ between both mails of
    /// a pair.
    private struct Counting: BodyRewriting {
        let rewriter: any BodyRewriting
        let budget: WorkBudget
        let work: Work

        func rewrite(content header: HeaderSection, body: [UInt8]) throws(Refusal) -> RewrittenBody
        {
            defer { work.all.append(budget.spent) }
            return try rewriter.rewrite(content: header, body: body)
        }
    }

    /// A message on arrival, with its envelope.
    typealias Answer = (octets: [UInt8], sender: String, recipients: [String])

    /// A mail on leaving the relay.
    private struct Outcome {
        var code: String
        var reasons: [String]
        var message: ModifiedMessage?
        var work: [Int] = []
    }

    func see(_ pair: PairSpec, _ side: Side) -> Seen {
        let team = TeamMail(pair, side)
        var form = forms[pair.form]
        var (mail, shown) = (team.octets, team.shown)
        if let reader = pair.partnersReader {
            mail = PartnerMail.octets(form, quoting: team, pair)
            (form, shown) = (forms[reader], nil)
        }
        return see(mail, from: team.sender, shown: shown, isSanitized: pair.isSanitized) {
            let answer = ProgramAnswer(form, to: $0, pair)
            return (answer.octets, answer.sender, answer.recipients)
        }
    }

    /// - Parameters:
    ///   - mail: the team's.
    ///   - team: its domain.
    ///   - answer: makes the answer to the received mail.
    func see(
        _ mail: [UInt8], from sender: String, team: String = "juice.example", shown: String? = nil,
        isSanitized: Bool = false,
        answer: (Arrived) -> Answer
    ) -> Seen {
        var seen = Seen()
        let records = RecordingDirectory(
            MemoryDirectory([Self.jane(of: team), Self.janeElsewhere]))
        let engine = RelayEngine(
            settings: RelaySettings(
                relayDomains: ["relay.example"], authservID: "mx.relay.example"),
            keys: Fixture.keys,
            directory: records,
            authenticator: TestAuthenticator(evidence: AuthenticationEvidence.signed(team)),
            replyMemory: ReplyMemory(limit: 1 << 28), randomness: { Array(repeating: 5, count: $0) }
        )
        guard let engine else { return seen }
        let forward = Self.play(engine, from: sender, to: [TeamMail.relay], mail)
        seen.forwardRecords = records.take()
        (seen.forwardCode, seen.forwardReasons) = (forward.code, forward.reasons)
        guard let arrived = forward.message else { return seen }

        let view = Arrived(
            arrived.bytes, sender: arrived.sender, shown: shown, isSanitized: isSanitized)
        let answer = answer(view)
        seen.sent = answer.octets
        let reply = Self.play(
            engine.authenticating(
                by: TestAuthenticator(evidence: AuthenticationEvidence.signed("home.example"))),
            from: answer.sender, to: answer.recipients, answer.octets)
        seen.records = records.take()
        (seen.replyCode, seen.reasons, seen.work) = (reply.code, reply.reasons, reply.work)
        guard let out = reply.message else { return seen }
        // The return path of each message is different.
        seen.envelope = ["from \(out.sender.utf8.count) octets"] + out.recipients
        seen.octets = out.bytes
        return seen
    }

    private static func play(
        _ engine: RelayEngine, from sender: String, to recipients: [String], _ octets: [UInt8]
    ) -> Outcome {
        let work = Work()
        let counted = engine.rewriting { names, budget in
            Counting(rewriter: engine.bodyRewriter(names, budget), budget: budget, work: work)
        }
        let transaction = RelayTransaction(
            engine: counted,
            client: SMTPClientIdentity(
                address: "192.0.2.1", helo: "client.example", mailFrom: sender),
            now: Fixture.now)
        func refused(_ refusal: Refusal) -> Outcome {
            Outcome(
                code: "\(refusal.reply.code) \(refusal.reply.enhanced) \(refusal.reply.text)",
                reasons: ["\(refusal.reason.code): \(refusal.reason.detail)"])
        }
        var outcome = Outcome(code: "", reasons: [])
        for recipient in recipients {
            do throws(Refusal) { try transaction.addRecipient("<\(recipient)>") } catch {
                return refused(error)
            }
        }
        let message = Message.parse(octets)
        for field in message.header.fields { transaction.addHeader(field) }
        do throws(Refusal) {
            try transaction.endHeader()
            try transaction.addBody(message.body)
        } catch { return refused(error) }
        let decision = transaction.finish()
        if case .refuse(let refusal) = decision.outcome {
            outcome = refused(refusal)
        } else {
            outcome.code = "\(decision.outcome)"
            outcome.reasons = decision.reasons.map { "\($0.code): \($0.detail)" }
        }
        outcome.work = work.all
        guard decision.outcome == .relay else { return outcome }
        var modified = ModifiedMessage(
            header: message.header, body: message.body, sender: sender, recipients: recipients)
        modified.apply(decision.modifications)
        outcome.message = modified
        return outcome
    }

    /// The differences between the answers to both guesses, and the result of the right one.
    func differences(_ pair: PairSpec) -> (found: [Difference], right: Seen) {
        let right = see(pair, .right)
        return (Seen.differences(right, see(pair, .wrong), pair.substitutions), right)
    }

    /// The smallest pair with the same kind of difference, and that difference.
    func smallest(
        _ pair: PairSpec, _ difference: Difference
    ) -> (pair: PairSpec, difference: Difference) {
        var (smallest, found) = (pair, difference)
        var isSmaller = true
        while isSmaller {
            isSmaller = false
            for candidate in smallest.smaller where candidate.plants.contains(where: \.isTelling) {
                guard
                    let other = differences(candidate).found.first(where: { $0.kind == found.kind })
                else { continue }
                (smallest, found, isSmaller) = (candidate, other, true)
                break
            }
        }
        return (smallest, found)
    }
}
