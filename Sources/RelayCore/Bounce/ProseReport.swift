// Reports for human readers only: qmail, Exim, sendmail, Exchange, Domino, X.400 gateways, and
// large providers.

import InternetMessage

enum ProseReport {
    /// Lines after which the returned message begins, in lower case.
    private static let originals = [
        "--- below this line is a copy of the message", "------ this is a copy of",
        "----- original message follows",
        "----- unsent message follows",
        "this is a copy of the message", "----- message header follows",
        "--- the header of the original", "--- original message",
        "|------------------------- message header follows", "received message follows",
        "--- returned message",
        "----- message body suppressed",
        "original message headers", "----- original message",
        "---------- original message ----------",
        "the original message is attached",
        "------------------------- message header", "------------------------- message text",
        "message text follows",
        "--- undelivered message follows", "copy of your message",
        "headers of the original message",
        "unsent message below", "=== original message", "your original message follows",
        "message headers follow",
        "--- message header",
        "the first 50 lines of the original", "transcript of the original",
    ]

    /// Phrases that only a report on a failed delivery contains.
    private static let failures = [
        "qmail-send program", "mail failed, returning", "failed addresses follow",
        "did not reach the", "could not be delivered",
        "couldn't be delivered", "was not delivered", "not be delivered to",
        "did not reach the following",
        "delivery has failed", "delivery to the following recipient", "delivery failed",
        "delivery failure",
        "delivery status notification", "undeliverable",
        "undelivered", "permanent fatal errors", "transcript of session follows", "returned mail",
        "returned to sender",
        "unable to deliver", "mail delivery failed",
        "mail delivery subsystem", "failed permanently", "message you sent was not",
        "failure notice", "non-delivery",
        "nondeliverable", "non remis", "unzustellbar",
        "nicht zugestellt", "konnte nicht", "wasn't able to deliver",
        "i'm sorry to have to inform you", "not able to deliver",
        "cannot be delivered",
        "following address failed", "following addresses failed", "addresses failed",
        "following recipient",
        "following destination", "could not deliver",
        "non-delivered", "unable to send", "rejected your message", "message not delivered",
        "has not been delivered",
        "wasn't delivered", "was undeliverable",
        "host said:", "server response", "error that the other server returned",
        "mail server permanently rejected",
        "non recapitato", "no se ha podido entregar",
        // German, French, Spanish, Portuguese, Italian, Dutch, Polish,
        // Russian, Chinese, Japanese, Korean
        "nicht zustellbar", "zustellung fehlgeschlagen", "n'a pas pu être", "n'a pas été remis",
        "n'a pas été délivré",
        "échec de la remise",
        "échec de remise", "no se pudo entregar", "no ha sido entregado", "no pudo ser entregado",
        "não pôde ser entregue",
        "não foi entregue",
        "falha na entrega", "non è stato recapitato", "impossibile recapitare", "mancato recapito",
        "non è stato consegnato",
        "kon niet worden bezorgd", "niet worden afgeleverd", "onbestelbaar",
        "nie mogła zostać dostarczona",
        "nie została dostarczona",
        "niedostarczona", "не доставлено", "не может быть доставлено", "не было доставлено",
        "недоставлен", "退信", "无法投递", "投递失败",
        "无法送达",
        "無法遞送", "送信できませんでした", "届けることができません", "배달되지", "전송 실패", "반송",
        "配信", "could not send your message", "not deliverable", "delivery error", "giving up",
        "mailbox full", "user unknown",
    ]

    /// Phrases of a report on a delay.
    private static let delays = [
        "has not yet been delivered", "not been delivered yet", "still trying",
        "will continue to be retried", "will keep trying",
        "warning message only",
        "do not need to resend", "don't need to resend", "delivery delayed", "delayed delivery",
        "delivery is delayed",
        "will retry", "continue trying", "delay reason",
        "has been delayed", "temporarily unable to deliver", "warning: could not send message",
        "message delayed",
        "delivery attempts will continue", "delivery status notification (delay)",
        "noch nicht zugestellt", "verzögert", "n'a pas encore été", "todavía no se ha",
        "ainda não foi entregue",
        "non è stato ancora", "nog niet bezorgd",
        "еще не доставлено", "will be retried", "not yet been delivered", "delivery incomplete",
    ]

    /// The senders of reports.
    private static let reporters = [
        "mailer-daemon", "postmaster", "mail delivery", "maildaemon", "mail-daemon", "mailerdaemon",
        "administrator",
        "microsoft exchange", "bounce", "double-bounce",
        "system attendant", "delivery subsystem", "mdaemon", "mmdf", "virtual-daemon", "nobody@",
        "mailer", "mail system",
    ]

    /// Nil if the message is not a report.
    static func read(header: HeaderSection, prose: String, isReport: Bool) -> DeliveryReport? {
        let subject = header.first("Subject")?.decodedValue.lowercased() ?? ""
        let from = header.first("From")?.decodedValue.lowercased() ?? ""
        let (text, original) = split(prose)
        let words = OctetSearch.lowercased(text, limit: 20_000)
        let title = Array(subject.utf8)
        let isReporter =
            reporters.contains { OctetSearch.find($0, in: Array(from.utf8)) != nil }
            || header.first("X-Failed-Recipients") != nil
        let saysFailure = failures.contains {
            OctetSearch.find($0, in: words) != nil || OctetSearch.find($0, in: title) != nil
        }
        let saysDelay = delays.contains {
            OctetSearch.find($0, in: words) != nil || OctetSearch.find($0, in: title) != nil
        }
        guard
            isReport || (isReporter && (saysFailure || saysDelay))
                || (saysFailure && isTitled(title))
        else { return nil }

        let fields = ReportReader.fields(HeaderSection.parse(Array(original.utf8)[...]).header)
        let diagnostic = diagnostic(in: text)
        let action: DeliveryAction = saysDelay ? .delayed : .failed
        let address = header.first("X-Failed-Recipients")?.unfoldedValue ?? firstAddress(in: text)
        let found = StatusCodes.enhanced(in: diagnostic) ?? StatusCodes.enhanced(in: text)
        let status: EnhancedStatus?
        if let found, !found.isVague {
            status = found
        } else if let read = StatusPhrases.status(in: text) ?? StatusPhrases.status(in: subject) {
            let level =
                action == .delayed
                ? 4
                : StatusCodes.replyCode(in: diagnostic).map { $0 / 100 } ?? found?.level
                    ?? read.level
            status = EnhancedStatus(level, read.subject, read.detail)
        } else {
            status =
                StatusCodes.replyCode(in: diagnostic).flatMap(StatusCodes.status(ofReply:)) ?? found
        }
        guard
            let status = status
                ?? (saysDelay ? EnhancedStatus(4, 0, 0) : saysFailure ? .unknown : nil)
        else {
            return DeliveryReport(kind: .unclear, original: fields)
        }
        let level = action == .delayed ? 4 : status.level == 2 ? 5 : status.level
        let settled = EnhancedStatus(level, status.subject, status.detail) ?? status
        return DeliveryReport(
            kind: .delivery,
            recipients: [
                RecipientReport(
                    address: address, action: action, status: settled, diagnostic: diagnostic)
            ],
            original: fields)
    }

    private static func isTitled(_ subject: [UInt8]) -> Bool {
        [
            "failure notice", "undeliver", "returned mail", "delivery fail", "delivery status",
            "mail delivery",
            "delivery problem", "delivery notification", "nondeliver",
            "non-deliver", "unzustellbar", "could not be delivered", "delivery report",
            "undeliverable", "returned to sender",
            "delayed mail", "warning:", "nicht zustellbar", "zustellung", "non remis", "échec",
            "no entregado", "não entregue",
            "falha na entrega",
            "mancato recapito", "mancata consegna", "onbestelbaar", "niedostarczon", "недоставлен",
            "не доставлен", "退信", "投递失败",
            "配信", "반송",
        ]
        .contains { OctetSearch.find($0, in: subject) != nil }
    }

    /// Whether it is a complaint for human readers, as feedback loops without RFC 5965 send it.
    static func isComplaint(header: HeaderSection, prose: String) -> Bool {
        let words = OctetSearch.lowercased(prose, limit: 4_000)
        let subject = Array((header.first("Subject")?.decodedValue.lowercased() ?? "").utf8)
        if header.first("X-HmXmrOriginalRecipient") != nil
            || OctetSearch.find("complaint about message from", in: subject) != nil
        {
            return true
        }
        return [
            "this is an email abuse report", "this is a spam report", "abuse report for",
            "feedback-type:",
            "this is an spam complaint", "email feedback report for", "abuse complaint",
        ]
        .contains { OctetSearch.find($0, in: words) != nil }
            || OctetSearch.find("email feedback report", in: subject) != nil
    }

    /// The prose without the returned message, and the returned message.
    private static func split(_ prose: String) -> (text: String, original: String) {
        var text: [Substring] = []
        let lines = prose.split(separator: "\n", maxSplits: 4_000, omittingEmptySubsequences: false)
            .map {
                $0.hasSuffix("\r") ? $0.dropLast() : $0
            }
        for (index, line) in lines.enumerated() {
            let lower = Array(line.lowercased().utf8)
            let isMark =
                !lower.isEmpty && originals.contains { OctetSearch.find($0, in: lower) != nil }
            // A message that is returned without a mark begins with its trace fields.
            let isHeader =
                line.hasPrefix("Return-Path: ") || (line.hasPrefix("Received: ") && index > 0)
            guard isMark || isHeader else {
                text.append(line)
                continue
            }
            var rest = lines[(isMark ? index + 1 : index)...]
            while let first = rest.first, first.allSatisfy({ $0 == " " || $0 == "-" || $0 == "\t" })
            { rest.removeFirst() }
            return (text.joined(separator: "\n"), rest.joined(separator: "\r\n"))
        }
        return (text.joined(separator: "\n"), "")
    }

    /// The line with the server's reply, and the two lines after it.
    private static func diagnostic(in text: String) -> String {
        let lines = text.split(whereSeparator: { $0 == "\n" || $0 == "\r\n" }).map {
            $0.drop { $0 == " " || $0 == "\t" }
        }
        let isQuote: (Substring) -> Bool = {
            $0.hasPrefix("<<<") || $0.lowercased().contains("said:")
                || $0.lowercased().contains("the error that")
        }
        let place =
            lines.firstIndex { isQuote($0) && StatusCodes.replyCode(in: String($0)) != nil }
            ?? lines.firstIndex { StatusCodes.enhanced(in: String($0)) != nil }
            ?? lines.firstIndex { StatusCodes.replyCode(in: String($0)) != nil }
            ?? lines.firstIndex { StatusPhrases.status(in: String($0)) != nil }
        guard let place else { return "" }
        return lines[place..<min(place + 3, lines.count)].joined(separator: " ")
    }

    private static func firstAddress(in text: String) -> String {
        for line in text.split(whereSeparator: { $0 == "\n" || $0 == "\r\n" }) {
            for word in line.split(whereSeparator: { " \t<>()[],;:\"'".contains($0) })
            where word.contains("@") && !word.hasPrefix("@") { return String(word) }
        }
        return ""
    }

    /// The text that HTML shows, approximately.
    static func withoutTags(_ html: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var isTag = false
        for octet in html {
            if octet == UInt8(ascii: "<") {
                isTag = true
                output.append(0x20)
            } else if octet == UInt8(ascii: ">") {
                isTag = false
            } else if !isTag {
                output.append(octet)
            }
        }
        return output
    }
}
