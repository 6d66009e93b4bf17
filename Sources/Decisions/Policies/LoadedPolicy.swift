// A policy from the store, loaded.

import CEL
import Foundation
import PolicyRules
import RiskPolicy

/// A loaded policy with its hash in the store. Shared between threads; a decision keeps a
/// reference.
package final class LoadedPolicy: Sendable {
    package let policy: Policy
    /// `sha256:` and 64 hexadecimal digits.
    package let hash: String
    /// The signals that the policy reads, and their sources.
    package let signals: SignalSource

    package var name: String { policy.name }
    package var version: String { policy.version }

    package init(policy: Policy, hash: String) {
        self.policy = policy
        self.hash = hash
        signals = SignalSource(policy)
    }

    /// The built-in status policy.
    package static let builtInStatus = try? LoadedPolicy(.builtInStatus)

    /// Loads a stored policy. Throws `PolicyLoadError` for a damaged document and for one
    /// that this program refuses.
    package convenience init(_ stored: StoredPolicy) throws(PolicyLoadError) {
        guard stored.isIntact, let document = PolicyDocument(octets: stored.document) else {
            throw PolicyLoadError(message: "the document in the store is damaged: its hash differs")
        }
        do throws(PolicyRefusal) {
            var options = PolicyLoadOptions.onThisMachine
            options.refusesCertainFailures = false
            self.init(policy: try document.policy(options: options), hash: stored.hash)
        } catch {
            throw PolicyLoadError(message: error.description)
        }
    }
}

/// A policy in the store does not load on this host.
package struct PolicyLoadError: Error, Sendable, CustomStringConvertible {
    /// One line, or several with excerpts.
    package let message: String
    package var description: String { message }
}

extension StoredPolicy {
    /// The built-in status policy.
    package static let builtInStatus: StoredPolicy = {
        let document = PolicyDocument(files: DefaultStatusPolicy.files)
        let policy = try? document.policy(options: .onThisMachine)
        return StoredPolicy(
            name: PolicyKind.statusName, version: policy?.version ?? "", document: document.octets)
    }()

    /// The built-in policy.
    package static let builtIn: StoredPolicy = {
        let document = PolicyDocument(files: DefaultPolicy.files)
        let policy = try? document.policy(options: .onThisMachine)
        return StoredPolicy(
            name: policy?.name ?? "risk-default", version: policy?.version ?? "",
            document: document.octets)
    }()
}

extension PolicyLoadOptions {
    /// Time zones from the machine's database.
    package static let onThisMachine: PolicyLoadOptions = {
        var options = PolicyLoadOptions()
        options.zones = .system
        return options
    }()
}

extension TimeZoneOffsets {
    /// Offsets by IANA name, from the time-zone database of this machine.
    package static let system = TimeZoneOffsets { zone, seconds in
        TimeZone(identifier: zone).map {
            Int64($0.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
        }
    }
}
