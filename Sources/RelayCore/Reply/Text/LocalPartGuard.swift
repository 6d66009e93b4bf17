// When a local part that stands alone, without its domain, gives the inbox away.

/// How the bare local part of an inbox is looked for. Below six octets it never is: too many words would be hit.
package enum LocalPartGuard: Sendable, Hashable {
    /// Not looked for: short, or a word like *support* that says nothing of a person.
    case none
    /// Letters that read like a name: hidden as a whole word, but left where it is written as a name is, `Martina`.
    case name
    /// Hidden as a whole word in any letter case.
    case word
    /// Made by chance or by a program: hidden wherever the characters occur, also inside longer ones.
    case anywhere

    /// Octets from which on a bare local part is looked for.
    package static let minimumLength = 6

    /// Local parts of functions (RFC 2142 and common usage), which are ordinary words in a message.
    private static let roles: Set<String> = [
        "account", "accounts", "address", "admin", "administrator", "answers", "automatic", "billing", "booking", "bookings",
        "bounce",
        "bounces", "business", "buero", "careers", "company", "contact", "contacts", "customer", "delivery", "donotreply",
        "download",
        "einkauf", "enquiries", "events", "example", "family", "familie", "feedback", "finance", "forward", "general",
        "hostmaster",
        "inquiries", "invoice", "invoices", "kontakt", "mailbox", "mailer-daemon", "mailman", "management", "marketing", "master",
        "member",
        "members", "message", "messages", "newsletter", "no-reply", "nobody", "noreply", "notification", "notifications",
        "office", "orders",
        "person", "personal", "postmaster", "praxis", "private", "reader", "reception", "recipient", "register", "registration",
        "report",
        "reports", "reservation", "return", "returns", "sekretariat", "sender", "service", "services", "shipping", "single",
        "status",
        "student", "support", "system", "teacher", "tester", "testing", "tickets", "updates", "usenet", "username", "verkauf",
        "vertrieb",
        "webmaster", "welcome",
    ]

    /// - Parameter local: lower case.
    package init(_ local: [UInt8]) {
        guard local.count >= Self.minimumLength, !Self.roles.contains(String(decoding: local, as: UTF8.self)) else {
            self = .none
            return
        }
        let letters = local.filter(\.isASCIILetterOctet).count
        let digits = local.filter { (0x30...0x39).contains($0) }.count
        if letters == local.count {
            self = Self.isPronounceable(local) ? .name : (local.count >= 8 ? .anywhere : .word)
        } else {
            self = letters >= 3 && digits >= 2 && local.count >= 8 ? .anywhere : .word
        }
    }

    /// Whether letters alternate as they do in names: no more than four consonants and no more than three vowels in a row.
    private static func isPronounceable(_ letters: [UInt8]) -> Bool {
        var consonants = 0
        var vowels = 0
        var total = 0
        for letter in letters {
            if "aeiouy".utf8.contains(letter) {
                vowels += 1
                consonants = 0
                total += 1
            } else {
                consonants += 1
                vowels = 0
            }
            if consonants > 4 || vowels > 3 { return false }
        }
        return total * 5 >= letters.count && !letters.contains(where: { $0 == UInt8(ascii: "q") })
            || letters.starts(with: "jacqu".utf8)
    }
}

extension UInt8 {
    /// a–z, A–Z.
    fileprivate var isASCIILetterOctet: Bool { (self | 0x20) >= 0x61 && (self | 0x20) <= 0x7A }
}
