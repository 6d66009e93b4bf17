// Phrases with which servers explain a failure, from the manuals and practice of the programs named
// in the tests.

enum StatusPhrases {
    /// Phrases in lower case. The first match counts, so more specific phrases come first.
    private static let table: [(status: EnhancedStatus, phrases: [String])] = [
        (
            status(5, 2, 1),
            [
                "account is disabled", "account has been disabled", "mailbox disabled",
                "mailbox is disabled", "account disabled",
                "account that you tried to reach is disabled",
                "mailbox is inactive", "account inactive", "account is inactive",
                "user is inactive", "inactive user",
                "account has been suspended",
                "user suspended", "mailbox unavailable or access denied", "is no longer in use",
                "account expired",
                "this account is not allowed",
                "account is locked", "mailbox locked", "deactivated", "user has moved",
                "konto ist deaktiviert",
                "compte désactivé", "cuenta desactivada", "账号已停用", "no longer active",
            ]
        ),
        (
            status(4, 2, 2),
            [
                "mailbox full", "mailbox is full", "over quota", "overquota", "quota exceeded",
                "exceeded storage",
                "mailbox exceeded", "out of storage",
                "exceeds its quota", "exceed mailbox quota", "mailfolder is full", "disk quota",
                "mailbox size limit",
                "insufficient disk space", "inbox is full",
                "has exceeded the max", "storage space", "not enough space", "mailbox has exceeded",
                "mailbox quota",
                "user is over the quota", "postfach ist voll", "postfach voll", "speicherplatz",
                "boîte pleine",
                "boîte aux lettres est pleine",
                "boite pleine", "buzón lleno", "buzón está lleno", "caixa cheia",
                "caixa de correio está cheia", "casella piena",
                "casella è piena", "postvak is vol", "postvak vol", "skrzynka pełna",
                "skrzynka jest pełna", "ящик переполнен",
                "переполнен",
                "邮箱已满", "邮箱空间不足", "容量を超え", "용량 초과",
            ]
        ),
        (
            status(5, 1, 2),
            [
                "host unknown", "unknown host", "host not found", "domain not found",
                "name or service not known",
                "domain name not found", "unrouteable mail domain",
                "unrouteable address", "unroutable address", "no such domain",
                "couldn't find any host",
                "host or domain name not found", "bad destination host",
                "domain does not exist", "domain is not found", "unable to route",
                "cannot find your hostname",
                "illegal host/domain name", "no route found to domain",
            ]
        ),
        (
            status(5, 1, 1),
            [
                "user unknown", "unknown user", "no such user", "does not exist", "doesn't exist",
                "user doesn't",
                "no mailbox here", "no such recipient", "recipient unknown",
                "unknown recipient", "recipient not found", "user not found", "address not found",
                "mailbox not found",
                "recipnotfound", "unknown or illegal alias",
                "not listed in", "not a valid mailbox", "invalid recipient", "recipient rejected",
                "address rejected",
                "no such mailbox", "mailbox unavailable",
                "unknown address", "unknown local part", "unknown local-part", "unknown virtual",
                "not known at this",
                "no account by that name", "this user doesn't have",
                "unrecognised-or-name", "unrecognized-or-name", "unrecognised or-name",
                "recipient name is not recognized",
                "is not recognized", "invalid mailbox",
                "bad address", "undeliverable address", "unable to find recipient",
                "not our customer", "addressee unknown",
                "no local mailbox", "unknown account",
                "isn't a valid", "nobody of that name", "user is unknown", "address unknown",
                "bad destination mailbox",
                "invalid address", "no such person",
                "user invalid", "name not found", "there is no user", "no valid recipient",
                "couldn't be found", "wasn't found",
                "could not be found", "not found",
                "no such address", "unbekannt", "keine mailbox", "existiert nicht", "n'existe pas",
                "inconnu", "desconocido", "no existe", "desconhecido", "não existe", "sconosciuto",
                "inesistente", "non esiste",
                "bestaat niet",
                "onbekend", "nieznany", "nie istnieje", "не существует", "не найден", "用户不存在",
                "收件人不存在", "地址不存在", "存在しません",
                "宛先不明",
                "존재하지 않", "does not have an account", "doesn't have an",
                "person is unknown", "were unknown", "was unknown", "all recipients failed",
            ]
        ),
        (
            status(5, 3, 4),
            [
                "message too big", "message too large", "size limit", "exceeds size", "too large",
                "maximum message size",
                "exceeds the maximum", "message size exceeds",
                "message exceeds", "larger than the", "message length exceeds",
            ]
        ),
        (
            status(4, 4, 7),
            [
                "retry timeout exceeded", "retry time not reached", "delivery time expired",
                "message expired",
                "could not be delivered for", "timed out waiting", "time expired",
                "delivery expired", "too long in the queue", "in the queue too long",
                "giving up on", "retry timeout",
                "queue too long", "for more than", "maximum retry",
                "not been able to deliver", "delivery attempts", "expired",
            ]
        ),
        (
            status(4, 4, 1),
            [
                "connection timed out", "connection refused", "no route to host",
                "network is unreachable", "connect to",
                "operation timed out", "could not connect",
                "couldn't connect", "unable to connect", "did not respond", "no answer from host",
                "timed out while",
                "connection reset", "lost connection",
                "conversation with", "unable to contact", "connection dropped", "timed out",
                "timeout",
            ]
        ),
        (
            status(4, 4, 6),
            [
                "too many hops", "mail loop", "loops back", "loop detected", "mail forwarding loop",
                "routing loop", "looping",
            ]
        ),
        (
            status(5, 7, 26),
            ["dmarc", "unauthenticated mail", "spf check failed", "sender policy framework"]
        ),
        (
            status(5, 7, 1),
            [
                "spam", "blocked", "blacklist", "blocklist", "black list", "listed at",
                "listed in dnsbl", "spamhaus", "denied",
                "rejected", "refused", "policy", "relaying",
                "relay not permitted", "prohibited", "not permitted", "not allowed", "unauthorized",
                "not authorized", "virus",
                "content filter", "content reject", "unacceptable",
                "reputation", "access restriction", "banned",
            ]
        ),
        (
            status(4, 7, 1),
            [
                "greylist", "graylist", "try again later", "temporarily deferred",
                "temporarily rejected", "rate limit",
                "too many connections", "too many messages",
            ]
        ),
        (
            status(5, 5, 0),
            [
                "syntax error", "command not recognized", "bad sequence", "command unrecognized",
                "protocol error", "unimplemented",
            ]
        ),
        (
            status(5, 3, 0),
            [
                "local delivery failed", "system error", "mailer error", "internal error",
                "local error", "mail system",
                "i/o error", "command died", "cannot create",
            ]
        ),
    ]

    /// Phrases with which servers refuse a sender, a rate or a message, regardless of the code next
    /// to them. Many servers reply 5.1.1 to a host that they have blocked.
    private static let refusals = [
        "aup#", "spam", "unsolicited", "junk mail", "phishing", "malware", "virus", "blocked",
        "blacklist", "black list",
        "blocklist", "block list", "blocking list", "banned", "dnsbl", "listed at", "listed by",
        "listed in", "reputation",
        "complaint", "suspicious", "too many recipients", "too many messages",
        "too many connections", "too many mails",
        "too many emails", "too many errors", "too many invalid", "too fast", "rate limit",
        "rate-limit", "rate that",
        "sending rate", "sending limit", "hourly limit", "daily limit", "throttl", "greylist",
        "graylist", "sender rejected",
        "sender denied", "sender refused", "sender blocked", "sender address rejected",
        "sender not allowed",
        "sender is not allowed", "unauthorized sender", "not accepted from this ip", "your ip",
        "this ip", "sending ip",
        "ip address", "client host", "your host", "your server", "helo ", "reverse dns", "rdns",
        "ptr record", "dmarc",
        "sender policy framework", "spf", "dkim", "authentication required", "unauthenticated",
        "policy",
        "policies", "message content", "content reject", "content filter", "relaying denied",
        "relay denied",
        "relay access denied", "relaying not", "relay not permitted",
        "frequency limited", "rbl:", "rejected rbl", "uceprotect", "surbl", "spamhaus",
        "access denied",
        "exceeded the maximum number of messages", "messages per hour", "recipient limit",
        "mail volume", "abuse", "administrative prohibition", "mi:ipb", "sender score",
        "reverse lookup", "ptr missing", "dns ptr", "helo/ehlo", "from your network",
        "tls required",
        "bulk mail", "open relay", "ofr_506", "ip-adresse", "adresse ip", "serveur est bloqué",
        "слишком много",
    ]

    /// Whether a server's text refuses the sender's host, its rate, its reputation, or the message,
    /// but not the recipient.
    static func refuseSender(in text: String) -> Bool {
        let text = words(of: text)
        return refusals.contains { OctetSearch.find($0, in: text) != nil }
    }

    /// The text in lower case and without addresses, so that no phrase is found in the inbox
    /// itself.
    static func words(of text: String) -> [UInt8] {
        var text = OctetSearch.lowercased(text, limit: 8_000)
        func isOfAddress(_ octet: UInt8) -> Bool {
            octet >= 0x80 || octet >= UInt8(ascii: "a") && octet <= UInt8(ascii: "z")
                || octet.isASCIIDigit
                || "!#$%&'*+-/=?^_`{|}~".utf8.contains(octet)
        }
        for mark in text.indices where text[mark] == UInt8(ascii: "@") {
            var (start, end) = (mark, mark + 1)
            while start > 0, isOfAddress(text[start - 1]) || text[start - 1] == UInt8(ascii: ".") {
                start -= 1
            }
            // A dot is part of it if more of it follows: "jane@home.example...user unknown".
            while end < text.count,
                isOfAddress(text[end])
                    || text[end] == UInt8(ascii: ".") && end + 1 < text.count
                        && isOfAddress(text[end + 1])
                        && text[end - 1] != UInt8(ascii: ".")
            { end += 1 }
            for index in start..<end { text[index] = UInt8(ascii: "@") }
        }
        return text
    }

    private static func status(_ level: Int, _ subject: Int, _ detail: Int) -> EnhancedStatus {
        EnhancedStatus(level, subject, detail) ?? .unknown
    }

    static func status(in text: String) -> EnhancedStatus? {
        let text = words(of: text)
        return table.first { row in row.phrases.contains { OctetSearch.find($0, in: text) != nil }
        }?.status
    }
}

/// Simple search for words in octets.
enum OctetSearch {
    /// The text's UTF-8 with A–Z in lower case and runs of white space as one
    /// space, at most `limit` octets.
    static func lowercased(_ text: String, limit: Int) -> [UInt8] {
        var output: [UInt8] = []
        for octet in text.utf8.prefix(limit) {
            let isSpace = octet == 0x20 || (octet >= 0x09 && octet <= 0x0D)
            if isSpace, output.last == 0x20 { continue }
            output.append(isSpace ? 0x20 : octet >= 0x41 && octet <= 0x5A ? octet | 0x20 : octet)
        }
        return output
    }

    /// The index of the first occurrence of a word.
    static func find(_ word: String, in text: [UInt8]) -> Int? {
        var word = word
        return word.withUTF8 { word in
            guard let first = word.first, text.count >= word.count else { return nil }
            return text.withUnsafeBufferPointer { text in
                var index = 0
                while index + word.count <= text.count {
                    if text[index] == first,
                        (1..<word.count).allSatisfy({ text[index + $0] == word[$0] })
                    {
                        return index
                    }
                    index += 1
                }
                return nil
            }
        }
    }
}
