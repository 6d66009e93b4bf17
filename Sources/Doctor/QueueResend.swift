// Sends messages that passed no milter to Postfix again, this time through the milters.

import Accounts
import Database
import InternetMessage
import Mail
import PosternConfiguration
import PostfixSetup
import Relay
import RelayCore

/// Sends waiting messages to Postfix, and deletes from its queue those that it accepted.
package struct QueueResend {
    /// The outcome for a message.
    package enum Outcome: Sendable {
        /// Postfix accepted it for all recipients, and the old message is deleted.
        case sent
        /// It stays in the queue: the recipients for which Postfix accepted it, and the reasons for
        /// the others.
        case kept(accepted: [String], [(recipient: String, reason: String)])
    }

    private let configuration: Configuration
    private let submission: SMTPSubmission
    private let keys: TokenKeys
    /// The folder of Postfix's configuration.
    private let directory: String
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - host: the host at which Postfix accepts mail with its milters.
    /// - Returns: nil if the token keys cannot be used.
    package init?(
        _ configuration: Configuration, keys: KeyRing, host: String, port: UInt16,
        directory: String,
        now: @escaping @Sendable () -> Int64
    ) {
        guard let keys = TokenKeys(keys.token) else { return nil }
        self.configuration = configuration
        self.keys = keys
        self.directory = directory
        self.now = now
        submission = SMTPSubmission(host: host, port: port, helo: configuration.hostname)
    }

    /// Throws if Postfix's tools fail: then the message is still in the queue.
    package func send(_ message: WaitingMessage) throws -> Outcome {
        // Held in the queue, so that Postfix neither returns nor delivers it in the meantime.
        if !message.isHeld { try PostfixQueue.hold(message, true, directory: directory) }
        var isDeleted = false
        defer {
            if !isDeleted, !message.isHeld {
                try? PostfixQueue.hold(message, false, directory: directory)
            }
        }
        let content = try PostfixQueue.content(of: message, directory: directory)
        let client = try PostfixQueue.client(of: message, directory: directory)
        var accepted: [String] = []
        var refused: [(recipient: String, reason: String)] = []
        for recipient in message.recipients {
            if let reason = refusal(content, from: message.sender, to: recipient, client) {
                refused.append((recipient, reason))
            } else {
                accepted.append(recipient)
            }
        }
        guard refused.isEmpty else { return .kept(accepted: accepted, refused) }
        try PostfixQueue.delete(message, directory: directory)
        isDeleted = true
        return .sent
    }

    /// Whether an address in Postfix's queue is at a relay domain. Compared as octets, because
    /// anyone can have written it.
    package static func isAtRelay(_ address: AddrSpec, _ configuration: Configuration) -> Bool {
        let domain = Array(address.asciiDomain.utf8)
        return configuration.relayDomains.contains { domain.elementsEqual($0.utf8) }
    }

    /// The reason why Postfix does not accept a message for a recipient; nil if it does.
    private func refusal(
        _ content: [UInt8], from sender: String, to recipient: String, _ client: PostfixQueue.Client
    ) -> String? {
        guard let to = AddrSpec(envelope: recipient),
            sender.isEmpty || AddrSpec(envelope: sender) != nil
        else {
            return "the address cannot be read"
        }
        let isAtRelay = Self.isAtRelay(to, configuration)
        do throws(SubmissionFailure) {
            if isAtRelay, let smtpd = configuration.fanOut {
                return try refusal(content, from: sender, to: recipient, client, at: smtpd)
            }
            try submission.send(
                from: AddrSpec(envelope: sender), to: InboxAddress(to), message: content)
            return nil
        } catch {
            return error.description
        }
    }

    /// As `refusal`, from the smtpd for copies. The message has the address of its original client,
    /// so SPF is evaluated for that client.
    private func refusal(
        _ content: [UInt8], from sender: String, to recipient: String,
        _ client: PostfixQueue.Client, at smtpd: ListenAddress
    ) throws(SubmissionFailure) -> String? {
        let peers = MilterPeers(configuration.milter.peers)
        let connection = try ClientSubmission(
            SMTPSubmission(
                host: smtpd.host, port: UInt16(clamping: smtpd.port), helo: configuration.hostname),
            client: .init(address: client.address, name: client.name, helo: client.helo),
            terms: .init(
                login: { [keys, now] in
                    CopyLogin.make(
                        keys: keys, for: client.address,
                        randomness: { count in
                            (0..<count).map { _ in UInt8.random(in: 0...UInt8.max) }
                        }, now: now())
                },
                objection: { peers.objection(to: $0) }))
        defer { connection.quit() }
        let parameters = content.contains { $0 >= 0x80 } ? ["BODY=8BITMIME"] : []
        let outcome = try connection.send(
            from: sender,
            parameters: parameters + (isASCII(sender + recipient) ? [] : ["SMTPUTF8"]),
            to: ["<\(recipient)>"],
            stuffed: ClientSubmission.stuffed(content))
        guard case .refused(let code, let enhanced, let text) = outcome else { return nil }
        return "\(code) \(enhanced) \(text)"
    }

    private func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }
}
