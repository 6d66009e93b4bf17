// An answer to a verification message. It confirms nothing, and its author gets a message that says
// so.

import InternetMessage
import MailAuth
import Support

/// Writes the message for a user who answered the message that verifies an inbox.
package protocol AnsweredVerificationNotice: Sendable {
    /// The relay domain that signs it.
    var relayDomain: String { get }

    /// - Parameters:
    ///   - language: the user's, if it is known.
    ///   - id: random, in base32.
    ///   - answered: the answer's Message-ID without brackets; nil if it has none.
    ///   - now: seconds since 1970.
    /// - Returns: all fields and the body, unsigned.
    func message(
        to author: AddrSpec, language: String?, id: String, answered: [UInt8]?, now: Int64
    ) -> (header: HeaderSection, body: [UInt8])
}

enum AnsweredVerification {
    /// Programs also answer, and quote the code, so an answer proves no person. It is never
    /// relayed. Its author gets a message instead, once a day, and then a refusal. Automatic mail
    /// and reports are accepted and change nothing.
    ///
    /// As for replies, the proof comes before the inbox is compared, and a refusal has the same
    /// text.
    static func decide(
        engine: RelayEngine, client: SMTPClientIdentity, header: HeaderSection,
        evidence: AuthenticationEvidence,
        token: AnswerToken, paths: [String], now: Int64
    ) throws(Refusal) -> RelayDecision {
        guard !client.mailFrom.isEmpty, !AutomaticMail.isAutomatic(header) else {
            return RelayDecision(
                .discard,
                reasons: [
                    RelayReason(.automaticAnswer, "a program answered a verification message")
                ])
        }
        let author: AddrSpec
        let proof: SenderProof
        do { (author, proof) = try Reply.prove(header, evidence: evidence, client: client) } catch {
            throw error.isTemporary ? error : .answerNotProved(error.reason)
        }
        switch try Refusal.deferring(engine.directory.recordAnswer(to: token, author: author)) {
        case .notTheInbox:
            throw .answerNotProved(
                RelayReason(
                    .notTheVerifiedInbox,
                    "the author is proved, but is not the inbox of a verification in progress"))
        case .repeated: throw .answerNotRead
        case .first(let language):
            guard let notice = engine.answeredNotice else { throw .answerNotRead }
            let answered = header.first("Message-ID").flatMap {
                MessageIDs.ids(in: $0.rawValue).first
            }
            let (fields, body) = notice.message(
                to: author, language: language,
                id: String(decoding: Base32.encode(engine.randomness(15)), as: UTF8.self),
                answered: answered, now: now)
            return try OutgoingMessage(
                header: fields, body: [body[...]], bodyForSigning: [body[...]]
            ).decision(
                replacing: header, engine: engine, domain: notice.relayDomain, now: now,
                sender: "<>", paths: paths,
                recipients: [author],
                reasons: [RelayReason(.answerTold, "author proved by \(proof.method)")])
        }
    }
}
