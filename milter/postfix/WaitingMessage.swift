// Messages in Postfix's queue for addresses at a relay domain. They passed no milter, and wait.
// postsuper -r, which puts a message back into the queue, skips all milters (postsuper(1)).

import Foundation

/// A message of the queue.
package struct WaitingMessage: Sendable, Hashable {
    /// The queue id.
    package let id: String
    /// As named by Postfix; empty for the null sender.
    package let sender: String
    /// The recipients that have not got it yet.
    package let recipients: [String]
    /// Seconds since 1970; nil if Postfix does not report it.
    package let arrivedAt: Int64?
    /// Whether it is on hold.
    package let isHeld: Bool
}

extension PostfixQueue {
    /// The messages that `parked` counts, the oldest first.
    package static func waiting(at domains: [String], directory: String) throws -> [WaitingMessage]
    {
        try entries(at: domains, directory: directory).map { entry in
            let sender = entry.sender ?? ""
            return WaitingMessage(
                id: entry.queue_id, sender: sender.uppercased() == "MAILER-DAEMON" ? "" : sender,
                recipients: entry.recipients.map(\.address), arrivedAt: entry.arrival_time,
                isHeld: entry.queue_name == "hold")
        }.sorted { ($0.arrivedAt ?? 0, $0.id) < ($1.arrivedAt ?? 0, $1.id) }
    }

    /// Header section and body of a message, with lines ended by CRLF. Only root can read it.
    package static func content(of message: WaitingMessage, directory: String) throws -> [UInt8] {
        let octets = try PostfixTool.octets("postcat", ["-c", directory, "-qbh", message.id])
        var content: [UInt8] = []
        content.reserveCapacity(octets.count + octets.count / 32)
        for octet in octets {
            if octet == UInt8(ascii: "\n"), content.last != UInt8(ascii: "\r") {
                content.append(UInt8(ascii: "\r"))
            }
            content.append(octet)
        }
        return content
    }

    /// The origin of a message, as its smtpd recorded it.
    package struct Client: Sendable, Hashable {
        /// Nil if the message came from no client.
        package let address: String?
        /// Nil if the name is not known.
        package let name: String?
        package let helo: String
    }

    /// The client of a message. Only root can read it.
    package static func client(of message: WaitingMessage, directory: String) throws -> Client {
        let lines = try PostfixTool.run("postcat", ["-c", directory, "-qe", message.id]).split(
            separator: "\n")
        func attribute(_ name: String) -> String? {
            let start = "named_attribute: \(name)="
            let value = lines.last { $0.utf8.starts(with: start.utf8) }.map {
                String(decoding: $0.utf8.dropFirst(start.utf8.count), as: UTF8.self)
            }
            return value == "unknown" ? nil : value
        }
        return Client(
            address: attribute("client_address"), name: attribute("client_name"),
            helo: attribute("helo_name") ?? "")
    }

    /// Puts a message on hold, or releases it.
    package static func hold(_ message: WaitingMessage, _ isHeld: Bool, directory: String) throws {
        try PostfixTool.run("postsuper", ["-c", directory, isHeld ? "-h" : "-H", message.id])
    }

    /// Deletes a message.
    package static func delete(_ message: WaitingMessage, directory: String) throws {
        try PostfixTool.run("postsuper", ["-c", directory, "-d", message.id])
    }
}
