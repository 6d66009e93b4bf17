// The relay as a milter: events of the SMTP dialogue in, replies and modifications out. Decides nothing itself.

import Logging
import MailAuth
import Milter
import RelayCore

/// Serves every connection of Postfix with one engine, which can be exchanged while connections are open.
package final class RelayMilterHandler: MilterHandler {
    /// Gives the engine for the next transaction; a reload of the configuration takes effect there.
    private let engine: @Sendable () -> RelayEngine
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64
    private let logger: Logger

    package init(engine: @escaping @Sendable () -> RelayEngine, now: @escaping @Sendable () -> Int64, logger: Logger) {
        self.engine = engine
        self.now = now
        self.logger = logger
    }

    /// Only RCPT and the end of the header section are answered before the end of data: each other answer would cost a round trip.
    package var needs: MilterNeeds {
        MilterNeeds(
            events: [.helo, .mail, .recipient, .header, .endOfHeaders, .body], answers: [.recipient, .endOfHeaders],
            actions: [.addHeaders, .changeHeaders, .changeBody, .changeFrom, .addRecipient, .deleteRecipient],
            macros: [.connect: ["{daemon_name}"], .helo: [], .mail: [], .recipient: ["i"], .data: [], .endOfHeaders: ["i"], .endOfMessage: ["i"]])
    }

    package func makeSession(connection: MilterConnection) -> any MilterSession {
        RelayMilterSession(connection: connection, engine: engine, now: now, logger: logger)
    }
}
