// Mail through all hosts, as Postfix passes it to their milters, for users who sign up over HTTP,
// until their limits are reached.

import Accounts
import Foundation
import InternetMessage
import MilterTesting
import PostfixHarness
import Testing

/// Sends forwards to one user, and the user's replies, until both daily limits are reached; then
/// continues with the next user.
final class ChaosMail: Sendable {
    /// `limits.messages_per_day` for tests that must reach it soon; a sixteenth of it is three.
    static let low = 48
    /// The number of further messages that must be refused before a limit counts as reached.
    private static let tries = 8

    private struct Account {
        let user: String
        let address: String
        /// The number of kills before the user existed, and until the user's limits were reached.
        let killsBefore: Int
        var killsAfter: Int
        /// The correspondent's address, after the first forward.
        var reverse: String?
        var taken: [Direction: Int] = [:]
        var limited: [Direction: Int] = [:]

        var inbox: String { "\(user)@home.example" }
        var isFull: Bool {
            Direction.allCases.allSatisfy { limited[$0, default: 0] >= ChaosMail.tries }
        }
    }

    enum Direction: CaseIterable { case forward, reply }

    private struct State {
        var accounts: [Account] = []
        /// The name of a user whose sign-up has begun.
        var begun: String?
        var isSigningUp = false
        var answers: [String: Int] = [:]
    }

    private let hosts: EventHosts
    private let serving: ServingHosts
    private let key: String
    private let limit: Int
    private let state = Watched(State())

    /// - Parameter limit: `limits.messages_per_day` of the hosts.
    init(_ hosts: EventHosts, _ serving: ServingHosts, limit: Int) throws {
        self.limit = limit
        self.hosts = hosts
        self.serving = serving
        key = try hosts.key("--operator", "--scope", "users:read,users:write")
    }

    /// The number of accepted messages.
    var taken: Int { state.with { $0.accounts.reduce(0) { $0 + $1.taken.values.reduce(0, +) } } }
    func wasTaken(_ direction: Direction) -> Bool {
        state.with { $0.accounts.contains { $0.taken[direction, default: 0] > 0 } }
    }
    /// Users whose limits were reached in both directions.
    var full: Int { state.with { $0.accounts.filter(\.isFull).count } }
    /// The number of answers with this beginning: `451`, `lost`.
    func answers(_ beginning: String) -> Int {
        state.with { $0.answers.filter { $0.key.hasPrefix(beginning) }.values.reduce(0, +) }
    }

    /// Sends a message, or signs up a further user if no user can accept one.
    func send(_ round: Int) {
        let number = state.with { state -> Int? in
            guard let last = state.accounts.indices.last, !state.accounts[last].isFull else {
                return nil
            }
            return last
        }
        guard let number else { return signUp(round) }
        let account = state.with { $0.accounts[number] }
        let direction: Direction =
            round.isMultiple(of: 2) && account.reverse != nil ? .reply : .forward
        let id =
            "<\(round).\(UInt32.random(in: 0 ... .max))@\(direction == .reply ? "home" : "juice").example>"
        guard let path = serving.sockets.randomElement(),
            let client = MilterClient(path: path, timeout: 20)
        else {
            note("away")
            usleep(20_000)
            return
        }
        let result: FilteredMessage
        switch (direction, account.reverse) {
        case (.reply, let reverse?):
            result = client.send(
                from: account.inbox, to: [reverse],
                fields: [
                    ("From", "Someone <\(account.inbox)>"), ("To", reverse),
                    ("Subject", "Re: News"), ("Message-ID", id),
                ],
                body: "It is \(account.inbox) who writes.\r\n", queueID: "4c\(round)")
        default:
            result = client.send(
                from: "bounce@juice.example", to: [account.address],
                fields: [
                    ("From", "News <news@juice.example>"), ("To", account.address),
                    ("Subject", "News"), ("Message-ID", id),
                ],
                body: "Hello\r\n", queueID: "4c\(round)")
        }
        note(result, direction, number)
    }

    private func note(_ result: FilteredMessage, _ direction: Direction, _ number: Int) {
        let kills = serving.kills
        switch result.answer {
        case .taken:
            let account = state.with { state in
                state.accounts[number].taken[direction, default: 0] += 1
                state.accounts[number].killsAfter = kills
                return state.accounts[number]
            }
            guard let message = result.delivered else {
                Issue.record("taken, and nothing to deliver")
                return
            }
            let fault =
                direction == .reply
                ? Self.faultOfReply(message, account) : Self.faultOfForward(message, account)
            if let fault { Issue.record("a \(direction) was taken and \(fault)") }
            if direction == .forward, account.reverse == nil,
                let reverse = Self.address(message.values("From").first)
            {
                state.with { $0.accounts[number].reverse = reverse }
            }
            note("\(direction) taken")
        case .refused(let text) where text.hasPrefix("452 4.7.1"):
            state.with { $0.accounts[number].limited[direction, default: 0] += 1 }
            note("452")
        case .refused(let text) where text.hasPrefix("4"): note(String(text.prefix(3)))
        case .refused(let text):
            Issue.record("a \(direction) was refused permanently: \(text.prefix(60))")
        case .discarded: Issue.record("a \(direction) was taken and dropped")
        case .lost: note("lost")
        }
    }

    private func note(_ answer: String) { state.with { $0.answers[answer, default: 0] += 1 } }

    /// The fault of a forward that Postfix would deliver; nil if there is none. Names no address.
    private static func faultOfForward(_ message: MessageState, _ account: Account) -> String? {
        if message.recipients != ["<\(account.inbox)>"] { return "goes elsewhere" }
        if !message.mailFrom.hasSuffix("@relay.example>") { return "its bounces go elsewhere" }
        if address(message.values("From").first)?.hasSuffix("@relay.example") != true {
            return "its author is not rewritten"
        }
        return signatureFault(message)
    }

    private static func faultOfReply(_ message: MessageState, _ account: Account) -> String? {
        if message.recipients != ["<news@juice.example>"] { return "goes elsewhere" }
        if address(message.values("From").first) != account.address {
            return "its author is not rewritten"
        }
        if String(decoding: message.message, as: UTF8.self).contains("home.example")
            || message.mailFrom.contains("home.example")
        {
            return "it shows the inbox"
        }
        return signatureFault(message)
    }

    private static func signatureFault(_ message: MessageState) -> String? {
        message.values("DKIM-Signature").contains { $0.contains("d=relay.example") }
            ? nil : "it is not signed"
    }

    private static func address(_ field: String?) -> String? {
        field.flatMap {
            $0.split(separator: "<").last?.split(separator: ">").first.map(String.init)
        }
    }

    // MARK: Sign-ups

    /// Signs up a user and requests a relay address. After a failure it tries again under the same
    /// name.
    private func signUp(_ round: Int) {
        let begun = state.with { state -> (user: String, isNew: Bool)? in
            guard !state.isSigningUp, state.accounts.last?.isFull != false else { return nil }
            state.isSigningUp = true
            let user = state.begun ?? "m\(state.accounts.count)"
            defer { state.begun = user }
            return (user, state.begun == nil)
        }
        guard let (user, isNew) = begun else {
            usleep(20_000)
            return
        }
        let kills = serving.kills
        let address = try? signUp(user, isNew: isNew, port: serving.ports.randomElement() ?? 0)
        state.with { state in
            state.isSigningUp = false
            guard let address else { return }
            state.begun = nil
            state.accounts.append(
                Account(user: user, address: address, killsBefore: kills, killsAfter: kills))
        }
        if address == nil {
            note("sign-up failed")
            usleep(50_000)
        }
    }

    private func signUp(_ user: String, isNew: Bool, port: UInt16) throws -> String? {
        func post(_ path: String, _ body: String) throws -> (status: Int, body: String) {
            try HTTPClient.post(port: port, path: path, bearer: key, body: body, timeout: 12)
        }
        let made = try post(
            "/v1/users", #"{"user":"\#(user)","inbox":"\#(user)@home.example","is_verified":true}"#)
        // If a request got no answer, its result is not known.
        guard made.status == 201 || (made.status == 409 && !isNew) else { return nil }
        let issued = try post(
            "/v1/users/\(user)/addresses", #"{"team":"juice","client_id":"com.juice"}"#)
        guard issued.status == 200 || issued.status == 201 else { return nil }
        return issued.body.components(separatedBy: "\"address\":\"").dropFirst().first?.components(
            separatedBy: "\""
        ).first
    }

    // MARK: Afterwards

    /// Every user who received an address has it, with the right inbox. No user got more mail than
    /// the limits and the amount by which hosts may be ahead of each other.
    func check(hosts count: Int, from begun: Date, to end: Date) throws {
        let accounts = state.with { $0.accounts }
        #expect(accounts.contains { $0.taken[.forward, default: 0] > 0 }, "no forward was taken")
        #expect(accounts.contains { $0.taken[.reply, default: 0] > 0 }, "no reply was taken")
        // Around midnight, a clock that is off by an hour counts for another day.
        let days =
            Int(end.timeIntervalSince1970 + 3_700) / 86_400 - Int(
                begun.timeIntervalSince1970 - 3_700) / 86_400 + 1
        for account in accounts {
            // Counts that a killed host had not written are lost.
            let ahead = (count - 1 + account.killsAfter - account.killsBefore) * (limit / 16)
            for (direction, taken) in account.taken {
                #expect(
                    taken <= days * (limit + ahead), "\(account.user): \(taken) times \(direction)")
            }
            let addresses = try hosts.store.addresses.addresses(team: "juice", user: account.user)
            #expect(addresses.map(\.address.wireForm) == [account.address])
            let inbox = try hosts.store.inboxes.inboxes(user: account.user).first?.address.revealed
                .wireForm
            #expect(
                (inbox == account.inbox) == true, "the inbox of \(account.user) is not what it was")
        }
    }

    var summary: String {
        let state = state.with { $0 }
        let answers = state.answers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            .joined(separator: ", ")
        let full = state.accounts.filter(\.isFull)
        let most = full.map { $0.taken.values.max() ?? 0 }.max() ?? 0
        return
            "\(state.accounts.count) users with mail (\(answers); \(full.count) at both limits, at most \(most) of \(limit))"
    }
}
