// Reads Postfix's log and finds what became of the messages that Postern forwarded. Pure.

import InternetMessage
import Support

/// Follows queue ids. The return path of a forward names its account, so that nothing has to be
/// stored when the message is forwarded, and any host of the relay can read the log of any other.
/// Messages with the null sender have no return path and are not counted.
///
/// Permanent failures are not read here, because Postfix reports each of them to the return path,
/// where the relay counts it (`Bounce`), together with those that other servers report later.
package struct DeliveryLogReader: Sendable {
    /// What became of a forward.
    package struct Result: Sendable, Hashable {
        package let account: AccountNumber
        package let provider: ProviderFamily
        package let outcome: DeliveryOutcome
    }

    /// A message in the queue.
    private struct Message: Sendable {
        let account: AccountNumber
        /// Outcomes that were already counted. Postfix tries a message up to some hundred times.
        var counted: Set<DeliveryOutcome> = []
    }

    /// Messages of the older and of the newer half. A queue of more than `capacity` messages is
    /// followed only partly.
    package static let capacity = 400_000
    private var older: [[UInt8]: Message] = [:]
    private var newer: [[UInt8]: Message] = [:]

    private var tokens: TokenMint
    private let relayDomains: Set<[UInt8]>

    /// - Parameter relayDomains: lower case; present and former ones.
    package init(tokens: TokenMint, relayDomains: [String]) {
        self.tokens = tokens
        self.relayDomains = Set(relayDomains.map { Array($0.utf8) })
    }

    /// Continues with other keys.
    package mutating func use(_ tokens: TokenMint) { self.tokens = tokens }

    /// Takes the next line. The lines must come in the order of the log; those of several hosts may
    /// be mixed.
    /// - Parameter isCounted: false for lines that were read before: they only tell whose messages
    ///   are in the queue.
    package mutating func read(_ line: ArraySlice<UInt8>, isCounted: Bool = true) -> Result? {
        switch DeliveryLogLine(line) {
        case .active(let id, let sender):
            if find(id) == nil, let account = account(of: sender) {
                keep(Message(account: account), id)
            }
            return nil
        case .removed(let id):
            older[id] = nil
            newer[id] = nil
            return nil
        case .attempt(let attempt):
            guard var message = find(attempt.queueID), attempt.answer.action != .failed,
                message.counted.insert(attempt.answer.outcome).inserted
            else { return nil }
            keep(message, attempt.queueID)
            guard isCounted else { return nil }
            return Result(
                account: message.account,
                provider: attempt.host.map(ProviderFamily.init(host:))
                    ?? ProviderFamily(domain: attempt.recipientDomain),
                outcome: attempt.answer.outcome)
        case nil: return nil
        }
    }

    private func find(_ id: [UInt8]) -> Message? { newer[id] ?? older[id] }

    private mutating func keep(_ message: Message, _ id: [UInt8]) {
        if newer[id] == nil, newer.count >= Self.capacity / 2 {
            (older, newer) = (newer, [:])
        }
        newer[id] = message
    }

    /// The account of a forward's return path; nil for other senders. An expired one counts too, as
    /// the log may be old.
    private func account(of sender: String) -> AccountNumber? {
        guard let address = AddrSpec(envelope: sender),
            relayDomains.contains(address.domain.utf8.map(\.asciiLowercased)),
            case .token(let token) = tokens.read(address.localPart)
        else { return nil }
        switch token.purpose {
        case .forward, .storedForward, .silentForward: return token.account
        case .reverse, .storedReverse, .reply: return nil
        }
    }
}
