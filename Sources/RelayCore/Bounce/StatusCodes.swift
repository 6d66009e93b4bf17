// Finds status codes in servers' texts, and converts their words to codes.

enum StatusCodes {
    /// The status of a recipient: the code in the report, made precise by the remote server's text.
    static func status(
        stated: EnhancedStatus?, action: DeliveryAction, diagnostic: String
    ) -> EnhancedStatus {
        if let stated, !stated.isVague { return stated }
        let level = stated?.level ?? level(of: action, diagnostic)
        if let said = enhanced(in: diagnostic), said.level == level, !said.isVague { return said }
        return stated ?? enhanced(in: diagnostic) ?? EnhancedStatus(level, 0, 0) ?? .unknown
    }

    /// The status that the text next to it means. A vague status is made precise. The result is
    /// 5.7.1 if a server says that the mailbox does not exist but means that it refuses the sender.
    static func understood(_ status: EnhancedStatus, diagnostic: String) -> EnhancedStatus {
        if status.level == 5, StatusPhrases.refuseSender(in: diagnostic),
            status.saysNoMailbox || status.isVague
        {
            return EnhancedStatus(5, 7, 1) ?? status
        }
        // Exchange Online uses this for a recipient that is not in its directory.
        if status.level == 5, status.subject == 4, status.detail == 1,
            StatusPhrases.status(in: diagnostic)?.saysNoMailbox == true
        {
            return EnhancedStatus(5, 1, 1) ?? status
        }
        guard status.isVague, let read = StatusPhrases.status(in: diagnostic) else { return status }
        return EnhancedStatus(status.level, read.subject, read.detail) ?? status
    }

    private static func level(of action: DeliveryAction, _ diagnostic: String) -> Int {
        switch action {
        case .delayed: 4
        case .delivered, .relayed, .expanded: 2
        case .failed:
            enhanced(in: diagnostic)?.level ?? replyCode(in: diagnostic).map { $0 / 100 }
                ?? StatusPhrases.status(in: diagnostic)?
                .level ?? 5
        }
    }

    /// The first `X.Y.Z` of class 2, 4 or 5 that is not part of an IP address or version number.
    static func enhanced(in text: String) -> EnhancedStatus? {
        let octets = Array(text.utf8.prefix(8_000))
        var index = 0
        while index < octets.count {
            guard octets[index] == 0x32 || octets[index] == 0x34 || octets[index] == 0x35,
                index == 0 || !continues(octets[index - 1]),
                index + 4 < octets.count, octets[index + 1] == 0x2E
            else {
                index += 1
                continue
            }
            var at = index + 2
            let subject = number(octets, &at)
            if let subject, at < octets.count, octets[at] == 0x2E {
                at += 1
                if let detail = number(octets, &at),
                    at >= octets.count || !continues(octets[at])
                        || (octets[at] == 0x2E
                            && (at + 1 >= octets.count || !octets[at + 1].isASCIIDigit)),
                    let status = EnhancedStatus(Int(octets[index]) - 0x30, subject, detail)
                {
                    return status
                }
            }
            index += 1
        }
        return nil
    }

    /// The first SMTP reply code of 4xx or 5xx that is a separate word.
    static func replyCode(in text: String) -> Int? {
        let octets = Array(text.utf8.prefix(8_000))
        guard octets.count >= 3 else { return nil }
        for index in 0...(octets.count - 3) {
            guard octets[index] == 0x34 || octets[index] == 0x35, octets[index + 1].isASCIIDigit,
                octets[index + 1] <= 0x37,
                octets[index + 2].isASCIIDigit,
                index == 0 || " \t\r\n:;(<\"'#-[".utf8.contains(octets[index - 1]),
                index + 3 >= octets.count || " \t\r\n-:;,)>\"'_]#".utf8.contains(octets[index + 3])
            else { continue }
            return Int(octets[index] - 0x30) * 100 + Int(octets[index + 1] - 0x30) * 10
                + Int(octets[index + 2] - 0x30)
        }
        return nil
    }

    /// The meaning of RFC 5321 reply codes that have no enhanced code next to them (similar to RFC
    /// 5248).
    static func status(ofReply code: Int) -> EnhancedStatus? {
        let level = code / 100
        switch code % 100 {
        case 50 where level == 5, 51, 53: return EnhancedStatus(level, 1, 1)
        case 52: return EnhancedStatus(level, 2, 2)
        case 21: return EnhancedStatus(level, 3, 2)
        case 0...4: return EnhancedStatus(level, 5, code % 100 == 0 ? 1 : code % 100)
        default: return EnhancedStatus(level, 0, 0)
        }
    }

    private static func number(_ octets: [UInt8], _ at: inout Int) -> Int? {
        var value = 0
        let start = at
        while at < octets.count, at - start < 3, octets[at].isASCIIDigit {
            value = value * 10 + Int(octets[at] - 0x30)
            at += 1
        }
        return at > start ? value : nil
    }

    private static func continues(_ octet: UInt8) -> Bool { octet.isASCIIDigit || octet == 0x2E }
}

extension EnhancedStatus {
    /// 5.0.0: failed, with no known reason.
    static let unknown = EnhancedStatus(failed: ())

    private init(failed: Void) {
        level = 5
        subject = 0
        detail = 0
    }
}
