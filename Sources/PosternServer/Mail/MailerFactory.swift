// From an installation to what writes its own mail.

import PosternMail
import PosternStore
import RelayCore

package enum MailerFactory {
    /// - Parameter signer: nil makes one that knows the keys as they are now.
    /// - Throws: `TemplateError`, `ConfigurationError`, and as the store does.
    package static func mailer(_ installation: Installation, signer: (any MessageSigner)? = nil) throws -> InboxMailer {
        let configuration = installation.configuration
        return InboxMailer(
            settings: MailerSettings(
                from: configuration.mail.from, service: configuration.serviceName, relayDomain: configuration.mail.from.domain,
                publicURL: configuration.publicURL, limits: configuration.verification.limits),
            store: installation.store, tokens: try tokens(installation),
            signer: try signer ?? RelaySigner(keys: installation.store.dkimKeys),
            submission: SMTPSubmission(
                host: configuration.mail.submission.host, port: UInt16(clamping: configuration.mail.submission.port),
                helo: configuration.hostname),
            templates: try configuration.mail.templates.map { try NoticeTemplates(folder: $0) } ?? .standard())
    }

    /// What makes the addresses that answers come to. Throws `ConfigurationError`.
    package static func tokens(_ installation: Installation) throws -> TokenMint {
        guard let keys = TokenKeys(installation.keys.token) else {
            throw ConfigurationError(
                .invalidValue, at: installation.configuration.keyFilePath,
                "the token keys cannot be used; restore the key file from a backup")
        }
        return TokenMint(keys: keys)
    }
}

extension Configuration.VerificationSettings {
    /// As the store counts them.
    package var limits: NoticeLimits {
        NoticeLimits(
            lifetime: Int64(hours) * 3600, tries: tries, perInbox: perInbox, perUser: perUser, perInstallation: perInstallation)
    }
}
