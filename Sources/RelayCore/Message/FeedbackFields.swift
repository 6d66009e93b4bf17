// Our own fields by which receivers report spam: Feedback-ID (Google's feedback loop), and
// CFBL-Address (RFC 9477).

import InternetMessage
import MailCrypto
import Support

/// The fields of mail that the relay sends. Both are below our DKIM signature, without which
/// receivers ignore them.
package struct FeedbackFields: Sendable {
    package static let identifierName = "Feedback-ID"
    package static let complaintName = "CFBL-Address"

    /// The kind of mail, whose complaints a receiver counts together.
    package enum Purpose: String, Sendable, Hashable, CaseIterable { case forward, reply, notice }

    /// Base32 characters of a tag: 60 bits. Google allows 5 to 15 for the sender.
    private static let tagDigits = 12

    private let key: HMACSHA256

    /// The tags change when another key becomes the active one.
    package init(keys: TokenKeys) { key = keys.activeKey }

    /// `Feedback-ID: TEAM:PURPOSE:PROVIDER:SENDER`, each a keyed tag that means nothing outside.
    /// The same for all mail of a team to a provider, so that it names no user. Receivers count
    /// each tag separately, so no tag is that of two fields.
    /// - Parameters:
    ///   - team: the team's identifier; nil leaves its field empty.
    ///   - provider: the domain of a mailbox provider with many users; nil for any other.
    package func identifier(
        _ purpose: Purpose, team: String?, provider: String? = nil
    ) -> HeaderField {
        let parts: [Part?] = [
            team.map { .team($0, provider: provider) }, .purpose(purpose),
            provider.map { .provider($0) }, .sender,
        ]
        return HeaderField(
            Self.identifierName, parts.map { $0.map(tag(of:)) ?? "" }.joined(separator: ":"))
    }

    /// A part of an identifier.
    package enum Part: Sendable, Hashable {
        /// Mail of a team to a provider: two providers cannot compare the team's tags.
        case team(String, provider: String?)
        case purpose(Purpose)
        /// The domain of a provider.
        case provider(String)
        /// All mail of this relay.
        case sender
    }

    /// The tag of a part, of which receivers show the figures.
    package func tag(of part: Part) -> String {
        switch part {
        case .team(let team, let provider): tag("team", team, provider ?? "")
        case .purpose(let purpose): tag("purpose", purpose.rawValue)
        case .provider(let domain): tag("provider", domain)
        case .sender: tag("sender", "")
        }
    }

    /// `CFBL-Address`: receivers send complaints in the form of RFC 5965 there. Its domain is that
    /// of From and of our signature (RFC 9477 section 3.1).
    package static func complaints(to address: AddrSpec) -> HeaderField {
        // The address of a long domain fills its line.
        HeaderField(
            name: complaintName, rawValue: Array(" \(address.wireForm);\r\n report=arf".utf8))
    }

    private func tag(_ kind: String, _ values: String...) -> String {
        let text = (["postern feedback \(kind) 1"] + values).joined(separator: "\n")
        let code = key.authenticationCode(for: Array(text.utf8))
        return String(decoding: Base32.encode(code).prefix(Self.tagDigits), as: UTF8.self)
    }
}

extension ProviderRules {
    /// The domains that an identifier names, in alphabetical order.
    package var sharedDomains: [String] {
        rules.filter { $0.value.sameAs == nil }.keys.sorted()
    }

    /// The domain of an inbox at a provider that is known to have many users, in its canonical
    /// form; nil for any other domain, which could be one person's.
    func sharedDomain(of inbox: InboxAddress) -> String? {
        let domain = inbox.revealed.folded.domain
        guard let rule = rules[domain] else { return nil }
        return rule.sameAs ?? domain
    }
}
