// Counters collected in memory and written in batches, outside the mail path.

import Database
import Synchronization

/// Counts from any thread; `flush` writes the collected counts in few transactions. The owner
/// flushes about every second, and again at shutdown. Counts since the last flush are lost if
/// the process is killed.
package final class CounterBuffer: Sendable {
    private struct Key: Hashable {
        let account: Int64
        let day: Int64
        let kind: CounterKind

        var order: (Int64, Int64, Int64) { (account, day, kind.rawValue) }
    }

    private struct Known: Equatable {
        let count: Int
        let at: Int64
    }

    private struct Entry: Equatable {
        /// Counted, not yet written.
        var pending = 0
        /// Being written to the store. Until the write ends, it counts in addition to the store's
        /// count.
        var writing = 0
        /// The part of `writing` that the store counts even beyond the limit. Other threads must
        /// not use these places in the meantime.
        var owed = 0
        /// The store's count when it was last read or written, with the time in seconds since 1970.
        var known: Known?
    }

    /// Distinct counters kept while the store is unavailable; further ones are dropped and counted
    /// in `dropped`.
    package static let capacity = 100_000
    /// Counters written in one transaction: some ten milliseconds if the store is near.
    package static let step = 250

    /// The part of a daily limit that may be counted in memory between two writes. Each of several
    /// hosts may be ahead by one part. So the last parts before the limit (`reserved`) are counted
    /// in the store, one by one.
    private static let parts = 16
    private static let reserved = 4
    /// Seconds for which a count read from the store is used; a transaction may last far longer.
    private static let freshness: Int64 = 10

    /// What became of forwards, written by the same flush.
    package let deliveries: DeliveryBuffer

    private let repository: CounterRepository
    private struct State {
        var entries: [Key: Entry] = [:]
        var dropped = 0
        /// Accounts that messages were forwarded to, until `takeForwarded`.
        var forwarded: Set<Int64> = []
        /// Counts starts and ends of flushes: a count read before one of them is outdated.
        var turns = 0
    }

    private let state = Mutex(State())

    package init(_ repository: CounterRepository) {
        self.repository = repository
        deliveries = DeliveryBuffer(repository.database)
    }

    /// Counts one. Never blocks on the store.
    package func count(account: Int64, kind: CounterKind, day: Int64) {
        state.withLock { state in
            let key = Key(account: account, day: day, kind: kind)
            guard state.entries.count < Self.capacity || state.entries[key] != nil else {
                state.dropped += 1
                return
            }
            state.entries[key, default: Entry()].pending += 1
        }
    }

    /// Records a counter's value in the store, so that `reserve` need not read it.
    package func note(_ count: Int, account: Int64, kind: CounterKind, day: Int64, now: Int64) {
        state.withLock { state in
            let key = Key(account: account, day: day, kind: kind)
            guard state.entries.count < Self.capacity || state.entries[key] != nil else { return }
            // An earlier read may arrive later: counts only rise.
            if let known = state.entries[key]?.known, known.count > count,
                now - known.at <= Self.freshness
            {
                return
            }
            state.entries[key, default: Entry()].known = Known(count: count, at: now)
        }
    }

    /// Counts one more unless that would exceed the limit. Returns whether it was counted. Counts
    /// in memory while the limit is far away, then in the store. One process never exceeds the
    /// limit. Each of several hosts exceeds it by at most a sixteenth, if all of them count that
    /// much within a second.
    package func reserve(
        account: Int64, kind: CounterKind, day: Int64, limit: Int, now: Int64
    ) throws(StoreFailure) -> Bool {
        let key = Key(account: account, day: day, kind: kind)
        while true {
            switch try attempt(key, limit: limit, now: now) {
            case .counted: return true
            case .refused(let owed):
                // While this thread waited, another one may have written its owed counts. Then they
                // were counted twice, and this attempt is repeated.
                guard state.withLock({ $0.entries[key]?.owed ?? 0 }) < owed else { return false }
            }
        }
    }

    private enum Attempt {
        case counted
        /// The limit is reached if the `owed` counts that are being written are included.
        case refused(owed: Int)
    }

    private func attempt(_ key: Key, limit: Int, now: Int64) throws(StoreFailure) -> Attempt {
        let part = limit / Self.parts
        let (pending, owed, turn): (Int?, Int, Int) = state.withLock { state in
            var entry = state.entries[key] ?? Entry()
            defer { if entry != Entry() { state.entries[key] = entry } }
            let ahead = entry.pending + entry.writing
            // A reservation that waits for the store knows only of what was owed when it began. So
            // nothing new is counted in memory until it has ended.
            let waits = entry.writing > entry.owed
            if let known = entry.known, now - known.at <= Self.freshness, ahead < part, !waits,
                known.count + ahead < limit - Self.reserved * part
            {
                entry.pending += 1
                return (nil, 0, state.turns)
            }
            // The pending counts are written together with this one, or become pending again. This
            // one is included in `writing` until the count is known.
            defer {
                entry.writing += entry.pending + 1
                entry.owed += entry.pending
                entry.pending = 0
            }
            return (entry.pending, entry.owed, state.turns)
        }
        guard let pending else { return .counted }
        do {
            let count = try repository.reserve(
                account: key.account, kind: key.kind, day: key.day, limit: limit - owed,
                adding: pending)
            reserved(pending, key, count: count ?? limit, turn: turn, now: now)
            return count == nil ? .refused(owed: owed) : .counted
        } catch {
            state.withLock { $0.entries[key]?.writing -= 1 }
            written(pending, key, isWritten: false)
            throw error
        }
    }

    /// Ends the write of a reservation's counts: the store now has at least `count`. Both values
    /// change at once, so that no other thread misses both.
    private func reserved(_ pending: Int, _ key: Key, count: Int, turn: Int, now: Int64) {
        state.withLock { state in
            var entry = state.entries[key] ?? Entry()
            entry.writing -= pending + 1
            entry.owed -= pending
            if let known = entry.known, now - known.at <= Self.freshness {
                // An earlier write may arrive later: counts only rise.
                if known.count < count { entry.known = Known(count: count, at: known.at) }
            } else if state.turns == turn {
                entry.known = Known(count: count, at: now)
            }
            state.entries[key] = entry == Entry() ? nil : entry
        }
    }

    /// Ends a write: its counts are in the store, or become pending again.
    private func written(_ count: Int, _ key: Key, isWritten: Bool) {
        state.withLock { state in
            var entry = state.entries[key] ?? Entry()
            entry.writing -= count
            entry.owed -= count
            if !isWritten { entry.pending += count }
            state.entries[key] = entry == Entry() ? nil : entry
        }
    }

    /// Takes back a count of `reserve`, for a message that was not accepted after all.
    package func release(account: Int64, kind: CounterKind, day: Int64) throws(StoreFailure) {
        let key = Key(account: account, day: day, kind: kind)
        let isPending = state.withLock { state in
            guard let entry = state.entries[key], entry.pending > 0 else { return false }
            state.entries[key]?.pending -= 1
            return true
        }
        if !isPending { try repository.release(account: account, kind: kind, day: day) }
    }

    /// How many counts were dropped for lack of space since the start.
    package var dropped: Int { state.withLock { $0.dropped } }

    /// Writes the collected counts. If the store is unavailable, it keeps the rest for the next
    /// time and throws the error.
    package func flush() throws(StoreFailure) {
        let counts = state.withLock { state in
            state.turns += 1
            // Entries with only a known count were counted in the store.
            state.forwarded.formUnion(
                state.entries.keys.lazy.filter { $0.kind == .forwarded }.map(\.account))
            let counts = state.entries.filter { $0.value.pending != 0 }.mapValues(\.pending)
            // Known counts are outdated now; counts being written stay
            // included until they are in the store.
            state.entries = state.entries.compactMapValues { entry in
                let writing = entry.writing + entry.pending
                return writing == 0
                    ? nil : Entry(writing: writing, owed: entry.owed + entry.pending)
            }
            return counts
        }
        // After an outage there may be many. They are written in steps, so that other writers wait
        // only for one step.
        var rest = counts.map { (key: $0, count: $1) }.sorted { $0.key.order < $1.key.order }[...]
        while !rest.isEmpty {
            let step = rest.prefix(Self.step)
            do {
                try repository.add(
                    step.map {
                        DailyCounter(
                            accountNumber: $0.key.account, day: $0.key.day, kind: $0.key.kind,
                            count: $0.count)
                    })
            } catch {
                for (key, count) in rest { self.written(count, key, isWritten: false) }
                throw error
            }
            state.withLock { state in
                state.turns += 1
                // A count noted in the meantime may be from before this step.
                for (key, count) in step {
                    guard let known = state.entries[key]?.known else { continue }
                    state.entries[key]?.known = Known(count: known.count + count, at: known.at)
                }
            }
            for (key, count) in step { self.written(count, key, isWritten: true) }
            rest = rest.dropFirst(Self.step)
        }
        try deliveries.flush()
    }

    /// Accounts that messages were forwarded to, counted here before the last flush, each
    /// once. For a single caller.
    package func takeForwarded() -> [Int64] {
        state.withLock { state in
            defer { state.forwarded = [] }
            return state.forwarded.sorted()
        }
    }

    /// Puts back accounts that could not be handled.
    package func putBack(forwarded accounts: [Int64]) {
        state.withLock { $0.forwarded.formUnion(accounts) }
    }
}
