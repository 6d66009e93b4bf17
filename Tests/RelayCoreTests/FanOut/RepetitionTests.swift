// A message to several users that its sender repeats, in any way: each user gets it once.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct RepetitionTests {
    /// The sender's own fields, besides the author: an identifier, a date, both, or neither.
    private static let given = [
        "Message-ID: <1@app.example>",
        "Message-ID: <1@app.example>\r\nDate: Sat, 28 Nov 2026 05:00:00 +0000", "",
    ]
    private static let names = [
        "annarelay2", "bobrelay22", "carlarelay", "danarelay2", "evarelay22",
    ]

    /// Two hosts with one store, a sender, and the messages that reach the inboxes.
    private struct World {
        let hosts: [RelayEngine]
        var delivered: [String] = []
        var bounced: [String] = []
        var random: SeededRandom
        let given: String
        private var attempts = 0

        init(on: [Bool], seed: UInt64, given: String = RepetitionTests.given[0]) {
            self.given = given
            random = SeededRandom("\(seed)".utf8)
            let accounts = zip(names, on).enumerated().map { number, account in
                Fixture.account(
                    UInt64(number + 1), account.0, team: "app.example",
                    inboxes: ["\(account.0)@inbox.example"],
                    isForwardingOn: account.1)
            }
            // SPF proves the envelope, or a signature proves the author alone.
            let evidence =
                Bool.random(using: &random)
                ? AuthenticationEvidence.signed("app.example")
                : AuthenticationEvidence(
                    spf: [
                        SPFFinding(
                            result: .pass, identity: .mailFrom, domain: "app.example", reason: "")
                    ])
            let first = Fixture(accounts: accounts, evidence: evidence)
            let second = RelayEngine(
                settings: first.engine.settings, keys: Fixture.keys, directory: first.directory,
                authenticator: TestAuthenticator(evidence: evidence),
                replyMemory: ReplyMemory(limit: 1 << 28),
                randomness: { Array(repeating: 6, count: $0) })!
            hosts = [first.engine, second]
        }

        /// - Returns: the transaction, its decision, and the recipients that were
        ///   refused at RCPT with their codes.
        private mutating func transaction(
            _ paths: [String], canFanOut: Bool
        ) -> (transaction: RelayTransaction, decision: RelayDecision, refused: [String: Int]) {
            let transaction = RelayTransaction(
                engine: hosts.randomElement(using: &random)!,
                client: SMTPClientIdentity(
                    address: "192.0.2.1", helo: "client.example", mailFrom: "bounce@app.example"),
                now: Fixture.now, isCopy: !canFanOut, canFanOut: { canFanOut })
            var refused: [String: Int] = [:]
            for path in paths {
                do throws(Refusal) { try transaction.addRecipient(path) } catch {
                    refused[path] = error.reply.code
                }
            }
            guard refused.count < paths.count else {
                return (transaction, .refuse(.otherScope), refused)
            }
            let parsed = Message.parse(attempt())
            for field in parsed.header.fields { transaction.addHeader(field) }
            do throws(Refusal) {
                try transaction.endHeader()
                try transaction.addBody(parsed.body)
            } catch { return (transaction, .refuse(error), refused) }
            return (transaction, transaction.finish(queueID: "4F\(attempts)QZ"), refused)
        }

        /// The message in this attempt: filters sign and mark it again, and Postfix adds missing
        /// fields.
        private mutating func attempt() -> [UInt8] {
            attempts += 1
            var text =
                "X-Spam-Score: \(attempts)\r\nDKIM-Signature: v=1; t=\(attempts); b=\r\nFrom: billing@app.example\r\n"
            text += given.isEmpty ? "" : given + "\r\n"
            if !given.contains("Message-ID:") {
                text += "Message-Id: <2026112805.4F\(attempts)QZ@relay.example>\r\n"
            }
            if !given.contains("Date:") {
                text += "Date: Sat, 28 Nov 2026 05:00:\(10 + attempts) +0000 (UTC)\r\n"
            }
            return Array((text + "\r\nx\r\n").utf8)
        }

        private func inboxes(_ decision: RelayDecision) -> [String] {
            decision.modifications.compactMap {
                if case .addRecipient(let inbox) = $0 { inbox } else { nil }
            }
        }

        /// - Returns: the recipients for which the sender must try again.
        mutating func send(_ paths: [String], canBeKilled: Bool = true) -> [String] {
            let (first, decision, refused) = transaction(paths, canFanOut: true)
            let accepted = paths.filter { refused[$0] == nil }
            bounced += paths.filter { refused[$0].map { $0 >= 500 } ?? false }
            let later = paths.filter { refused[$0].map { $0 < 500 } ?? false }
            guard !accepted.isEmpty else { return later }
            var answer: Int? =
                if case .refuse(let refusal) = decision.outcome { refusal.reply.code } else { nil }
            for copy in decision.copies {
                // A host may be killed between two copies.
                if canBeKilled, Int.random(in: 0..<12, using: &random) == 0 {
                    return accepted + later
                }
                let (_, copied, _) = transaction(copy.paths, canFanOut: false)
                if case .refuse(let refusal) = copied.outcome {
                    answer = first.refused(copy, refusal.reply).reply.code
                } else {
                    delivered += inboxes(copied)
                    try? first.handedOver(copy)
                }
            }
            switch answer {
            case nil:
                try? first.forgetPassing()
                if decision.outcome == .relay { delivered += inboxes(decision) }
                return later
            case .some(500...):
                first.giveUp()
                bounced += accepted
                return later
            default:
                first.giveUp()
                return accepted + later
            }
        }
    }

    /// All recipients together, each alone, in parts, and changes between these: Exchange repeats
    /// for one recipient after the other.
    @Test(arguments: 0..<UInt64(300))
    func repeated_inAnyParts_reachesEachUserOnce(seed: UInt64) {
        var random = SeededRandom("\(seed)".utf8)
        let on = Self.names.map { _ in Int.random(in: 0..<4, using: &random) > 0 }
        var world = World(
            on: on, seed: seed &* 31, given: Self.given.randomElement(using: &random)!)
        var pending = Self.names.map { "<\($0)@relay.example>" }
        for _ in 0..<60 where !pending.isEmpty {
            var rest = pending.shuffled(using: &random)
            pending = []
            let size = [1, rest.count, Int.random(in: 1...rest.count, using: &random)]
                .randomElement(using: &random)!
            while !rest.isEmpty {
                pending += world.send(Array(rest.prefix(size)))
                rest = Array(rest.dropFirst(size))
            }
        }
        #expect(pending.isEmpty, "the sender gives up")
        let wanted = zip(Self.names, on).filter(\.1).map { "<\($0.0)@inbox.example>" }
        #expect(world.delivered.sorted() == wanted.sorted())
        #expect(
            world.bounced.sorted()
                == zip(Self.names, on).filter { !$0.1 }.map { "<\($0.0)@relay.example>" }.sorted())
    }

    /// Postfix keeps such a recipient without its route, so it must be deleted in that form.
    /// Otherwise it stays in the queue.
    @Test(arguments: ["<@a.test:", "<@a.test,@b.test:", "<@[IPv6:2001:db8::1]:"])
    func recipient_withASourceRoute_isDeletedAsPostfixKeepsIt(_ route: String) throws {
        let engine = Fixture(accounts: [Fixture.anna], evidence: .signed("app.example")).engine
        let transaction = RelayTransaction(
            engine: engine,
            client: SMTPClientIdentity(address: "192.0.2.1", helo: "x", mailFrom: "b@app.example"),
            now: Fixture.now, canFanOut: { true })
        try transaction.addRecipient("\(route)annarelay2@relay.example>")
        let parsed = Message.parse(Array("From: billing@app.example\r\n\r\nx\r\n".utf8))
        for field in parsed.header.fields { transaction.addHeader(field) }
        try transaction.endHeader()
        try transaction.addBody(parsed.body)
        let decision = transaction.finish()
        #expect(decision.outcome == .relay)
        #expect(
            decision.modifications.contains(.deleteRecipient("<annarelay2@relay.example>")),
            "\(decision.modifications)")
    }

    /// A script sends the same words many times without a Message-ID: each is a separate message.
    @Test func sameWords_withoutIdentifier_arriveEachTime() {
        var world = World(on: Self.names.map { _ in true }, seed: 1, given: "")
        let paths = Self.names.map { "<\($0)@relay.example>" }
        for _ in 0..<3 { #expect(world.send(paths, canBeKilled: false) == []) }
        #expect(world.delivered.count == 3 * paths.count)
    }

    @Test func sameIdentifier_afterItWasAccepted_reachesNoOneAgain() {
        var world = World(on: Self.names.map { _ in true }, seed: 1)
        let paths = Self.names.map { "<\($0)@relay.example>" }
        for _ in 0..<3 { #expect(world.send(paths, canBeKilled: false) == []) }
        // Nothing is recorded for the message that is relayed in place.
        #expect(world.delivered.count == 3 + paths.count - 1)
    }

    /// A sender that timed out repeats the message while its copies are still handed over.
    @Test func sameMessage_whileItsCopiesAreHandedOver_waits() throws {
        let accounts = Self.names.enumerated().map { number, name in
            Fixture.account(
                UInt64(number + 1), name, team: "app.example", inboxes: ["\(name)@inbox.example"])
        }
        let engine = Fixture(accounts: accounts, evidence: .signed("app.example")).engine
        func transaction(_ names: [String] = Self.names) throws -> (RelayTransaction, RelayDecision)
        {
            let transaction = RelayTransaction(
                engine: engine,
                client: SMTPClientIdentity(
                    address: "192.0.2.1", helo: "x", mailFrom: "b@app.example"),
                now: Fixture.now, canFanOut: { true })
            for name in names { try transaction.addRecipient("<\(name)@relay.example>") }
            let parsed = Message.parse(
                Array("From: billing@app.example\r\nMessage-ID: <1@app.example>\r\n\r\nx\r\n".utf8))
            for field in parsed.header.fields { transaction.addHeader(field) }
            try transaction.endHeader()
            try transaction.addBody(parsed.body)
            return (transaction, transaction.finish())
        }
        func isWaiting(_ decision: RelayDecision) -> Bool {
            if case .refuse(let refusal) = decision.outcome {
                refusal.reply.code == 451
            } else {
                false
            }
        }
        let (first, decision) = try transaction()
        let copies = decision.copies
        try first.beginHandOver(copies)
        // Together, and each alone, including the one that is relayed in place.
        #expect(isWaiting(try transaction().1))
        for name in Self.names { #expect(isWaiting(try transaction([name]).1), "\(name)") }
        for copy in copies { try first.handedOver(copy) }
        #expect(isWaiting(try transaction().1))
        first.end()
        let (last, again) = try transaction()
        let rest = again.copies
        last.end()
        #expect(copies.count == 4 && rest.isEmpty)
    }
}
