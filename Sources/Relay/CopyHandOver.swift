// Hands fan-out copies of a message to an internal smtpd of the same Postfix, in the name of their
// original client.

import Logging
import Mail
import PosternConfiguration
import RelayCore
import RelayMilter

/// Opens connections to the smtpd that `setup postfix` configured for copies.
struct CopyHandOver: CopyCarrier {
    private let submission: SMTPSubmission
    private let peers: MilterPeers
    private let logger: Logger

    /// Nil if fan-out is not configured.
    init?(_ configuration: Configuration, logger: Logger) {
        guard let smtpd = configuration.fanOut else { return nil }
        peers = MilterPeers(configuration.milter.peers)
        self.logger = logger
        // Postfix waits for its filter (milter_content_timeout, 300 s). The filter reports progress
        // with each copy.
        submission = SMTPSubmission(
            host: smtpd.host, port: UInt16(clamping: smtpd.port), helo: configuration.hostname,
            timeout: 20, dataTimeout: 120)
    }

    func open(for client: CopyClient, login: @escaping () -> String) -> (any CopySession)? {
        let hasName =
            client.hostName != "unknown" && !client.hostName.hasPrefix("[")
            && !client.hostName.isEmpty
        let connection = try? ClientSubmission(
            submission,
            client: .init(
                address: client.address, name: hasName ? client.hostName : nil, helo: client.helo),
            terms: .init(login: login, objection: objection))
        return connection.map(Session.init)
    }

    /// If Postfix does not listen there, any user of this machine could, and would receive the
    /// mail.
    private func objection(to descriptor: Int32) -> String? {
        guard let objection = peers.objection(to: descriptor) else { return nil }
        logger.error(
            "copies are not submitted to fan_out_smtpd: \(objection)",
            metadata: ["address": "\(submission.host):\(submission.port)"])
        return objection
    }

    private final class Session: CopySession {
        private let connection: ClientSubmission
        private var stuffed: [UInt8]?

        init(_ connection: ClientSubmission) { self.connection = connection }

        func hand(
            over original: FanOutOriginal, parameters: [String], to paths: [String]
        ) -> CopyOutcome {
            let content =
                stuffed
                ?? ClientSubmission.stuffed(
                    original.header.serialized + [0x0D, 0x0A] + original.body)
            stuffed = content
            do throws(SubmissionFailure) {
                switch try connection.send(
                    from: original.sender, parameters: parameters, to: paths, stuffed: content)
                {
                case .taken(let queueID): return .taken(queueID: queueID)
                case .refused(let code, let enhanced, let text):
                    // The reference of the copy's own transaction is removed.
                    let end =
                        text.hasSuffix("]")
                        ? text.lastIndex(of: "[") ?? text.endIndex : text.endIndex
                    return .refused(
                        SMTPReply(
                            code: code, enhanced: enhanced, text: String(text[..<end].trimmed)))
                }
            } catch {
                return .failed(error.description)
            }
        }

        func close() { connection.quit() }
    }
}

extension Substring {
    /// Without spaces at the end.
    fileprivate var trimmed: Substring {
        var text = self
        while text.last == " " { text = text.dropLast() }
        return text
    }
}
