// The relay addresses of a transaction and their teams, for the log. Never an inbox or a
// correspondent.

import InternetMessage

/// Relay addresses and teams, each once.
package struct LogSubjects: Sendable, Hashable {
    package private(set) var addresses: [String] = []
    package private(set) var teams: [String] = []
    /// Numbers of accounts.
    package private(set) var accounts: [String] = []

    /// Maximum accounts. A message to more accounts can be found by the first ones.
    private static let limit = 20

    mutating func add(_ account: RelayAccount) {
        add(account.relayAddress)
        Self.add("\(account.number.rawValue)", to: &accounts)
        if let team = account.team { Self.add(team, to: &teams) }
    }

    mutating func add(_ address: AddrSpec) {
        Self.add("\(address.localPart)@\(address.domain)", to: &addresses)
    }

    private static func add(_ text: String, to list: inout [String]) {
        guard list.count < limit, !list.contains(where: { $0.utf8.elementsEqual(text.utf8) }) else {
            return
        }
        list.append(text)
    }
}

extension RelayTransaction {
    /// The accounts of the accepted recipients, as far as they are known without a look-up.
    package var subjects: LogSubjects {
        var subjects = LogSubjects()
        for part in recipients.all {
            switch part.scope {
            case .forward(let account): subjects.add(account)
            case .reply(_, _, let beside): beside.forEach { subjects.add($0) }
            case .empty, .elsewhere, .operatorMail, .returnPath, .answer: break
            }
        }
        return subjects
    }

    /// The accounts of a message that passes, also if it came for a reverse address or a return
    /// path.
    package var passedSubjects: LogSubjects {
        let subjects = subjects
        return subjects.accounts.isEmpty ? self.subjects(ofRefused: nil) : subjects
    }

    /// The accounts of a refused message, including those of its reverse addresses and return
    /// paths.
    /// - Parameter path: a recipient that was refused at RCPT.
    package func subjects(ofRefused path: String?) -> LogSubjects {
        var subjects = subjects
        if let path,
            case .relayAddress(let localPart, let domain) = RecipientReading.read(
                path, settings: engine.settings, tokens: engine.tokens)
        {
            subjects.add(AddrSpec(localPart: localPart, domain: domain))
        }
        for part in recipients.all {
            let number: AccountNumber
            switch part.scope {
            case .reply(let account, _, _): number = account
            case .returnPath(let token): number = token.account
            case .empty, .elsewhere, .operatorMail, .forward, .answer: continue
            }
            // If the store fails, the line contains less.
            if let account = try? engine.directory.account(number) { subjects.add(account) }
        }
        return subjects
    }
}
