// Replaces keys while mail flows. All hosts get the new key, then all use it, then all values are
// converted, then the old key is removed.

import Accounts
import Database
import Foundation
import MailCrypto
import Monitoring
import PosternConfiguration

/// The steps of `postern keys file rotate`. After each step mail flows with the key file and the
/// database as they are, and the next run continues from there.
package struct KeyRotation: Sendable {
    private let installation: Installation
    private let now: @Sendable () -> Int64

    private var path: String { installation.configuration.keyFilePath }
    private var keys: KeyHolder { installation.store.keys }
    private var repository: KeyRotationRepository { installation.store.keyRotation }

    package init(_ installation: Installation, now: @escaping @Sendable () -> Int64) {
        self.installation = installation
        self.now = now
    }

    /// A service that lacks the keys that the next step needs.
    package struct Laggard: Sendable, Hashable {
        package let host: String
        package let pid: Int64
        /// When it reported its keys, in seconds since 1970 by its own clock.
        let updatedAt: Int64
    }

    /// Adds a next key for each purpose that has no next key and no unfinished rotation. Returns
    /// the purposes that got one.
    package func add(_ purposes: [KeyPurpose]) throws -> [KeyPurpose] {
        var ring = keys.current
        var added: [KeyPurpose] = []
        for purpose in purposes {
            guard let set = ring[purpose], set.next == nil, purpose == .token || set.old.isEmpty
            else { continue }
            guard
                let more = ring.adding(
                    purpose, secret: try SecureRandom.bytes(count: KeyRing.keyLength))
            else { continue }
            ring = more
            added.append(purpose)
        }
        if !added.isEmpty { try put(ring) }
        return added
    }

    /// Makes the next keys the active ones. Every running service must have them before this step:
    /// see `laggards`.
    package func activate() throws {
        let ring = KeyPurpose.allCases.reduce(keys.current) { $0.activating($1) }
        if ring != keys.current { try put(ring) }
    }

    /// Running services that lack keys of this file, or have them in another state.
    package func laggards() throws(StoreFailure) -> [Laggard] {
        let wanted = keys.current.summary
        return try ServiceReport.all(installation.store, now: now()).filter(\.isRunning).compactMap
        { report in
            let known = report.snapshot?.keys ?? [:]
            let isReady = wanted.allSatisfy { known[$0.key] == $0.value }
            let entry = report.entry
            return isReady
                ? nil : Laggard(host: entry.host, pid: entry.pid, updatedAt: entry.updatedAt)
        }
    }

    /// From now on a host makes new values with the active keys. A host without them refuses to
    /// make any.
    package func demand(_ change: Change) throws(StoreFailure) {
        try repository.demandActiveKeys(change)
    }

    /// Converts all values to the active keys, in passes until one finds nothing to change. Returns
    /// how many were changed.
    /// - Parameters:
    ///   - pause: seconds between two batches.
    ///   - progress: gets the rows read in this pass and the total; stops the conversion if it
    ///     returns false.
    package func reencrypt(
        pause: Double, progress: (_ seen: Int, _ total: Int) -> Bool
    ) throws(StoreFailure) -> Int {
        var changed = 0
        while true {
            let total = try repository.rows()
            var (seen, inPass) = (0, 0)
            var position: KeyRotationRepository.Position? = .start
            while let here = position {
                let step = try repository.step(here)
                seen += step.seen
                inPass += step.changed
                position = step.next
                guard progress(seen, total) else { return changed + inPass }
                if step.changed > 0, pause > 0 { Thread.sleep(forTimeInterval: pause) }
            }
            changed += inPass
            if inPass == 0 { return changed }
        }
    }

    /// Removes old seal and index keys from the key file if no value uses them. Returns the removed
    /// keys.
    package func removeUnused(_ change: Change) throws -> [(KeyPurpose, String)] {
        let used = Set(try repository.usage().map { "\($0.purpose.rawValue) \($0.key)" })
        var ring = keys.current
        var removed: [(KeyPurpose, String)] = []
        for purpose in [KeyPurpose.seal, .index] {
            for version in ring[purpose]?.old ?? []
            where !used.contains("\(purpose.rawValue) \(version.idText)") {
                ring = ring.removing(purpose, id: version.idText)
                removed.append((purpose, version.idText))
            }
        }
        if !removed.isEmpty {
            try put(ring)
            for (purpose, id) in removed { try repository.noteRetired(purpose, id, change) }
        }
        return removed
    }

    /// Throws if this key does not exist, or is not an old one.
    package func requireOld(_ purpose: KeyPurpose, id: String) throws(StoreFailure) {
        guard let set = keys.current[purpose], let version = set[id] else {
            throw StoreFailure.refused(
                .notFound, "there is no \(purpose.rawValue) key \(id): see postern keys file show")
        }
        guard set.state(of: version) == .old else {
            throw StoreFailure.refused(
                .unmet,
                "\(purpose.rawValue) key \(id) is the \(set.state(of: version).rawValue) one: rotate first"
            )
        }
    }

    /// Removes an old key, even if values that cannot be converted still use it. Refused if it is
    /// not an old one, or if values that can be converted still use it.
    package func retire(_ purpose: KeyPurpose, id: String, _ change: Change) throws {
        try requireOld(purpose, id: id)
        if let usage = try repository.usage().first(where: { $0.purpose == purpose && $0.key == id }
        ) {
            throw StoreFailure.refused(
                .unmet,
                "\(usage.count) values are still made with it: run postern keys file rotate until it finishes"
            )
        }
        try put(keys.current.removing(purpose, id: id))
        try repository.noteRetired(purpose, id, change)
    }

    private func put(_ ring: KeyRing) throws {
        try KeyFile.replace(path: path, text: ring.fileText)
        keys.exchange(ring)
    }
}
