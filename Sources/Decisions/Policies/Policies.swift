// Risk policies as the store keeps them: documents, names, bindings, changes.

import Database
import MailCrypto
import Support

/// A policy as it was when it was taken. The store does not look into the document.
package struct StoredPolicy: Sendable, Hashable {
    /// As under `policy:` in its file.
    package let name: String
    /// As under `version:`.
    package let version: String
    /// All files in their canonical spelling.
    package let document: [UInt8]
    /// `sha256:` and 64 hexadecimal digits: the document's hash.
    package let hash: String

    package init(name: String, version: String, document: [UInt8]) {
        self.init(name: name, version: version, document: document, hash: Self.hash(of: document))
    }

    /// From a row: the hash under which it is kept, which `isIntact` compares.
    init(name: String, version: String, document: [UInt8], hash: String) {
        self.name = name
        self.version = version
        self.document = document
        self.hash = hash
    }

    /// Whether the document is the one that was taken.
    package var isIntact: Bool { Self.hash(of: document) == hash }

    /// `sha256:` and 64 hexadecimal digits.
    package static func hash(of document: [UInt8]) -> String { "sha256:" + Hex.encode(SHA256.hash(document)) }

    /// The hash as people read it: its first twelve digits.
    package static func short(_ hash: String) -> String { String(hash.drop { $0 != ":" }.dropFirst().prefix(12)) }
}

/// A policy that the store holds, without its document.
package struct PolicySummary: Sendable, Hashable {
    package let hash: String
    package let name: String
    package let version: String
    package let addedAt: Int64
}

/// What a name stands for now.
package struct NamedPolicy: Sendable, Hashable {
    package let name: String
    package let version: String
    package let hash: String
    /// Whether it serves everyone who is bound to no other.
    package let isDefault: Bool
    /// Since when the name stands for this.
    package let since: Int64
}

/// Whom a policy can be bound to.
package enum PolicyBindingTarget: Sendable, Hashable, CustomStringConvertible {
    /// By identifier.
    case team(String)
    /// By client_id.
    case app(String)

    package var description: String {
        switch self {
        case .team(let id): "team \(id)"
        case .app(let clientID): "app \(clientID)"
        }
    }
}

/// A team or app with its own policy.
package struct PolicyBinding: Sendable, Hashable {
    package let target: PolicyBindingTarget
    /// The team's number; for an app that of its team.
    package let teamNumber: Int64
    /// The policy's name.
    package let name: String
}

/// What decides for whom, as of one moment.
package struct PolicyArrangement: Sendable, Hashable {
    /// Grows with every change.
    package let revision: Int64
    /// By name.
    package let policies: [NamedPolicy]
    package let bindings: [PolicyBinding]

    package var standard: NamedPolicy? { policies.first(where: \.isDefault) }
}

/// One line of the policies' history.
package struct PolicyChange: Sendable, Hashable {
    package enum Action: String, SQLCodable, Sendable {
        case activate, rollback, refuse, bind, unbind
    }
    package let number: Int64
    package let at: Int64
    package let actor: String
    package let action: Action
    package let name: String
    package let version: String
    package let hash: String?
    /// What the name stood for before.
    package let hashBefore: String?
    /// Why a candidate was refused; to whom a policy was bound.
    package let detail: String
}

/// What an activation or a rollback changed.
package struct PolicyActivation: Sendable, Hashable {
    package let policy: NamedPolicy
    /// What the name stood for before; nil where it is new.
    package let replaced: String?
    /// The name that was the default before, where that changed.
    package let replacedDefault: String?
    /// Whether anything changed at all.
    package let isChange: Bool
}

/// What a host says of a policy.
package struct PolicyHostState: Sendable, Hashable {
    package let host: String
    /// The policy's name.
    package let name: String
    /// What the name stands for.
    package let wanted: String
    /// What the host decides by; nil for none.
    package let serving: String?
    /// Why it is not the one wanted; nil where it is.
    package let reason: String?
    /// When it last said so.
    package let at: Int64

    package init(host: String, name: String, wanted: String, serving: String?, reason: String?, at: Int64) {
        self.host = host
        self.name = name
        self.wanted = wanted
        self.serving = serving
        self.reason = reason
        self.at = at
    }

    /// Seconds after which a host that says nothing any more counts as silent; it says something every minute.
    package static let silence: Int64 = 180

    /// That it refused what was activated, and what it decides by instead; nil where it did not. The reason is several lines.
    package var refusal: String? {
        guard reason != nil else { return nil }
        let decides = serving.map { StoredPolicy.short($0) } ?? "the default"
        return "host \(host) refuses \(name) \(StoredPolicy.short(wanted)) and uses \(decides)"
    }
}
