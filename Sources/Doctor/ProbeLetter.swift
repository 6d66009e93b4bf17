// The test messages of the doctor, and the functions that recognize them.

import Foundation
import InternetMessage
import Mail
import Relay
import RelayCore
import Support

/// The two messages of a probe.
struct ProbeLetter {
    let identity: ProbeIdentity
    let nonce: String
    /// Seconds since 1970.
    let now: Int64

    var helo: String { Self.helo(nonce) }

    /// The HELO name of the probe user's machine: no outgoing message may contain it.
    static func helo(_ nonce: String) -> String { "laptop-\(nonce).\(ProbeIdentity.userDomain)" }

    /// A reply as a user's mail program writes it, with the user's own address in every place where
    /// programs write it.
    func reply(to reverse: AddrSpec) -> [UInt8] {
        message(
            [
                "Received: from \(helo) ([192.0.2.77]) by smtp.\(ProbeIdentity.userDomain) with ESMTPSA for <\(reverse.wireForm)>; \(date)",
                "From: \(identity.author.wireForm)", "To: Team <\(reverse.wireForm)>",
                "Subject: Re: postern doctor \(nonce)",
                "Message-ID: <reply.\(nonce)@\(helo)>", "X-Originating-IP: [192.0.2.77]",
                "Reply-To: \(identity.author.wireForm)",
            ],
            """
            This is postern doctor looking at its own relay. (ä, 8 bits, \(String(repeating: "long line ", count: 120)))

            On Friday \(reverse.wireForm) wrote to \(identity.author.wireForm):
            > test \(nonce)
            """)
    }

    /// A team's message to a relay address. The inbox behind that address refuses it.
    func forward(to relay: AddrSpec) -> [UInt8] {
        message(
            [
                "From: Team <\(identity.team.wireForm)>", "To: <\(relay.wireForm)>",
                "Subject: postern doctor \(nonce)",
                "Message-ID: <forward.\(nonce)@\(identity.domain)>",
            ], "This is postern doctor looking at its own relay.")
    }

    /// Whether this is the reply, after the relay rewrote it.
    func isReply(_ message: CapturedMessage) -> Bool {
        Self.contains(message.data, "Re: postern doctor \(nonce)")
    }

    /// Whether this is the bounce of the forward, rebuilt by the relay or as Postfix writes it.
    func isReport(_ message: CapturedMessage) -> Bool {
        !isReply(message) && Self.contains(message.data, nonce) && message.mail.hasPrefix("<>")
    }

    /// Whether this is the forward itself, still with its original recipient: then no milter
    /// rewrote it.
    func isForward(_ message: CapturedMessage, to relay: AddrSpec) -> Bool {
        Self.contains(message.data, "forward.\(nonce)@")
            && message.recipients.contains {
                CaptureServer.address($0).lowercased() == relay.wireForm.lowercased()
            }
    }

    private var date: String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss Z"
        return formatter.string(from: Date(timeIntervalSince1970: Double(now)))
    }

    private func message(_ fields: [String], _ body: String) -> [UInt8] {
        let head = [
            "Date: \(date)", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
            "Content-Transfer-Encoding: 8bit",
            String(decoding: identity.proof(now: now).bytes, as: UTF8.self),
        ]
        let lines =
            fields + head + [""]
            + body.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return Array((lines.joined(separator: "\r\n") + "\r\n").utf8)
    }

    /// Whether the octets contain a text, compared case-insensitively.
    static func contains(_ octets: [UInt8], _ text: String) -> Bool {
        let lower = octets.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        return Data(lower).range(of: Data(text.lowercased().utf8)) != nil
    }
}

/// Decides whether the captured mail reveals the user.
struct ProbeJudgement {
    let identity: ProbeIdentity
    let reverse: AddrSpec
    let relay: AddrSpec
    let helo: String

    static let offersDSN = Check.broken(
        .probeDSN,
        "Postfix offers DSN to senders: a delivery notice would reveal the inbox to the next server and to the sender",
        remedy: "set smtpd_discard_ehlo_keywords = dsn, silent-discard: \(.applySettings) does")

    /// - Parameter place: HOST:PORT.
    static func unreachable(_ place: String, _ why: String) -> Check {
        .broken(
            .probe, "no reply and no bounce was sent: mail is not accepted at \(place): \(why)",
            remedy: "start Postfix; if it accepts mail elsewhere, set mail.submission or use --smtp"
        )
    }

    func reply(_ result: ProbeResult) -> Check {
        let name = CheckKind.probeReply
        guard case .arrived(let message) = result else { return missing(result, name, "reply") }
        guard !isPast(message, [reverse.wireForm]) else { return unfiltered(name, "reply") }
        let told: [(String, String)] = [
            (identity.author.wireForm, "the user's address"),
            (helo, "the name of the user's machine"),
            (ProbeIdentity.userDomain, "the user's domain"),
            ("192.0.2.77", "the IP address of the user's machine"),
            (String(reverse.localPart), "the address that the user wrote to"),
        ]
        let leaks = Self.leaks(told, in: message) + clientOfPostfix(message)
        guard leaks.isEmpty else {
            return .broken(
                name,
                "a reply that was sent through Postfix left with \(leaks.joined(separator: ", ")) in it",
                remedy:
                    "run \(.showSettings), which shows what is missing; the header check (smtp_header_checks) hides the machine"
            )
        }
        return .ok(
            name,
            "a reply that was sent through Postfix and the milter left without the user's address or machine in it"
        )
    }

    func bounce(_ result: ProbeResult) -> Check {
        let name = CheckKind.probeBounce
        guard case .arrived(let message) = result else { return missing(result, name, "bounce") }
        guard !isPast(message, [relay.wireForm]) else { return unfiltered(name, "forward") }
        // A return path that is still in the message was not rewritten: the report bypassed the
        // milter.
        let isOurs = message.recipients.allSatisfy {
            CaptureServer.address($0).lowercased() == identity.team.wireForm.lowercased()
        }
        let leaks = Self.leaks(
            [
                (identity.inbox.wireForm, "the inbox"),
                (identity.inbox.localPart, "the inbox's local part"),
            ], in: message)
        guard isOurs, leaks.isEmpty else {
            return .broken(
                name,
                isOurs
                    ? "a bounce that Postfix wrote left with \(leaks.joined(separator: ", ")) in it"
                    : "a bounce that Postfix wrote bypassed the milter, with the inbox in it",
                remedy:
                    "set internal_mail_filter_classes = bounce and non_smtpd_milters: \(.applySettings) does"
            )
        }
        return .ok(
            name,
            "a bounce that Postfix wrote was rebuilt by the milter and left without the inbox in it"
        )
    }

    private static func leaks(_ told: [(String, String)], in message: CapturedMessage) -> [String] {
        let envelope = Array(([message.mail] + message.recipients).joined(separator: "\n").utf8)
        var found: [String] = []
        for (text, what) in told where !found.contains(what) {
            if ProbeLetter.contains(message.data, text) {
                found.append(what)
            } else if ProbeLetter.contains(envelope, text) {
                found.append("\(what) (in the envelope)")
            }
        }
        return found
    }

    /// Postfix's own Received field names the client that submitted the message, unless the
    /// header check reduces it.
    private func clientOfPostfix(_ message: CapturedMessage) -> [String] {
        let header =
            String(decoding: message.data, as: UTF8.self).components(separatedBy: "\r\n\r\n").first
            ?? ""
        return header.replacingOccurrences(of: "\r\n\t", with: " ").replacingOccurrences(
            of: "\r\n ", with: " "
        )
        .components(separatedBy: "\r\n").contains { $0.lowercased().hasPrefix("received: from ") }
            ? ["a Received field with the client"] : []
    }

    private func isPast(_ message: CapturedMessage, _ addresses: [String]) -> Bool {
        message.recipients.contains { recipient in
            addresses.contains { CaptureServer.address(recipient).lowercased() == $0.lowercased() }
        }
    }

    private func unfiltered(_ name: CheckKind, _ what: String) -> Check {
        .broken(
            name,
            "a \(what) that was sent through Postfix passed no milter: it was sent on unchanged",
            remedy: "set smtpd_milters for every smtpd that accepts mail: \(.applySettings) does")
    }

    private func missing(_ result: ProbeResult, _ name: CheckKind, _ what: String) -> Check {
        switch result {
        case .arrived: .ok(name, "")
        case .unreachable(let why):
            .broken(name, "doctor's \(what) could not be sent: \(why)", remedy: "start Postfix")
        case .notTaken(let why):
            .broken(
                name, "doctor's \(what) was not accepted: \(why)",
                remedy:
                    "search the logs of Postfix and postern serve for \"postern-doctor\"; Postfix's log names a milter or policy service "
                    + "that does not answer, and a restriction that refuses; a serve with another key file or of an older version does not know it"
            )
        case .neverCame:
            .broken(
                name, "doctor's \(what) was accepted but did not leave Postfix in time",
                remedy:
                    "check the queue with postqueue -p, and Postfix's log; --patience allows more time"
            )
        }
    }
}
