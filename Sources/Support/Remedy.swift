// The remedy for a fault: words, and commands among them.

/// A command that fixes a fault, or shows more of it. An argument list, which runs unchanged.
package struct RemedyCommand: Sendable, Hashable {
    /// All commands that `status`, `doctor`, `setup` and `source check` propose.
    package enum Kind: CaseIterable, Sendable, Hashable {
        // The installation.
        case listKeys, diagnose, migrate, closeFile, ownFile, listListeners
        // Postfix.
        case showSettings, applySettings, reloadPostfix, startPostfix, listQueue, sendQueue
        // Keys of the relay domains.
        case generateKey, showRecord, activateKey, retireKey
        // Policies, events, keys of the API, inboxes, sources.
        case listPolicies, createList, listDecisions, listHolds, removeStream, testEndpoint,
            retryEvents, listEvents, rotateAPIKey,
            listInboxes, confirmInbox, addSource, showDelivery, allowDelivery

        package struct Facts: Sendable {
            /// The argument list. A word in capitals is a placeholder.
            package let form: [String]
            /// The state in which it is proposed.
            package let state: String

            fileprivate init(_ form: String, _ state: String) {
                (self.form, self.state) = (form.split(separator: " ").map(String.init), state)
            }
        }

        package var facts: Facts {
            switch self {
            case .listKeys: Facts("postern config keys", "postern.yaml cannot be used")
            case .diagnose:
                Facts("postern doctor", "a check was left out, because another one failed")
            case .migrate: Facts("postern store migrate", "the database is of an older version")
            case .closeFile: Facts("chmod 600 FILE", "others can read the database")
            case .ownFile: Facts("chown USER: FILE", "the service cannot read one of its files")
            case .listListeners: Facts("ss -ltnp", "another program has one of the ports")
            case .showSettings: Facts("postern setup postfix", "Postfix is not set up for Postern")
            case .applySettings:
                Facts(
                    "postern setup postfix --apply",
                    "a setting of Postfix is not what the relay needs")
            case .reloadPostfix: Facts("postfix reload", "settings of Postfix were changed")
            case .startPostfix: Facts("postfix start", "Postfix does not run")
            case .listQueue: Facts("postern queue list", "mail in the queue was not rewritten")
            case .sendQueue:
                Facts(
                    "postern queue send --all",
                    "mail in the queue was not rewritten, and its cause is gone")
            case .generateKey:
                Facts("postern keys dkim generate --domain DOMAIN", "a relay domain has no key")
            case .showRecord:
                Facts(
                    "postern keys dkim publish SELECTOR --domain DOMAIN",
                    "the record of a key is not in the DNS")
            case .activateKey:
                Facts(
                    "postern keys dkim activate SELECTOR --domain DOMAIN",
                    "a relay domain has a key that does not sign yet")
            case .retireKey:
                Facts(
                    "postern keys dkim retire SELECTOR --domain DOMAIN",
                    "a key signed for the last time two weeks ago")
            case .listPolicies:
                Facts("postern policy list", "no policy is in force, or one was refused")
            case .createList:
                Facts(
                    "postern list create LIST --kind KIND",
                    "a policy reads a list that does not exist")
            case .listDecisions: Facts("postern decision list --rule RULE", "a rule ends in errors")
            case .listHolds: Facts("postern hold list", "a hold ends within a week")
            case .removeStream:
                Facts(
                    "postern stream remove STREAM --yes",
                    "a stream's receiver is in a private network, which is no longer allowed")
            case .testEndpoint: Facts("postern endpoint test TEAM", "events of a team are parked")
            case .retryEvents:
                Facts(
                    "postern event retry --team TEAM",
                    "events of a team are parked, and its endpoint works again")
            case .listEvents: Facts("postern event list", "an event has waited for an hour")
            case .rotateAPIKey: Facts("postern api-key rotate KEY", "an API key ends within a week")
            case .listInboxes: Facts("postern inbox list USER", "an inbox is suspended")
            case .showDelivery:
                Facts("postern delivery show --team TEAM", "mail of a team is slowed or held")
            case .allowDelivery:
                Facts(
                    "postern delivery allow TEAM PROVIDER --until 7d --reason checked",
                    "mail of a team to a provider is held")
            case .confirmInbox:
                Facts(
                    "postern inbox confirm USER INBOX --code CODE",
                    "users have no page on which they can confirm an inbox")
            case .addSource:
                Facts(
                    "postern source add TEAM DOMAIN",
                    "a domain is not registered as a source of the team")
            }
        }
    }

    package let kind: Kind
    package let arguments: [String]

    /// - Parameter values: the values of the placeholders, in their order; without values, the
    ///   placeholders stay.
    package init(_ kind: Kind, _ values: [String] = []) {
        var values = values[...]
        self.kind = kind
        arguments = kind.facts.form.map { word in
            word.utf8.allSatisfy { (0x41...0x5A).contains($0) || $0 == UInt8(ascii: ":") }
                ? values.popFirst() ?? word : word
        }
    }

    private init(_ kind: Kind, arguments: [String]) {
        (self.kind, self.arguments) = (kind, arguments)
    }

    /// The command for the Postfix with its main.cf in this directory.
    func inPostfix(_ directory: String) -> RemedyCommand {
        guard directory != Self.postfixDirectory else { return self }
        return switch kind {
        case .showSettings, .applySettings, .listQueue, .sendQueue:
            RemedyCommand(kind, arguments: arguments + ["--config-directory", directory])
        case .reloadPostfix, .startPostfix:
            RemedyCommand(
                kind, arguments: arguments.prefix(1) + ["-c", directory] + arguments.dropFirst())
        default: self
        }
    }

    func with(_ options: [String]) -> RemedyCommand {
        arguments.first == "postern" ? RemedyCommand(kind, arguments: arguments + options) : self
    }

    /// The default directory in which Postfix and Postern look for main.cf.
    package static let postfixDirectory = "/etc/postfix"

    /// As typed in a shell.
    package var text: String { arguments.map(Self.quoted).joined(separator: " ") }

    /// A word as typed in a shell: in quotes if needed.
    package static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { octet in
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+%".utf8
                .contains(octet)
        }
        return isPlain && !word.isEmpty ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
    }
}

/// The remedy for a fault. Written as a literal: `"run \(.migrate), or restart the service"`.
package struct Remedy: Sendable, Hashable {
    fileprivate enum Part: Sendable, Hashable {
        case words(String)
        case command(RemedyCommand)
    }

    private var parts: [Part] = []

    /// The text for people.
    package var text: String {
        parts.map { part in
            switch part {
            case .words(let words): words
            case .command(let command): command.text
            }
        }.joined()
    }

    /// The argument lists in it, in their order; nil if it is advice.
    package var argumentLists: [[String]]? {
        let lists = commands.map(\.arguments)
        return lists.isEmpty ? nil : lists
    }

    /// The commands in it, in their order; none if it is advice.
    package var commands: [RemedyCommand] {
        parts.compactMap { if case .command(let command) = $0 { command } else { nil } }
    }

    /// The same, with these options for postern's commands.
    package func with(_ options: [String]) -> Remedy {
        guard !options.isEmpty else { return self }
        var remedy = self
        remedy.parts = parts.map { part in
            if case .command(let command) = part { .command(command.with(options)) } else { part }
        }
        return remedy
    }

    package static func + (left: Remedy, right: Remedy) -> Remedy {
        var sum = left
        sum.parts += right.parts
        return sum
    }
}

/// A fault, and its remedy.
package struct Trouble: Sendable, Hashable {
    /// Contains no inbox.
    package let sentence: String
    package let remedy: Remedy

    package init(_ sentence: String, _ remedy: Remedy) {
        (self.sentence, self.remedy) = (sentence, remedy)
    }

    /// The same, with these options for postern's commands.
    package func with(_ options: [String]) -> Trouble { Trouble(sentence, remedy.with(options)) }

    /// On one line.
    package var text: String { "\(sentence): \(remedy.text)" }
}

extension Trouble: Encodable {
    private enum CodingKeys: String, CodingKey { case sentence, remedy, commands }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(sentence, forKey: .sentence)
        try container.encode(remedy.text, forKey: .remedy)
        try container.encodeIfPresent(remedy.argumentLists, forKey: .commands)
    }
}

extension Remedy: ExpressibleByStringInterpolation {
    package init(stringLiteral words: String) { parts = [.words(words)] }
    package init(stringInterpolation: StringInterpolation) { parts = stringInterpolation.parts }

    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var parts: [Part] = []

        package init(literalCapacity: Int, interpolationCount: Int) {}

        package mutating func appendLiteral(_ words: String) {
            if !words.isEmpty { parts.append(.words(words)) }
        }
        package mutating func appendInterpolation(_ words: String) { appendLiteral(words) }
        package mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            appendLiteral(value.description)
        }
        package mutating func appendInterpolation(_ remedy: Remedy) { parts += remedy.parts }

        /// - Parameter values: the values of the placeholders, in their order.
        package mutating func appendInterpolation(_ kind: RemedyCommand.Kind, _ values: String...) {
            parts.append(.command(RemedyCommand(kind, values)))
        }

        /// - Parameter directory: the directory of main.cf.
        package mutating func appendInterpolation(
            _ kind: RemedyCommand.Kind, postfix directory: String
        ) {
            parts.append(.command(RemedyCommand(kind).inPostfix(directory)))
        }
    }
}
