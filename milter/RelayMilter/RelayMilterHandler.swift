// The relay as a milter: receives events of the SMTP dialogue, returns replies and modifications.
// Makes no decisions itself.

import InternetMessage
import Logging
import MailAuth
import Milter
import PosternMetrics
import RelayCore

/// Serves every connection of Postfix with one engine, which can be replaced while
/// connections are open.
package final class RelayMilterHandler: MilterHandler {
    /// Returns the engine for the next transaction, so a reload of the configuration takes effect
    /// there.
    let engine: @Sendable () -> RelayEngine
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    let logger: Logger
    let metrics: ServiceMetrics
    let refused: @Sendable (RefusedForward) -> Void
    let forwarded: @Sendable (ForwardAttribution) -> Void
    let carrier: @Sendable () -> (any CopyCarrier)?
    let histograms: MilterHistograms
    let recent = RecentMessages()
    let usedLogins = UsedCopyLogins()

    /// - Parameters:
    ///   - carrier: hands over copies; nil if a transaction may have only one account.
    ///   - refused: called with each refused forward that has a registered author. Must not block.
    ///   - forwarded: called with each message that is forwarded. Must not block.
    package init(
        engine: @escaping @Sendable () -> RelayEngine, now: @escaping @Sendable () -> Int64,
        logger: Logger,
        metrics: ServiceMetrics = ServiceMetrics(version: ""),
        carrier: @escaping @Sendable () -> (any CopyCarrier)? = { nil },
        refused: @escaping @Sendable (RefusedForward) -> Void = { _ in },
        forwarded: @escaping @Sendable (ForwardAttribution) -> Void = { _ in }
    ) {
        self.engine = engine
        self.now = now
        self.logger = logger
        self.metrics = metrics
        self.carrier = carrier
        histograms = MilterHistograms(metrics)
        self.refused = refused
        self.forwarded = forwarded
    }

    /// Only RCPT is answered before the end of data, as every other answer would cost a round trip.
    package var needs: MilterNeeds {
        MilterNeeds(
            events: [.helo, .mail, .recipient, .header, .endOfHeaders, .body],
            answers: [.recipient],
            actions: [
                .addHeaders, .changeHeaders, .changeBody, .changeFrom, .addRecipient,
                .deleteRecipient,
            ],
            macros: [
                .connect: ["{daemon_name}"], .helo: [], .mail: [],
                .recipient: ["i", "{auth_authen}"], .data: [],
                .endOfHeaders: ["i"], .endOfMessage: ["i"],
            ])
    }

    package func makeSession(connection: MilterConnection) -> any MilterSession {
        RelayMilterSession(connection: connection, handler: self)
    }
}

/// How long Postfix waits for each answer. The histograms are looked up only once.
struct MilterHistograms: Sendable {
    let recipient, header, body, message: Histogram

    init(_ metrics: ServiceMetrics) {
        recipient = metrics.milterSeconds("rcpt")
        header = metrics.milterSeconds("header")
        body = metrics.milterSeconds("body")
        message = metrics.milterSeconds("message")
    }
}
