// Domains that no team owns: mailbox providers and registries.

/// Domains where anyone can have an address, so that the domain proves nothing about a team.
package enum MailboxProviders {
    /// Large mailbox providers. The list need not be complete: it stops mistakes, while the proof
    /// of the sender stops attacks.
    private static let domains: Set<String> = [
        "126.com", "163.com", "aim.com", "aol.com", "att.net", "bell.net", "bellsouth.net",
        "bigpond.com", "bluewin.ch",
        "btinternet.com", "charter.net", "comcast.net", "cox.net", "daum.net", "duck.com",
        "email.com", "fastmail.com",
        "fastmail.fm", "foxmail.com", "free.fr", "freenet.de", "gmail.com", "gmx.at", "gmx.ch",
        "gmx.com", "gmx.de", "gmx.net",
        "googlemail.com", "hanmail.net", "hey.com", "hotmail.co.uk", "hotmail.com", "hotmail.de",
        "hotmail.es", "hotmail.fr",
        "hotmail.it", "icloud.com", "inbox.ru", "laposte.net", "libero.it", "list.ru", "live.com",
        "live.de", "live.fr",
        "mac.com", "mail.com", "mail.de", "mail.ru", "mailbox.org", "me.com", "mozmail.com",
        "msn.com", "naver.com", "orange.fr",
        "outlook.com", "outlook.de", "outlook.es", "outlook.fr", "pm.me", "posteo.de",
        "privaterelay.appleid.com", "proton.me",
        "protonmail.com", "qq.com", "rambler.ru", "rediffmail.com", "rocketmail.com",
        "sbcglobal.net", "seznam.cz", "sfr.fr",
        "sina.com", "sky.com", "t-online.de", "tuta.com", "tutanota.com", "uol.com.br",
        "verizon.net", "virgilio.it",
        "wanadoo.fr", "web.de", "wp.pl", "yahoo.ca", "yahoo.co.jp", "yahoo.co.uk", "yahoo.com",
        "yahoo.com.br", "yahoo.de",
        "yahoo.es", "yahoo.fr", "yahoo.it", "yandex.com", "yandex.ru", "yeah.net", "ymail.com",
        "zoho.com",
    ]
    /// Second-level labels under which two-letter registries sell names.
    private static let registryLabels: Set<Substring> = [
        "ac", "co", "com", "edu", "gov", "net", "org",
    ]

    /// Whether the domain is a provider's or is below one.
    package static func isProvider(_ domain: HostName) -> Bool {
        let labels = domain.labels
        return labels.indices.contains { domains.contains(labels[$0...].joined(separator: ".")) }
    }

    /// Whether the domain is a top-level one, or of the form `co.uk`.
    package static func isRegistry(_ domain: HostName) -> Bool {
        let labels = domain.labels
        return labels.count < 2
            || (labels.count == 2 && labels[1].count == 2 && registryLabels.contains(labels[0]))
    }
}
