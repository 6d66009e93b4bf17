// Bodies of /v1/decisions as values.

import CEL
import Decisions
import HTTP
import RiskPolicy
import SignIn
import Support

/// The members of a body, each read by its type; other members are refused.
struct Members {
    private let members: JSONObject
    /// The JSON pointer of the object.
    private let pointer: String

    /// - Parameter pointer: of an object within the body.
    init(_ body: JSONValue, names: Set<String>, at pointer: String = "") throws {
        guard case .object(let members) = body else {
            throw Problem.invalid("must be an object, not \(body.kind)", at: pointer)
        }
        if let name = members.members.map(\.name).filter({ !names.contains($0) }).min() {
            throw Problem.invalid(
                "unknown member", at: pointer + "/" + StrictDecoder.escaped(name))
        }
        self.members = members
        self.pointer = pointer
    }

    /// Null is the same as a missing member.
    subscript(name: String) -> JSONValue? {
        guard let value = members[name], case .null = value else { return members[name] }
        return nil
    }

    /// A text of 1 to `limit` octets; nil if the member is missing.
    func text(_ name: String, limit: Int) throws -> String? {
        guard let value = self[name] else { return nil }
        guard case .string(let text) = value else {
            throw Problem.invalid("must be a string, not \(value.kind)", at: "\(pointer)/\(name)")
        }
        guard (1...limit).contains(text.utf8.count) else {
            throw Problem.invalid("must be 1 to \(limit) octets", at: "\(pointer)/\(name)")
        }
        return text
    }

    /// A required text, which must be one of a few values.
    /// - Parameter others: values that are accepted as well, by another reader.
    func word<Word: RawRepresentable & CaseIterable>(
        _ name: String, _ type: Word.Type, besides others: [String] = []
    ) throws -> Word
    where Word.RawValue == String {
        guard let text = try text(name, limit: 64) else {
            throw Problem.invalid("is missing", at: "\(pointer)/\(name)")
        }
        if let word = Word(rawValue: text) { return word }
        let names = (Word.allCases.map(\.rawValue) + others).joined(separator: ", ")
        throw Problem.invalid("must be one of \(names)", at: "\(pointer)/\(name)")
    }
}

extension DecisionRequest {
    private static let memberNames: Set = [
        "event", "client_id", "identity_token", "nonce", "sub", "app_account", "device",
        "challenge",
        "context",
    ]

    /// From the body of `POST /v1/decisions`. Throws `Problem` (422).
    init(_ body: JSONValue) throws {
        let members = try Members(body, names: Self.memberNames)
        guard let clientID = try members.text("client_id", limit: 255) else {
            throw Problem.invalid("is missing", at: "/client_id")
        }
        self.init(
            event: try members.word("event", PolicyEvent.self), clientID: clientID,
            identityToken: try members.text("identity_token", limit: 16_384),
            nonce: try members.text("nonce", limit: 512),
            sub: try members.text("sub", limit: Self.maximumNameLength),
            appAccount: try members.text("app_account", limit: Self.maximumNameLength),
            device: try members.text("device", limit: DeviceLimits.idLength),
            challenge: try members["challenge"].map(ChallengeRequest.init))
        guard let value = members["context"] else { return }
        guard case .object(let values) = value else {
            throw Problem.invalid("must be an object, not \(value.kind)", at: "/context")
        }
        context = values.members.sorted { $0.name < $1.name }.map { ($0.name, CELValue($0.value)) }
    }
}

extension ChallengeRequest {
    /// From the member `challenge`. Throws `Problem` (422).
    fileprivate init(_ value: JSONValue) throws {
        let members = try Members(
            value, names: ["redirect_uri", "response_mode", "state"], at: "/challenge")
        guard let redirectURI = try members.text("redirect_uri", limit: 2_048) else {
            throw Problem.invalid("is missing", at: "/challenge/redirect_uri")
        }
        self.init(
            redirectURI: redirectURI,
            mode: members["response_mode"] == nil
                ? nil : try members.word("response_mode", AuthorizationResponseMode.self),
            state: try members.text("state", limit: AuthenticationRequestReader.maximumState))
    }
}

extension DecisionReport {
    /// From the body of `POST /v1/decisions/{id}/outcome`: an outcome with its challenge, or a
    /// label. Throws `Problem` (422).
    init(_ body: JSONValue) throws {
        let members = try Members(body, names: ["outcome", "challenge", "label"])
        if members["label"] != nil {
            guard members["outcome"] == nil, members["challenge"] == nil else {
                throw Problem.invalid(
                    "send either a label, or an outcome with its challenge", at: "/label")
            }
            self = .label(try members.word("label", DecisionLabel.self))
            return
        }
        // A label may be given in place of an outcome.
        if let text = try members.text("outcome", limit: 64),
            let label = DecisionLabel(rawValue: text)
        {
            guard members["challenge"] == nil else {
                throw Problem.invalid("a label has no challenge", at: "/challenge")
            }
            self = .label(label)
            return
        }
        let outcome = try members.word(
            "outcome", CheckOutcome.self, besides: DecisionLabel.allCases.map(\.rawValue))
        guard let challenge = try members.text("challenge", limit: 64) else {
            throw Problem.invalid("is missing", at: "/challenge")
        }
        self = .outcome(outcome, challenge: challenge)
    }
}

extension CELValue {
    /// Any value. The members of an object are not read, because no signal has the type of an
    /// object.
    fileprivate init(_ json: JSONValue) {
        switch json {
        case .bool(let bool): self = .bool(bool)
        case .number(let number):
            self =
                number.integer.map { .int($0) } ?? UInt64(number.text).map { .uint($0) }
                ?? .double(number.double)
        case .string(let text): self = .string(text)
        case .array(let items): self = .list(items.map { CELValue($0) })
        case .null: self = .null
        case .object: self = .map(CELMap())
        }
    }
}
