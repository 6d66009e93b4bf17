// Risk policies as the store keeps them: documents, names, bindings, changes.

import Database
import MailCrypto
import Support

/// A policy as it was accepted. The store does not read the document.
package struct StoredPolicy: Sendable, Hashable {
    /// The value of `policy:` in its file.
    package let name: String
    /// The value of `version:`.
    package let version: String
    /// All files in canonical form.
    package let document: [UInt8]
    /// `sha256:` and 64 hexadecimal digits: the document's hash.
    package let hash: String

    package init(name: String, version: String, document: [UInt8]) {
        self.init(name: name, version: version, document: document, hash: Self.hash(of: document))
    }

    /// From a row, with the stored hash, which `isIntact` compares.
    init(name: String, version: String, document: [UInt8], hash: String) {
        self.name = name
        self.version = version
        self.document = document
        self.hash = hash
    }

    /// Whether the document is unchanged since it was accepted.
    package var isIntact: Bool { Self.hash(of: document) == hash }

    /// `sha256:` and 64 hexadecimal digits.
    package static func hash(of document: [UInt8]) -> String {
        "sha256:" + Hex.encode(SHA256.hash(document))
    }

    /// The hash as shown to people: its first twelve digits.
    package static func short(_ hash: String) -> String {
        String(hash.drop { $0 != ":" }.dropFirst().prefix(12))
    }
}

/// A stored policy, without its document.
package struct PolicySummary: Sendable, Hashable {
    package let hash: String
    package let name: String
    package let version: String
    package let addedAt: Int64
}

/// The policy that a name means now.
package struct NamedPolicy: Sendable, Hashable {
    package let name: String
    package let version: String
    package let hash: String
    /// Whether it serves all teams and apps that are bound to no other policy.
    package let isDefault: Bool
    /// Since when the name means this policy.
    package let since: Int64
}

/// Team or app that a policy can be bound to.
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
    /// The team's number; for an app, its team's number.
    package let teamNumber: Int64
    /// The policy's name.
    package let name: String
}

/// The policies that decide for teams and apps, at one moment.
package struct PolicyArrangement: Sendable, Hashable {
    /// Increases with every change.
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
    /// The hash that the name meant before.
    package let hashBefore: String?
    /// Why a candidate was refused, or the target that a policy was bound to.
    package let detail: String
}

/// The change of an activation or a rollback.
package struct PolicyActivation: Sendable, Hashable {
    package let policy: NamedPolicy
    /// The hash that the name meant before; nil if the name is new.
    package let replaced: String?
    /// The name that was the default before, if that changed.
    package let replacedDefault: String?
    /// Whether anything changed at all.
    package let isChange: Bool
}

/// A host's report about a policy.
package struct PolicyHostState: Sendable, Hashable {
    package let host: String
    /// The policy's name.
    package let name: String
    /// The hash that the name means.
    package let wanted: String
    /// The hash that the host decides by; nil for none.
    package let serving: String?
    /// Why the host does not serve the wanted policy; nil if it does.
    package let reason: String?
    /// Time of the host's last report.
    package let at: Int64

    package init(
        host: String, name: String, wanted: String, serving: String?, reason: String?, at: Int64
    ) {
        self.host = host
        self.name = name
        self.wanted = wanted
        self.serving = serving
        self.reason = reason
        self.at = at
    }

    /// Seconds without a report after which a host counts as silent; hosts report every minute.
    package static let silence: Int64 = 180

    /// Says that the host refused the activated policy, and which policy it uses instead; otherwise
    /// nil. Without `reason`, which has several lines.
    package var refusal: String? {
        guard reason != nil else { return nil }
        let decides = serving.map { StoredPolicy.short($0) } ?? "the default"
        return "host \(host) refuses \(name) \(StoredPolicy.short(wanted)) and uses \(decides)"
    }
}
