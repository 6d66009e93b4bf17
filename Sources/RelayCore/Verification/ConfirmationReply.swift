// An answer to a verification message: it proves that anyone who has the inbox reads it, and wants it.

import InternetMessage
import MailAuth

enum ConfirmationReply {
    /// Confirms the inbox where its owner wrote the answer, and lets nothing through in any case.
    ///
    /// Programs answer too, and a vacation note says nothing about what its owner wants: automatic mail and reports are taken and
    /// change nothing. Proved before it is looked whose inbox it is, as with replies, and refused with the same text.
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
