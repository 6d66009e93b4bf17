// An answer to a verification message: it proves that the owner of the inbox reads it, and wants it.

import InternetMessage
import MailAuth

enum ConfirmationReply {
    /// Confirms the inbox where its owner wrote the answer, and never relays the answer.
    ///
    /// Automatic mail and reports are accepted and change nothing: a vacation note says nothing about what its owner wants. As
    /// with replies, the proof comes before the inbox is compared, and a refusal has the same text.
    static func decide(
        engine: RelayEngine, client: SMTPClientIdentity, header: HeaderSection, evidence: AuthenticationEvidence,
        token: AnswerToken
    ) throws(Refusal) -> RelayDecision {
        guard !client.mailFrom.isEmpty, !AutomaticMail.isAutomatic(header) else {
            return RelayDecision(
                .discard, reasons: [RelayReason("automatic-answer", "a program answered a verification message")])
        }
        let author: AddrSpec
        switch AuthorAddress.parse(header: header) {
        case .success(let address): author = address
        case .failure(let defect): throw .replyNotProved(RelayReason("unclear-author", "\(defect)"))
        }
        let proof = try ReplyProof.prove(author: author, evidence: evidence.proving(client))
        guard try Refusal.deferring(engine.directory.confirm(token, author: author)) else {
            throw .replyNotProved(
                RelayReason("not-the-verified-inbox", "the author is proved, but is not the inbox of a verification under way"))
        }
        return RelayDecision(.discard, reasons: [RelayReason("inbox-confirmed", "author proved by \(proof.method)")])
    }
}
