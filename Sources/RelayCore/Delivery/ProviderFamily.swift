// The families of mail providers, recognised by the hosts that accept their mail. Declared here
// once: counters, metrics, limits and commands use these names.

import InternetMessage
import Support

/// A family of mail providers that share their mail servers, and so their opinion of a sender.
/// Never the domain of an inbox: a family has millions of users, or it is `other`.
package enum ProviderFamily: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case google, microsoft, yahoo, apple
    /// GMX, Web.de, mail.com, 1&1.
    case unitedInternet = "united-internet"
    case orange
    /// QQ and Tencent Exmail.
    case tencent
    case mailru = "mail-ru"
    case yandex, proton, fastmail, comcast, zoho
    case telekom = "t-online"
    /// Filters in front of the mail servers of companies.
    case proofpoint, barracuda, mimecast
    /// All others, also unknown ones.
    case other

    package var description: String { rawValue }

    /// Host names of mail exchangers; a host below one belongs to the family. From the providers'
    /// MX records (2026).
    private static let hosts: [(family: ProviderFamily, domains: [String])] = [
        (.google, ["google.com", "googlemail.com", "psmtp.com", "smtp.goog"]),
        (
            .microsoft,
            ["protection.outlook.com", "mail.eo.outlook.com", "mx.microsoft", "hotmail.com"]
        ),
        (.yahoo, ["yahoodns.net", "yahoo.com", "yahoo.co.jp", "aol.com"]),
        (.apple, ["mail.icloud.com", "apple.com"]),
        (
            .unitedInternet,
            ["gmx.net", "web.de", "mail.com", "kundenserver.de", "1and1.com", "ionos.com"]
        ),
        (.orange, ["orange.fr", "wanadoo.com", "wanadoo.fr"]),
        (.tencent, ["qq.com", "foxmail.com"]),
        (.mailru, ["mail.ru"]),
        (.yandex, ["yandex.ru", "yandex.net", "yandex.com"]),
        (.proton, ["protonmail.ch", "proton.me"]),
        (.fastmail, ["messagingengine.com"]),
        (.comcast, ["comcast.net"]),
        (.zoho, ["zoho.com", "zoho.eu", "zoho.in"]),
        (.telekom, ["t-online.de"]),
        (.proofpoint, ["pphosted.com", "ppe-hosted.com", "gpphosted.com"]),
        (.barracuda, ["barracudanetworks.com", "ess.barracuda.com", "barracuda.com"]),
        (.mimecast, ["mimecast.com", "mimecast.co.za", "mimecast-offshore.com"]),
    ]

    /// Large providers' domains of inboxes, used only if the DNS does not answer.
    private static let inboxDomains: [(family: ProviderFamily, domains: [String])] = [
        (.google, ["gmail.com", "googlemail.com"]),
        (
            .microsoft,
            ["outlook.com", "hotmail.com", "live.com", "msn.com", "hotmail.fr", "hotmail.co.uk"]
        ),
        (.yahoo, ["yahoo.com", "yahoo.co.uk", "yahoo.fr", "yahoo.de", "aol.com", "ymail.com"]),
        (.apple, ["icloud.com", "me.com", "mac.com"]),
        (.unitedInternet, ["gmx.de", "gmx.net", "gmx.at", "gmx.ch", "gmx.com", "web.de"]),
        (.orange, ["orange.fr", "wanadoo.fr"]),
        (.tencent, ["qq.com", "foxmail.com"]),
        (.mailru, ["mail.ru", "bk.ru", "inbox.ru", "list.ru"]),
        (.yandex, ["yandex.ru", "yandex.com"]),
        (.proton, ["proton.me", "protonmail.com", "pm.me"]),
        (.comcast, ["comcast.net"]),
        (.telekom, ["t-online.de"]),
    ]

    /// The family of the host that a mail server connected to.
    /// - Parameter host: a host name in any letter case, perhaps with a final dot.
    package init(host: String) { self = Self.find(host, in: Self.hosts) }

    /// The family of a domain of inboxes, without the DNS.
    package init(domain: String) { self = Self.find(domain, in: Self.inboxDomains) }

    private static func find(
        _ name: String, in table: [(family: ProviderFamily, domains: [String])]
    ) -> ProviderFamily {
        guard let name = DomainName.toASCII(name) else { return .other }
        return table.first { row in
            row.domains.contains { DomainName.isEqualOrBelow(name, $0) }
        }?.family ?? .other
    }
}

/// Finds the family that accepts mail for a domain of inboxes. May block; callable from any thread.
package protocol ProviderFinding: Sendable {
    /// - Parameter domain: of an inbox.
    func family(of domain: String) -> ProviderFamily
}

/// Finds families by the domains alone.
package struct KnownProviders: ProviderFinding {
    package init() {}

    package func family(of domain: String) -> ProviderFamily { ProviderFamily(domain: domain) }
}
