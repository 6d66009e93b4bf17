// The live lists on this host: read once, updated from the store, looked up in memory.

import Accounts
import CEL
import Database
import Logging
import Synchronization

/// Provides the current content of lists. A lookup takes one short lock. A decision uses the same
/// snapshot to its end.
package final class ListsInForce: Sendable {
    /// The current lists for decisions. Immutable.
    private final class Snapshot: Sendable {
        let lists: [Key: LiveListEntries]

        init(_ lists: [Key: LiveListEntries]) { self.lists = lists }
    }

    private struct Key: Hashable, Sendable {
        let team: Int64?
        let name: String
    }

    /// A list as it was read.
    private struct Held {
        var list: LiveList
        var entries: LiveListEntries
        /// Expiry of the entries that expire: a few entries, or all of a list of a million.
        var expiring: [ExactString: Int64] = [:]
        var nextExpiry: Int64?
    }

    /// Used only by `refresh`.
    private struct Progress {
        var revision: Int64 = -1
        var readAt: Int64 = 0
        /// By the list's number.
        var held: [Int64: Held] = [:]
        var isStoreReachable = true
    }

    private let repository: LiveListRepository
    private let logger: Logger
    private let snapshot = Mutex<Snapshot?>(nil)
    private let progress = Mutex(Progress())

    /// Reads the lists of the store. A later `refresh` reads the lists that cannot be read now.
    package init(_ repository: LiveListRepository, now: Int64, logger: Logger) {
        self.repository = repository
        self.logger = logger
        refresh(now: now)
    }

    // MARK: Asking

    /// The lists for a team's request; nil before the first read: signals that depend on them are
    /// then missing.
    package func lists(team: Int64) -> (any LiveLists)? {
        snapshot.withLock { $0 }.map {
            TeamLists(snapshot: $0, team: team, marks: repository.marks)
        }
    }

    /// Installation lists that a policy names, but that do not exist or have another kind.
    package func missing(_ names: [LiveListName]) -> [LiveListName] {
        guard let current = snapshot.withLock({ $0 }) else { return [] }
        return names.filter {
            !$0.isTeams && current.lists[Key(team: nil, name: $0.name)]?.kind != $0.kind
        }
    }

    /// The class of a domain, by the installation's own lists if they exist.
    package func domainClass(_ domain: String) -> DomainClass {
        let current = snapshot.withLock { $0 }
        return DomainClass.of(domain) { kind in
            DomainClass.lists[kind].flatMap { current?.lists[Key(team: nil, name: $0)] }.flatMap {
                $0.kind == .domain ? $0 : nil
            }
        }
    }

    private struct TeamLists: LiveLists {
        let snapshot: Snapshot
        let team: Int64
        let marks: DecisionMarks

        func contains(_ text: String, in list: LiveListName) -> Bool {
            let owner = list.isTeams ? team : nil
            guard let entries = snapshot.lists[Key(team: owner, name: list.name)],
                entries.kind == list.kind, entries.count > 0
            else { return false }
            guard list.kind == .personal else { return entries.contains(text) }
            return entries.contains(
                LiveListRepository.mark(marks, owner, LiveListEntries.personal(text)))
        }
    }

    // MARK: Following

    /// Follows changed lists and expired entries. Lists that cannot be read stay
    /// unchanged; this is logged.
    package func refresh(now: Int64) {
        progress.withLock { progress in
            do {
                if try follow(&progress, now: now) { publish(progress) }
                if !progress.isStoreReachable { logger.notice("lists can be read again") }
                progress.isStoreReachable = true
            } catch {
                if progress.isStoreReachable {
                    logger.error(
                        "lists cannot be read, the last ones stay in force",
                        metadata: ["detail": "\(error)"])
                }
                progress.isStoreReachable = false
                // Entries expire without the store too.
                if endExpired(&progress, now: now) { publish(progress) }
            }
        }
    }

    /// Returns whether there is a change to publish.
    private func follow(_ progress: inout Progress, now: Int64) throws(StoreFailure) -> Bool {
        let revision = try repository.revision()
        guard revision != progress.revision else {
            progress.readAt = now
            return endExpired(&progress, now: now)
        }
        let isStale = now - progress.readAt >= LiveListLimits.removedFor
        var held: [Int64: Held] = [:]
        var isWhole = true
        for list in try repository.heads() {
            if let known = progress.held[list.number], known.list.generation == list.generation,
                !isStale
            {
                held[list.number] = try changed(known, to: list)
            } else if let loaded = try load(list) {
                held[list.number] = loaded
            } else {
                // The list was replaced during the read: the next refresh finds the new one.
                held[list.number] = progress.held[list.number]
                isWhole = false
            }
        }
        progress.held = held
        _ = endExpired(&progress, now: now)
        if isWhole { (progress.revision, progress.readAt) = (revision, now) }
        return true
    }

    private func load(_ list: LiveList) throws(StoreFailure) -> Held? {
        var (values, expiring): ([String], [ExactString: Int64]) = ([], [:])
        values.reserveCapacity(Int(clamping: list.entries))
        let isWhole = try repository.load(list) { entries in
            for entry in entries {
                values.append(entry.value)
                if let expiry = entry.expiresAt { expiring[ExactString(entry.value)] = expiry }
            }
        }
        guard isWhole else { return nil }
        return Held(
            list: list, entries: LiveListEntries(list.kind, values), expiring: expiring,
            nextExpiry: expiring.values.min())
    }

    private func changed(_ known: Held, to list: LiveList) throws(StoreFailure) -> Held {
        guard list.revision > known.list.revision else { return known }
        var held = known
        held.list = list
        let changes = try repository.changes(list, after: known.list.revision)
        for change in changes {
            held.expiring[ExactString(change.value)] = change.isRemoved ? nil : change.expiresAt
        }
        held.nextExpiry = held.expiring.values.min()
        held.entries.change(
            adding: changes.filter { !$0.isRemoved }.map(\.value),
            removing: changes.filter(\.isRemoved).map(\.value))
        return held
    }

    /// Removes expired entries; returns whether there were any.
    private func endExpired(_ progress: inout Progress, now: Int64) -> Bool {
        var isChanged = false
        for (number, held) in progress.held {
            guard let next = held.nextExpiry, next <= now else { continue }
            var held = held
            let ended = held.expiring.filter { $0.value <= now }.map(\.key)
            for value in ended { held.expiring[value] = nil }
            held.nextExpiry = held.expiring.values.min()
            held.entries.change(adding: [String](), removing: ended.map(\.text))
            progress.held[number] = held
            isChanged = true
        }
        return isChanged
    }

    private func publish(_ progress: Progress) {
        let new = Snapshot(
            Dictionary(
                progress.held.values.map {
                    (Key(team: $0.list.team, name: $0.list.name), $0.entries)
                },
                uniquingKeysWith: { first, _ in first }))
        snapshot.withLock { $0 = new }
    }
}
