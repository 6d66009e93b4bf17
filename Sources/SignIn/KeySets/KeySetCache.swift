// The keys of all issuers: fetched when needed, refreshed in the background, kept while an issuer is away.

import Logging

/// Key sets across restarts. Failures stay inside: without it the cache only forgets.
package protocol KeySetStorage: Sendable {
    /// The last good set of an issuer from its present source.
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

/// A cache of key sets, one entry an issuer.
///
/// A set is used without a fetch while it is fresh. After that it goes on being used, and one fetch is made beside it; once it is
/// past freshness by as long again, the fetch is waited for. An issuer that cannot be reached is asked again after 5 s, 10 s, 20
/// s … up to 5 minutes, and its last good set is used until it is `maximumAge` old; from then on its keys are unavailable, which
/// is temporary. A token with an unknown `kid` causes a fetch, at most one in `unknownKeyInterval` for an issuer whatever
/// arrives. However many ask, at most one fetch for an issuer is under way.
package actor KeySetCache: VerificationKeySource {
    package struct Settings: Sendable {
        /// Seconds for which a set is fresh where its issuer does not say, and the least and most that an issuer may ask for.
        package var freshness: Int64 = 3600
        package var leastFreshness: Int64 = 300
        package var mostFreshness: Int64 = 86_400
        /// Seconds for which the last good set of an issuer that is away goes on being used: a long weekend and more.
        package var maximumAge: Int64 = 7 * 86_400
        /// Seconds between two fetches because of unknown key ids.
        package var unknownKeyInterval: Int64 = 30
        /// Seconds until the first repetition after a failure, doubled each time, and the most.
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

    package func keys(of issuer: IssuerConfiguration, for keyID: String) async throws(KeysUnavailable) -> JWKSet {
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

    /// Fetches what is no longer fresh, without anyone waiting for it. To be called every minute or so.
    package func refresh(_ issuers: [IssuerConfiguration]) async {
        let names = Set(issuers.map(\.name))
        for name in entries.keys where !names.contains(name) { entries[name] = nil }
        // All at once: one that hangs must not keep the others waiting.
        var fetches: [Task<Void, Never>] = []
        for issuer in issuers {
            await open(issuer)
            let time = now()
            if !isFresh(issuer, at: time), mayFetch(issuer, at: time) { fetches.append(startFetch(issuer)) }
        }
        for fetch in fetches { await fetch.value }
    }

    /// The state of each issuer's keys, for status pages and `postern issuer test`.
    package struct Status: Sendable, Hashable {
        package let issuer: String
        package let keyCount: Int
        /// nil where there was never a good set.
        package let fetchedAt: Int64?
        package let consecutiveFailures: Int
        /// Why the last fetch failed; nil where it did not.
        package let lastFailure: String?
    }

    /// By name.
    package var status: [Status] {
        entries.sorted { $0.key < $1.key }.map { name, entry in
            Status(
                issuer: name, keyCount: entry.keys?.keys.count ?? 0, fetchedAt: entry.keys == nil ? nil : entry.fetchedAt,
                consecutiveFailures: entry.failures, lastFailure: entry.failures == 0 ? nil : entry.lastFailure)
        }
    }

    // MARK: Deciding

    /// The kid of a token is in none of the keys: the issuer may have begun to use a new one.
    private func keysAfterUnknown(
        _ issuer: IssuerConfiguration, _ keys: JWKSet, _ keyID: String
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
        // Without an answer of the issuer no one knows whether it has such a key by now.
        guard knows(current, keyID) || entry(issuer).failures == 0 else { throw unavailable(issuer) }
        return current
    }

    private func knows(_ keys: JWKSet, _ keyID: String) -> Bool {
        SignatureAlgorithm.allCases.contains { algorithm in
            if case .unknown = keys.find(keyID, algorithm) { false } else { true }
        }
    }

    /// The keys held, where they are not too old.
    private func usable(_ issuer: IssuerConfiguration, at time: Int64) -> JWKSet? {
        let entry = entry(issuer)
        return time &- entry.fetchedAt <= settings.maximumAge ? entry.keys : nil
    }

    private func mayFetch(_ issuer: IssuerConfiguration, at time: Int64) -> Bool {
        let entry = entry(issuer)
        return entry.fetch != nil || entry.nextAttempt <= time || entry.nextAttempt &- time > settings.mostRetry
    }

    /// A set from the future was fetched before the clock was set back: no one knows how old it is.
    private func isFresh(_ issuer: IssuerConfiguration, at time: Int64) -> Bool {
        let entry = entry(issuer)
        return entry.keys != nil && entry.fetchedAt <= time && entry.freshUntil > time
    }

    private func unavailable(_ issuer: IssuerConfiguration) -> KeysUnavailable {
        let entry = entry(issuer)
        return KeysUnavailable(
            issuer: issuer.name, reason: entry.lastFailure.isEmpty ? "they were never fetched" : entry.lastFailure,
            retryAfter: min(max(entry.nextAttempt == .min ? 1 : entry.nextAttempt &- now(), 1), settings.mostRetry))
    }

    // MARK: State

    private func entry(_ issuer: IssuerConfiguration) -> Entry {
        if let entry = entries[issuer.name], entry.source == issuer.source { return entry }
        return Entry(source: issuer.source)
    }

    /// Ensures that there is an entry for the issuer as configured now, with what was kept over a restart.
    private func open(_ issuer: IssuerConfiguration) async {
        if entries[issuer.name]?.source != issuer.source { entries[issuer.name] = Entry(source: issuer.source) }
        guard entries[issuer.name]?.isStorageRead == false, let storage else { return }
        // Two that come at once both read; the later one finds what the earlier one took, or something newer.
        let stored = await storage.load(issuer)
        guard var entry = entries[issuer.name], entry.source == issuer.source, !entry.isStorageRead else { return }
        entry.isStorageRead = true
        entries[issuer.name] = entry
        guard let stored, let keys = try? JWKSet.parse(stored.document) else { return }
        guard var entry = entries[issuer.name], entry.source == issuer.source, entry.keys == nil else { return }
        entry.keys = keys
        // A clock that was set back must not make old keys young.
        entry.fetchedAt = min(stored.fetchedAt, now())
        entry.freshUntil = min(stored.freshUntil, entry.fetchedAt &+ settings.mostFreshness)
        entries[issuer.name] = entry
    }

    /// The fetch that is under way, or a new one.
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
            // A set without one usable key is someone's mistake: the last good one serves better.
            guard !keys.keys.isEmpty else {
                throw KeySetError("the key set has no usable key\(keys.unusable.first.map { " (\($0.reason))" } ?? "")")
            }
            await succeeded(issuer, fetched, keys)
        } catch {
            failed(issuer, "\(error)")
        }
    }

    private func succeeded(_ issuer: IssuerConfiguration, _ fetched: FetchedKeySet, _ keys: JWKSet) async {
        guard var entry = entries[issuer.name], entry.source == issuer.source else { return }
        let time = now()
        let freshness = fetched.maxAge.map { min(max($0, settings.leastFreshness), settings.mostFreshness) }
        if entry.failures > 0 { logger.notice("issuer keys are available again", metadata: ["issuer": "\(issuer.name)"]) }
        entry.keys = keys
        entry.fetchedAt = time
        entry.freshUntil = time &+ (freshness ?? settings.freshness)
        entry.failures = 0
        entry.nextAttempt = .min
        entry.fetch = nil
        entries[issuer.name] = entry
        await storage?.save(
            StoredKeySet(document: fetched.document, fetchedAt: time, freshUntil: entry.freshUntil), of: issuer)
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
            metadata: ["issuer": "\(issuer.name)", "detail": "\(reason)", "kept": "\(entry.keys != nil)"])
    }
}
