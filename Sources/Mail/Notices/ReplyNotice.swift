// Tells a user who replied to the verification message of an inbox that no one reads such replies.

import InternetMessage
import Languages
import RelayCore

/// Writes one message for each such user and day; the relay sends it instead of the reply.
package struct ReplyNotice: AnsweredVerificationNotice {
    private let settings: MailerSettings
    private let templates: NoticeTemplates
    private let tokens: @Sendable () -> TokenMint
    package var relayDomain: String { settings.relayDomain }

    /// - Parameter tokens: the mint with the present keys.
    package init(
        settings: MailerSettings, templates: NoticeTemplates,
        tokens: @escaping @Sendable () -> TokenMint
    ) {
        self.tokens = tokens
        self.settings = settings
        self.templates = templates
    }

    package func message(
        to author: AddrSpec, language: String?, id: String, answered: [UInt8]?, now: Int64
    ) -> (header: HeaderSection, body: [UInt8]) {
        let values = NoticeValues(
            service: settings.service, relayDomain: settings.relayDomain,
            page: settings.publicURL.map { "\($0)/me" })
        let language = templates.languages.best([language].compactMap(\.self), accepted: nil)
        // A longer id would not fit a line (RFC 5322 section 2.1.1).
        let isWritable =
            answered.map { $0.count <= 900 && $0.allSatisfy { (0x21...0x7E).contains($0) } }
            ?? false
        return NoticeMessage(
            name: settings.service, from: settings.from, to: InboxAddress(author),
            content: templates.render(.reply, values, in: language),
            relayDomain: settings.relayDomain, id: id, now: now,
            isReply: true, answered: isWritable ? answered : nil,
            feedback: settings.feedback(tokens())
        ).unsigned
    }
}
