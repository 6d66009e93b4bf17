// Makes the mailer of an installation, which sends Postern's own mail.

import Accounts
import Foundation
import InternetMessage
import Languages
import Mail
import PosternConfiguration
import RelayCore

package enum MailerFactory {
    /// - Parameter signer: nil makes one that uses the present keys.
    /// - Throws: `TemplateError`, `ConfigurationError`, and the errors of the store.
    package static func mailer(
        _ installation: Installation, signer: (any MessageSigner)? = nil
    ) throws -> InboxMailer {
        let configuration = installation.configuration
        return InboxMailer(
            settings: settings(configuration),
            store: installation.store, tokens: try tokens(installation),
            signer: try signer ?? RelaySigner(keys: installation.store.dkimKeys),
            submission: SMTPSubmission(
                host: configuration.mail.submission.host,
                port: UInt16(clamping: configuration.mail.submission.port),
                helo: configuration.hostname, security: try security(installation),
                credentials: try credentials(installation)),
            templates: try templates(configuration, at: installation.resolved.path))
    }

    /// The message for users who reply to a verification message of an inbox.
    /// - Throws: `TemplateError`, `ConfigurationError`.
    static func replyNotice(_ installation: Installation) throws -> ReplyNotice {
        ReplyNotice(
            settings: settings(installation.configuration),
            templates: try templates(installation.configuration, at: installation.resolved.path),
            tokens: try tokens(installation))
    }

    private static func settings(_ configuration: Configuration) -> MailerSettings {
        MailerSettings(
            from: configuration.mail.from, service: configuration.serviceName,
            relayDomain: configuration.mail.from.domain,
            publicURL: configuration.publicURL, limits: configuration.verification.limits,
            // Without the operator's address, nothing reaches it.
            complaints: configuration.operatorAddress.map { _ in
                AddrSpec(localPart: "abuse", domain: configuration.mail.from.domain)
            })
    }

    /// The texts of mail, in the languages of the installation.
    /// - Parameter place: the configuration file, for errors.
    package static func templates(
        _ configuration: Configuration, at place: String
    ) throws -> NoticeTemplates {
        let languages: Languages
        do throws(CatalogueError) {
            languages =
                if let folder = configuration.provider.languagesPath {
                    try Languages(folder: folder)
                } else { try .builtIn() }
        } catch {
            throw ConfigurationError(.invalidValue, at: place, "sign_in.languages: \(error)")
        }
        return try configuration.mail.templates.map { try NoticeTemplates(folder: $0, languages) }
            ?? .standard(languages)
    }

    private static func security(_ installation: Installation) throws -> SubmissionSecurity {
        let mail = installation.configuration.mail
        guard mail.security != .none else { return .none }
        do {
            let context = try SubmissionSecurity.context(rootsPath: mail.rootsPath)
            return mail.security == .starttls ? .startTLS(context) : .implicit(context)
        } catch {
            throw ConfigurationError(
                .invalidValue, at: installation.resolved.path,
                "mail.trusted_certificates: no certificates (PEM) found")
        }
    }

    /// The password is in a file, so that neither the configuration nor the process list shows it.
    private static func credentials(_ installation: Installation) throws -> SubmissionCredentials? {
        guard let (user, path) = installation.configuration.mail.credentials else { return nil }
        let password = try SecretFile.text(
            path, for: "mail.submission_password_file", at: installation.resolved.path)
        return SubmissionCredentials(user: user, password: password)
    }

    /// Makes the token mint for the addresses that receive answers. Each call uses the current
    /// keys, as they may be replaced while the service runs. Throws `ConfigurationError`.
    package static func tokens(_ installation: Installation) throws -> @Sendable () -> TokenMint {
        let holder = installation.store.keys
        guard let keys = TokenKeys(holder.current.token) else {
            throw ConfigurationError(
                .invalidValue, at: installation.configuration.keyFilePath,
                "the token keys cannot be used; restore the key file from a backup")
        }
        // Rotation never makes keys that cannot be used. If it did, the first keys would be used.
        return { TokenMint(keys: TokenKeys(holder.current.token) ?? keys) }
    }
}

extension Configuration.VerificationSettings {
    /// In the form that the store uses.
    package var limits: NoticeLimits {
        NoticeLimits(
            lifetime: Int64(hours) * 3600, tries: tries, perInbox: perInbox, perUser: perUser,
            perInstallation: perInstallation,
            toStrangers: toStrangers)
    }
}
