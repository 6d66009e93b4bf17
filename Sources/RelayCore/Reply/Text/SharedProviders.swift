// Mailbox providers with a domain that reveals nothing about a person.

package enum SharedProviders {
    /// Domains at which anyone can have a mailbox. Any other inbox domain counts as the user's own.
    private static let domains: Set<String> = [
        "gmail.com", "googlemail.com", "outlook.com", "outlook.de", "outlook.fr", "outlook.es",
        "outlook.it", "outlook.jp",
        "hotmail.com",
        "hotmail.co.uk", "hotmail.de", "hotmail.fr", "hotmail.it", "hotmail.es", "live.com",
        "live.de", "live.fr", "live.nl",
        "live.co.uk",
        "live.it", "msn.com", "passport.com", "yahoo.com", "yahoo.de", "yahoo.fr", "yahoo.it",
        "yahoo.es", "yahoo.co.uk",
        "yahoo.co.jp",
        "yahoo.co.in", "yahoo.in", "yahoo.com.br", "yahoo.ca", "ymail.com", "rocketmail.com",
        "icloud.com", "me.com", "mac.com",
        "private.icloud.com",
        "aol.com",
        "aim.com", "gmx.de", "gmx.net", "gmx.com", "gmx.at", "gmx.ch", "web.de", "t-online.de",
        "freenet.de", "arcor.de",
        "1und1.de",
        "mail.de", "posteo.de", "mailbox.org", "mail.com", "email.com", "mail.ru", "bk.ru",
        "inbox.ru", "list.ru", "yandex.ru",
        "yandex.com",
        "ya.ru", "rambler.ru", "proton.me", "protonmail.com", "protonmail.ch", "pm.me",
        "tutanota.com", "tutanota.de", "tuta.io",
        "tuta.com",
        "fastmail.com", "fastmail.fm", "zoho.com", "zohomail.com", "hey.com", "hushmail.com",
        "runbox.com", "disroot.org",
        "riseup.net",
        "qq.com", "foxmail.com", "163.com", "126.com", "yeah.net", "sina.com", "sohu.com",
        "139.com", "naver.com", "daum.net",
        "hanmail.net",
        "kakao.com", "docomo.ne.jp", "ezweb.ne.jp", "softbank.ne.jp", "nifty.com", "orange.fr",
        "wanadoo.fr", "free.fr",
        "laposte.net",
        "sfr.fr", "bbox.fr", "neuf.fr", "libero.it", "virgilio.it", "tiscali.it", "alice.it",
        "tin.it", "seznam.cz", "centrum.cz",
        "wp.pl",
        "o2.pl", "onet.pl", "interia.pl", "bluewin.ch", "hispeed.ch", "a1.net", "aon.at",
        "chello.at", "telenet.be", "skynet.be",
        "ziggo.nl", "kpnmail.nl", "xs4all.nl", "home.nl", "planet.nl", "telia.com", "online.no",
        "comcast.net", "verizon.net",
        "att.net",
        "sbcglobal.net", "bellsouth.net", "cox.net", "charter.net", "earthlink.net",
        "optonline.net", "juno.com",
        "btinternet.com", "sky.com",
        "virginmedia.com", "ntlworld.com", "talktalk.net", "blueyonder.co.uk", "bigpond.com",
        "optusnet.com.au", "rogers.com",
        "shaw.ca",
        "sympatico.ca", "telus.net", "rediffmail.com", "uol.com.br", "bol.com.br", "terra.com.br",
        "ig.com.br", "walla.co.il",
    ]

    /// - Parameter domain: lower case.
    package static func contains(_ domain: String) -> Bool { domains.contains(domain) }

    /// Whether a host is at or below such a domain, like a provider's mail servers.
    package static func isBelow(_ host: String) -> Bool {
        var rest = Substring(host)
        while true {
            if domains.contains(String(rest)) || rest == "google.com" || rest == "smtpclient.apple"
            {
                return true
            }
            guard let dot = rest.firstIndex(of: ".") else { return false }
            rest = rest[rest.index(after: dot)...]
        }
    }
}
