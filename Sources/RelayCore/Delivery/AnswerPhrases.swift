// The words with which providers explain why they refuse or defer mail, in the order in which they
// decide.

import Support

/// Phrases of servers' answers, each with its class.
enum AnswerPhrases {
    /// In lower case. The first row with a match decides, so a phrase is above those that may occur
    /// beside it.
    private static let table: [(outcome: DeliveryOutcome, phrases: [String])] = [
        // The receiver's own trouble with a list, which looks like a listing (Spamhaus's return
        // codes 127.255.255.25x); and loops.
        (
            .other,
            [
                "too many hops", "mail loop", "loops back", "loop detected", "forwarding loop",
                "spamhaus.org/returnc", "error: open resolver", "127.255.255.252",
                "127.255.255.254", "127.255.255.255",
            ]
        ),
        // Words that can only blame the sender. Gmail: unsolicited. Microsoft: S3140, S3150, OU-…,
        // SC-…. Yahoo: TSS…, TS…, BL2…. Apple: HM07, HM08. QQ and Mail.ru: spam.
        (
            .reputation,
            [
                "unsolicited", "reputation", "spamhaus", "user complaints", "s3140", "s3150",
                "banned sending ip", "(sc-00", "(ou-00", "[tss", "[ts01]", "[ts02]", "[ts03]",
                "[bl21]", "[bl23]", "[hm07]", "[hm08]", "block list", "blocklist", "blacklist",
                "black list", "blocklisted", "blacklisted", "dnsbl", "rbl ", "barracudacentral",
                "spamcop", "sorbs.net", "abusix", "uceprotect", "invaluement",
                "ipcheck.proofpoint.com", "notspam-support", "suspicion of spam",
                "behaviour spam", "behavior spam", "bulk mail", "junk mail", "ube,",
                "spam message rejected", "spam content", "considered spam", "identified as spam",
                "classified as spam", "spam classification", "spam detected", "spam rejected",
                "spammer", "is spam", "looks like spam", "likely spam", "mail content denied",
                "message content rejected", "ofr_506", "ofr_501", "ofr_999",
            ]
        ),
        // Authentication: cured by records and signatures, not by fewer messages.
        (
            .policy,
            [
                "unauthenticated", "dmarc", "sender policy framework", "spf check", "spf fail",
                "spf policy", "fails spf", "failed spf", "due to spf", "spf authentication",
                "spf or dkim", "spf record", "no spf", "spf validation", "dkim",
                "reverse dns", "rdns", "ptr record", "bad dns ptr", "helo ", "authentication level",
                "authentication required", "must authenticate", "must issue a starttls",
                "starttls", "tls required", "anti-spoofing", "header from", "sender id",
                "envelope blocked", "administrative lockout", "sender address rejected",
                "sender address verification", "domain of sender", "sender domain",
            ]
        ),
        // Too much or too fast.
        (
            .rate,
            [
                "rate limit", "rate-limit", "ratelimit", "rate control", "rate that prevents",
                "receiving mail at a rate", "receiving mail too quickly", "sending rate",
                "message rate", "exceeded the rate", "unusual rate", "throttl", "too many",
                "too fast", "too quickly", "slow down", "frequency limited", "frequency",
                "sending limit", "sending quota", "hourly limit", "daily limit", "daily quota",
                "message limit", "messages per hour", "per hour", "exceeded threshold",
                "unexpected volume", "connection limit", "concurrent", "server busy",
                "recipient limit", "ofr004_104", "ofr005_104", "ofr_102", "ofr_103", "rp-001",
                "rp-002", "rp-003",
            ]
        ),
        (
            .reputation,
            [
                "spam", "complaint", "listed at", "listed by", "listed in", "blocked using",
                "blocked by our", "ip address is blocked", "ip is blocked", "ip blocked",
                "has been blocked", "been blocked", ":blocked)", "is blocked", "sender blocked",
                "banned", "suspicious", "bad sender", "aup#", "phishing",
            ]
        ),
        (.deferred, ["greylist", "graylist", "grey-list"]),
        (
            .full,
            [
                "mailbox full", "mailbox is full", "over quota", "overquota",
                "quota exceeded", "out of storage", "exceeded storage", "exceeds its quota",
                "disk quota", "mailfolder is full", "inbox is full", "storage space",
                "mailbox size limit", "mailbox has exceeded", "exceed mailbox quota",
                "user is over the quota", "boite pleine", "boîte pleine", "pleine", "postfach voll",
                "postfach ist voll", "ofr_417", "mailbox quota", "over the quota", "邮箱已满",
                "переполнен", "容量を超え", "容量超過",
            ]
        ),
        (
            .policy,
            [
                "relaying denied", "relay access denied", "relay denied", "relay not permitted",
                "message too large", "message too big", "size limit", "exceeds size",
                "maximum message size", "message size exceeds", "virus", "malware",
                "attachment", "security polic", "policy violation", "local policy",
                "policy reasons", "policy restriction", "for policy", "content filter",
                "content reject", "rejected by policy", "delivery not authorized",
                "not authorized to send", "blocked attachment",
                "sender denied", "not permitted to", "only accepts mail from", "not allowed to",
                "client host rejected",
                "access denied. for more information see https://aka.ms/exosmtperrors [blocked",
            ]
        ),
        (
            .noSuchUser,
            [
                "nosuchuser", "user unknown", "unknown user", "no such user", "no user found",
                "does not exist", "doesn't exist", "doesn't have a", "does not have an account",
                "no such recipient", "recipientnotfound", "recipnotfound", "recipient not found",
                "user not found", "address not found", "mailbox not found", "unknown recipient",
                "recipient unknown", "invalid recipient", "invalid mailbox", "invalid user",
                "no mailbox here", "no such mailbox", "mailbox unavailable", "mailbox is disabled",
                "mailbox disabled", "account is disabled", "account has been disabled",
                "account disabled", "account that you tried to reach is disabled",
                "is inactive", "user is terminated", "user is inactive", "unknown address",
                "unknown e-mail address", "recipient address rejected", "recipient rejected",
                "address rejected", "bad destination mailbox", "not a valid mailbox",
                "unrouteable address", "unroutable address", "not listed in", "no longer on server",
                "no longer in use", "is not a registered", "undeliverable address",
                "adresse d au moins un destinataire invalide", "ofr204", "ofr_420",
                "host or domain name not found", "domain name not found", "host unknown",
                "unknown host", "domain not found", "nxdomain", "had no relevant answers",
                "null mx", "nullmx",
                "doesn't receive email", "does not accept mail", "unbekannt", "existiert nicht",
                "n'existe pas", "inconnu", "не существует", "не найден", "用户不存在", "存在しません",
                "宛先不明", "err.nosuchuser",
            ]
        ),
        // Waits that say nothing about the sender: greylisting, trouble of the network.
        (
            .deferred,
            [
                "try again later", "try again in",
                "please try later", "temporarily deferred", "temporarily rejected",
                "temporarily unavailable", "temporary failure", "temporary error",
                "connection timed out", "connection refused", "no route to host",
                "network is unreachable", "operation timed out", "lost connection",
                "conversation with", "timed out", "did not accept our requests to connect",
                "temporary lookup failure", "name service error", "retry timeout",
                "delivery time expired", "delivery temporarily suspended",
            ]
        ),
    ]

    /// The class that a server's words mean; nil if they say nothing. No phrase is found in an
    /// address, so that an inbox decides nothing.
    static func outcome(in text: String) -> DeliveryOutcome? {
        let words = flowing(StatusPhrases.words(of: text))
        return table.first { row in
            row.phrases.contains { OctetSearch.find($0, in: words) != nil }
        }?.outcome
    }

    /// The text without the codes that begin each line of a reply: Postfix logs the lines as one,
    /// as in `does 550-5.1.1 not exist`.
    private static func flowing(_ text: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        for word in text.split(separator: 0x20) {
            var rest = word[...]
            if word.count >= 3, word.prefix(3).allSatisfy(\.isASCIIDigit) {
                rest = word.dropFirst(3)
                guard let first = rest.first else { continue }
                if first == UInt8(ascii: "-") { rest = rest.dropFirst() } else { rest = word[...] }
            }
            // `x.x.xx`: people hide the codes of reports that they publish.
            let isCode =
                rest.contains(UInt8(ascii: "."))
                && rest.allSatisfy {
                    $0.isASCIIDigit || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "x")
                }
            guard !rest.isEmpty, !isCode || rest.count > 9 else { continue }
            if !output.isEmpty { output.append(0x20) }
            output += rest
        }
        return output
    }
}
