// Two hosts of one installation, each with its own Postfix, and mail over both.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

/// Two hosts of one installation, with team juice and user anna.
struct Hosts: Sendable {
    let first: RelayFixture
    let second: RelayFixture
    let address: String
    var all: [RelayFixture] { [first, second] }

    init(_ url: String, settings: [String: String] = [:]) throws {
        var options = RelayFixtures.options { options in
            options.database = url
            options.settings = settings.merging(["hostname": "mx1.relay.example"]) { $1 }
        }
        (first, address) = try RelayFixtures.anna(options)
        options.joins = first
        options.settings["hostname"] = "mx2.relay.example"
        second = try RelayFixture(options)
    }

    func stop() { all.forEach { $0.stop() } }

    /// Replaces the keys on the first host, while an operator copies its key file after each
    /// change. Returns the command's output.
    func rotateKeys() throws -> String {
        let rotated = Watched<String?>(nil)
        let first = first
        Thread.detachNewThread {
            let output = Result { try first.run(["keys", "file", "rotate", "--wait", "100"]) }
            rotated.with { $0 = (try? output.get()) ?? "\(output)" }
        }
        try wait("the rotation ends", atMost: 2 * standardTimeout) {
            try second.copyKeys(from: first)
            return rotated.with { $0 != nil }
        }
        try second.copyKeys(from: first)
        return rotated.with { $0 } ?? ""
    }

    /// Messages that arrived at any host.
    var arrived: [SinkMessage] { all.flatMap(\.sink.messages) }
}

/// Mail over both hosts, from a sender that keeps each message until it is accepted.
final class Traffic: Sendable {
    let taken = Watched(0)
    /// Attempts after which a message had to be sent again.
    let deferred = Watched(0)
    /// While it is false, senders wait a little before they try again.
    let isWell = Watched(true)
    /// Folders of hosts that were lost completely.
    let lost = Watched<Set<String>>([])
    /// Messages, by their ids, that may have been accepted: the connection was lost after the final
    /// dot, before an answer came.
    private let unanswered = Watched<[String: Int]>([:])
    /// Why attempts failed and how often, by the folder of the host.
    private let reasons = Watched<[String: [String: Int]]>([:])
    private let hosts: Hosts
    private let sender: String

    init(_ hosts: Hosts, sender: String = "bounce@juice.example") {
        self.hosts = hosts
        self.sender = sender
    }

    /// Returns when one of the hosts has accepted the message. The next attempt goes to the other
    /// host, as with two MX records.
    func send(_ id: String, first: Int) {
        let text = RelayFixtures.message(to: hosts.address, id: id)
        guard deliver(id, from: sender, to: hosts.address, text, first: first) else { return }
        taken.with { $0 += 1 }
    }

    /// The same for any message. Returns whether it was accepted.
    func deliver(
        _ id: String, from sender: String, to recipient: String, _ message: String, first: Int
    ) -> Bool {
        let text = Array(message.replacingOccurrences(of: "\n", with: "\r\n").utf8)
        for attempt in 0..<6000 {
            let host = hosts.all[(first + attempt) % 2]
            if self.attempt(host, id, from: sender, to: recipient, text) { return true }
            deferred.with { $0 += 1 }
            _ = isWell.wait(seconds: 0.1) { $0 ? true : nil }
        }
        Issue.record("message \(id) was never taken")
        return false
    }

    /// The reasons for the message of a failed test.
    func refusals(of fixture: RelayFixture) -> [String: Int] {
        reasons.with { $0[fixture.folder] ?? [:] }
    }

    private func attempt(
        _ fixture: RelayFixture, _ id: String, from sender: String, to recipient: String,
        _ text: [UInt8]
    ) -> Bool {
        func fail(_ reason: String) -> Bool {
            reasons.with { $0[fixture.folder, default: [:]][reason, default: 0] += 1 }
            return false
        }
        let client: SMTPClient
        do { client = try fixture.postfix.connect() } catch { return fail("\(error)") }
        defer { client.close() }
        func isPositive(_ reply: SMTPServerReply) -> Bool {
            if reply.code / 100 == 5 { Issue.record("a 5xx: \(reply)") }
            return reply.code / 100 == 2 || reply.code == 354
        }
        for line in [
            "EHLO client.test", "MAIL FROM:<\(sender)>", "RCPT TO:<\(recipient)>", "DATA",
        ] {
            guard let reply = try? client.command(line) else {
                return fail("lost after \(line.prefix(4))")
            }
            guard isPositive(reply) else { return fail("\(line.prefix(4)): \(reply)") }
        }
        guard (try? client.send(SMTPClient.stuffed(text))) != nil, let reply = try? client.reply()
        else {
            unanswered.with { $0[id, default: 0] += 1 }
            return fail("lost after the final dot")
        }
        return isPositive(reply) || fail("final dot: \(reply)")
    }

    /// Nothing lost, nothing doubled, nothing unrewritten.
    /// - Parameter replies: the correspondent whose mail is left out.
    func check(expected: Int, replies: String? = nil) {
        let arrived = hosts.all.flatMap { fixture in
            fixture.sink.messages.map { (host: fixture.folder, message: $0) }
        }.filter { replies == nil || $0.message.recipients != ["<\(replies ?? "")>"] }
        let byID = Dictionary(grouping: arrived) { $0.message.value("Message-ID") ?? "" }
        #expect(byID.count == expected, "\(byID.count) different messages arrived, of \(expected)")
        let (lost, unanswered) = (lost.with { $0 }, unanswered.with { $0 })
        for (id, copies) in byID {
            // A lost host may have accepted a message without an answer (RFC 5321, 4.2.5 and 6.1),
            // so the sender must send it again. It is then accepted again, under another queue id,
            // but not more often.
            let queued = Dictionary(grouping: copies) { Self.queueID($0.message) }
            let more = unanswered[String(id.dropFirst().dropLast())] ?? 0
            #expect(queued.count <= 1 + more, "\(id) was taken \(queued.count) times")
            // Postfix may also not know of a delivery that was accepted in the moment before the
            // loss.
            for copies in queued.values where copies.count > 1 {
                #expect(
                    copies.count == 2 && copies.allSatisfy { lost.contains($0.host) },
                    "\(id) was delivered \(copies.count) times"
                )
            }
        }
        for (_, message) in arrived {
            #expect(message.recipients == ["<anna@home.example>"])
            #expect(message.address("From").hasSuffix("@relay.example"))
            #expect(message.mailFrom.hasSuffix("@relay.example>"))
            #expect(message.value("DKIM-Signature")?.contains("d=relay.example") == true)
        }
    }

    var summary: String {
        let arrived = hosts.arrived
        let ids = Set(arrived.compactMap { $0.value("Message-ID") })
        return
            "\(ids.count) messages arrived rewritten, \(arrived.count - ids.count) of them twice after a loss of the host in the moment of "
            + "an answer (\(unanswered.with { $0.values.reduce(0, +) }) attempts had none); \(deferred.with { $0 }) attempts deferred"
    }

    /// The queue id that the host gave the message when it accepted it: in the topmost Received
    /// field.
    private static func queueID(_ message: SinkMessage) -> String {
        let received = message.value("Received") ?? ""
        return received.components(separatedBy: " id ").dropFirst().first.map {
            String($0.prefix { $0.isLetter || $0.isNumber })
        }
            ?? ""
    }
}
