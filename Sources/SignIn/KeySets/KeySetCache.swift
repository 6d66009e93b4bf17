// The keys of all issuers: fetched when needed, refreshed in the background, kept while an
// issuer is unavailable.

import Logging

/// Keeps key sets across restarts. Failures are not reported: without storage, the
/// cache only starts empty.
package protocol KeySetStorage: Sendable {
    /// The last good set of an issuer from its current source.
    func load(_ issuer: IssuerConfiguration) async -> StoredKeySet?
    func save(_ keys: StoredKeySet, of issuer: IssuerConfiguration) async
}

/// A key set with its times, in seconds since 1970.
package struct StoredKeySet: Sendable, Hashable {
    package let document: [UInt8]
    package let fetchedAt: Int64
    package let freshUntil: Int64

    package init(document: [UInt8], fetchedAt: Int64, freshUntil: Int64) {
        self.document = document
        self.fetchedAt = fetchedAt
        self.freshUntil = freshUntil
    }
}

/// A cache of key sets, one entry for each issuer.
///
/// A fresh set is used without a fetch. After that, it is still used while one fetch runs in the
/// background. When the set's age is twice its freshness, callers wait for the fetch. After a
/// failure, the fetch is retried after 5 s, 10 s, 20 s … up to 5 minutes. The last good set is used
/// until it is `maximumAge` old. From then on its keys are unavailable, which is a temporary error.
/// A token with an unknown `kid` causes a fetch, at most one in `unknownKeyInterval` for each
/// issuer. At most one fetch for an issuer runs at a time, for any number of callers.
package actor KeySetCache: VerificationKeySource {
    package struct Settings: Sendable {
        /// Seconds for which a set is fresh if its issuer does not say, and the limits
        /// for what an issuer may ask for.
        package var freshness: Int64 = 3600
        package var leastFreshness: Int64 = 300
        package var mostFreshness: Int64 = 86_400
        /// Seconds for which the last good set of an unavailable issuer is still
        /// used: more than a long weekend.
        package var maximumAge: Int64 = 7 * 86_400
        /// Seconds between two fetches for unknown key ids.
        package var unknownKeyInterval: Int64 = 30
        /// Seconds until the first retry after a failure, doubled each time, and the most.
        package var firstRetry: Int64 = 5
        package var mostRetry: Int64 = 300

        package init() {}
    }

    private struct Entry {
        let source: KeySource
        var keys: JWKSet?
        var fetchedAt: Int64 = 0
        var freshUntil: Int64 = 0
        var failures = 0
        var lastFailure = ""
        var nextAttempt: Int64 = .min
        var lastUnknown: Int64 = .min
        var fetch: Task<Void, Never>?
        var isStorageRead = false
    }

    private let settings: Settings
    private let fetcher: any KeySetFetcher
    private let storage: (any KeySetStorage)?
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private var entries: [String: Entry] = [:]

    package init(
        settings: Settings = Settings(), fetcher: any KeySetFetcher, storage: (any KeySetStorage)?,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        self.settings = settings
        self.fetcher = fetcher
        self.storage = storage
        self.now = now
        self.logger = logger
    }

    package func keys(
        of issuer: IssuerConfiguration, for keyID: String?
    ) async throws(KeysUnavailable) -> JWKSet {
        await open(issuer)
        let time = now()
        if let keys = usable(issuer, at: time) {
            guard knows(keys, keyID) else { return try await keysAfterUnknown(issuer, keys, keyID) }
            if isFresh(issuer, at: time) { return keys }
            guard mayFetch(issuer, at: time) else { return keys }
            let task = startFetch(issuer)
            let entry = entry(issuer)
            let gracePeriod = max(entry.freshUntil &- entry.fetchedAt, settings.leastFreshness)
            if time &- entry.freshUntil < gracePeriod { return keys }
            await task.value
            return usable(issuer, at: now()) ?? keys
        }
        if mayFetch(issuer, at: time) { await startFetch(issuer).value }
        guard let keys = usable(issuer, at: now()) else { throw unavailable(issuer) }
        return keys
    }

    /// Fetches sets that are no longer fresh, so that no request waits for it. To be
    /// called about every minute.
    package func refresh(_ issuers: [IssuerConfiguration]) async {
        let names = Set(issuers.map(\.name))
        for name in entries.keys where !names.contains(name) { entries[name] = nil }
        // All at once: one slow issuer must not delay the others.
        var fetches: [Task<Void, Never>] = []
        for issuer in issuers {
            await open(issuer)
            let time = now()
            if !isFresh(issuer, at: time), mayFetch(issuer, at: time) {
                fetches.append(startFetch(issuer))
            }
        }
        for fetch in fetches { await fetch.value }
    }

    /// The state of each issuer's keys, for status pages and `postern issuer test`.
    package struct Status: Sendable, Hashable {
        package let issuer: String
        package let keyCount: Int
        /// Nil if there was never a good set.
        package let fetchedAt: Int64?
        package let consecutiveFailures: Int
        /// Why the last fetch failed; nil if it did not.
        package let lastFailure: String?
    }

    /// Sorted by name.
    package var status: [Status] {
        entries.sorted { $0.key < $1.key }.map { name, entry in
            Status(
                issuer: name, keyCount: entry.keys?.keys.count ?? 0,
                fetchedAt: entry.keys == nil ? nil : entry.fetchedAt,
                consecutiveFailures: entry.failures,
                lastFailure: entry.failures == 0 ? nil : entry.lastFailure)
        }
    }

    // MARK: Decisions

    /// None of the keys has the token's kid: the issuer may have started to use a new one.
    private func keysAfterUnknown(
        _ issuer: IssuerConfiguration, _ keys: JWKSet, _ keyID: String?
    ) async throws(KeysUnavailable) -> JWKSet {
        let time = now()
        let last = entry(issuer).lastUnknown
        let isAllowed = last == .min || last > time || time &- last >= settings.unknownKeyInterval
        if let running = entry(issuer).fetch {
            await running.value
        } else if isAllowed, mayFetch(issuer, at: time) {
            entries[issuer.name]?.lastUnknown = time
            await startFetch(issuer).value
        }
        let current = usable(issuer, at: now()) ?? keys
        // Without an answer from the issuer, it is unknown whether it has such a key now.
        guard knows(current, keyID) || entry(issuer).failures == 0 else {
            throw unavailable(issuer)
        }
        return current
    }

    private func knows(_ keys: JWKSet, _ keyID: String?) -> Bool {
        SignatureAlgorithm.allCases.contains { algorithm in
            if case .unknown = keys.find(keyID, algorithm) { false } else { true }
        }
    }

    /// The current keys, unless they are too old.
    private func usable(_ issuer: IssuerConfiguration, at time: Int64) -> JWKSet? {
        let entry = entry(issuer)
        return time &- entry.fetchedAt <= settings.maximumAge ? entry.keys : nil
    }

    private func mayFetch(_ issuer: IssuerConfiguration, at time: Int64) -> Bool {
        let entry = entry(issuer)
        return entry.fetch != nil || entry.nextAttempt <= time
            || entry.nextAttempt &- time > settings.mostRetry
    }

    /// A set dated in the future was fetched before the clock was set back: its age is unknown.
    private func isFresh(_ issuer: IssuerConfiguration, at time: Int64) -> Bool {
        let entry = entry(issuer)
        return entry.keys != nil && entry.fetchedAt <= time && entry.freshUntil > time
    }

    private func unavailable(_ issuer: IssuerConfiguration) -> KeysUnavailable {
        let entry = entry(issuer)
        return KeysUnavailable(
            issuer: issuer.name,
            reason: entry.lastFailure.isEmpty ? "they were never fetched" : entry.lastFailure,
            retryAfter: min(
                max(entry.nextAttempt == .min ? 1 : entry.nextAttempt &- now(), 1),
                settings.mostRetry))
    }

    // MARK: State

    private func entry(_ issuer: IssuerConfiguration) -> Entry {
        if let entry = entries[issuer.name], entry.source == issuer.source { return entry }
        return Entry(source: issuer.source)
    }

    /// Ensures that there is an entry for the issuer as configured now, including the set
    /// stored before a restart.
    private func open(_ issuer: IssuerConfiguration) async {
        if entries[issuer.name]?.source != issuer.source {
            entries[issuer.name] = Entry(source: issuer.source)
        }
        guard entries[issuer.name]?.isStorageRead == false, let storage else { return }
        // Two simultaneous calls both read; the later one finds the set of
        // the earlier one, or a newer one.
        let stored = await storage.load(issuer)
        guard var entry = entries[issuer.name], entry.source == issuer.source, !entry.isStorageRead
        else { return }
        entry.isStorageRead = true
        entries[issuer.name] = entry
        guard let stored, let keys = try? JWKSet.parse(stored.document) else { return }
        guard var entry = entries[issuer.name], entry.source == issuer.source, entry.keys == nil
        else { return }
        entry.keys = keys
        // After a clock was set back, old keys must not count as new.
        entry.fetchedAt = min(stored.fetchedAt, now())
        entry.freshUntil = min(stored.freshUntil, entry.fetchedAt &+ settings.mostFreshness)
        entries[issuer.name] = entry
    }

    /// The running fetch, or a new one.
    private func startFetch(_ issuer: IssuerConfiguration) -> Task<Void, Never> {
        if let running = entry(issuer).fetch { return running }
        let task = Task { await self.fetch(issuer) }
        entries[issuer.name]?.fetch = task
        return task
    }

    private func fetch(_ issuer: IssuerConfiguration) async {
        do {
            let fetched = try await fetcher.fetch(issuer.source)
            let keys = try JWKSet.parse(fetched.document)
            // A set without any usable key is a mistake: the last good one is better.
            guard !keys.keys.isEmpty else {
                throw KeySetError(
                    "the key set has no usable key\(keys.unusable.first.map { " (\($0.reason))" } ?? "")"
                )
            }
            await succeeded(issuer, fetched, keys)
        } catch {
            failed(issuer, "\(error)")
        }
    }

    private func succeeded(
        _ issuer: IssuerConfiguration, _ fetched: FetchedKeySet, _ keys: JWKSet
    ) async {
        guard var entry = entries[issuer.name], entry.source == issuer.source else { return }
        let time = now()
        let freshness = fetched.maxAge.map {
            min(max($0, settings.leastFreshness), settings.mostFreshness)
        }
        if entry.failures > 0 {
            logger.notice("issuer keys are available again", metadata: ["issuer": "\(issuer.name)"])
        }
        entry.keys = keys
        entry.fetchedAt = time
        entry.freshUntil = time &+ (freshness ?? settings.freshness)
        entry.failures = 0
        entry.nextAttempt = .min
        entry.fetch = nil
        entries[issuer.name] = entry
        await storage?.save(
            StoredKeySet(document: fetched.document, fetchedAt: time, freshUntil: entry.freshUntil),
            of: issuer)
    }

    private func failed(_ issuer: IssuerConfiguration, _ reason: String) {
        guard var entry = entries[issuer.name], entry.source == issuer.source else { return }
        entry.lastFailure = reason
        let wait = min(settings.firstRetry << Int64(min(entry.failures, 20)), settings.mostRetry)
        entry.failures += 1
        entry.nextAttempt = now() &+ wait
        entry.fetch = nil
        entries[issuer.name] = entry
        logger.warning(
            "issuer keys cannot be fetched",
            metadata: [
                "issuer": "\(issuer.name)", "detail": "\(reason)", "kept": "\(entry.keys != nil)",
            ])
    }
}
