// Counters gathered in memory and written in batches, off the path of mail.

import Database
import Synchronization

/// Counts from any thread; `flush` writes what has gathered, in few transactions. Whoever owns it flushes every second or so,
/// and again at shutdown. What was counted since the last flush is lost when the process is killed.
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
        /// Counted and not written yet.
        var pending = 0
        /// On its way into the store: where that is slow, no more than a part is ahead of it all the same.
        var writing = 0
        /// Of those, what will be counted there whatever the limit: places that no other may take meanwhile.
        var owed = 0
        /// What the store held when it was last read or written, in seconds since 1970.
        var known: Known?
    }

    /// Distinct counters held while the store is away; beyond it further ones are dropped and counted in `dropped`.
    package static let capacity = 100_000
    /// Written in one transaction: some ten milliseconds where the store is near.
    package static let step = 250

    /// The part of a daily limit that may be counted in memory between two writes. With several hosts each may be ahead of the
    /// others by as much, so the last parts before the limit (`reserved`) are counted in the store, one by one.
    private static let parts = 16
    private static let reserved = 4
    /// Seconds for which a count that was read is good to go by; a transaction may last far longer.
    private static let freshness: Int64 = 10

    private let repository: CounterRepository
    /// Marks of what teams wrote, which are written together with the counts.
    package let marks: MarkBuffer
    private struct State {
        var entries: [Key: Entry] = [:]
        var dropped = 0
        /// Accounts to which messages went, until they are taken.
        var forwarded: Set<Int64> = []
        /// Beginnings and ends of flushes: what was read before one of them is no longer what the store holds.
        var turns = 0
    }

    private let state = Mutex(State())

    package init(_ repository: CounterRepository) {
        self.repository = repository
        marks = MarkBuffer(repository)
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

    /// Tells what a counter was at in the store, so that `reserve` need not ask.
    package func note(_ count: Int, account: Int64, kind: CounterKind, day: Int64, now: Int64) {
        state.withLock { state in
            let key = Key(account: account, day: day, kind: kind)
            guard state.entries.count < Self.capacity || state.entries[key] != nil else { return }
            // Who read earlier may come later: counts rise.
            if let known = state.entries[key]?.known, known.count > count, now - known.at <= Self.freshness { return }
            state.entries[key, default: Entry()].known = Known(count: count, at: now)
        }
    }

    /// Counts one more unless that would pass the limit; whether it was counted. In memory while the limit is far away, in the
    /// store from there on. One process never passes the limit; of several hosts each passes it by a sixteenth at most, where all
    /// of them have as much within a second.
    package func reserve(account: Int64, kind: CounterKind, day: Int64, limit: Int, now: Int64) throws(StoreFailure) -> Bool {
        let key = Key(account: account, day: day, kind: kind)
        let part = limit / Self.parts
        let (pending, owed, turn): (Int?, Int, Int) = state.withLock { state in
            var entry = state.entries[key] ?? Entry()
            defer { if entry != Entry() { state.entries[key] = entry } }
            let ahead = entry.pending + entry.writing
            if let known = entry.known, now - known.at <= Self.freshness, ahead < part,
                known.count + ahead < limit - Self.reserved * part
            {
                entry.pending += 1
                return (nil, 0, state.turns)
            }
            // Whatever happens to these, they are written with this one, or come back. This one is in view as well until the
            // count is known.
            defer {
                entry.writing += entry.pending + 1
                entry.owed += entry.pending
                entry.pending = 0
            }
            return (entry.pending, entry.owed, state.turns)
        }
        guard let pending else { return true }
        do {
            let count = try repository.reserve(account: account, kind: kind, day: day, limit: limit - owed, adding: pending)
            reserved(pending, key, count: count ?? limit, turn: turn, now: now)
            return count != nil
        } catch {
            state.withLock { $0.entries[key]?.writing -= 1 }
            written(pending, key, isWritten: false)
            throw error
        }
    }

    /// What a reservation wrote is no longer on its way, and the store holds at least `count`: both at once, so that no other
    /// thread misses both.
    private func reserved(_ pending: Int, _ key: Key, count: Int, turn: Int, now: Int64) {
        state.withLock { state in
            var entry = state.entries[key] ?? Entry()
            entry.writing -= pending + 1
            entry.owed -= pending
            if let known = entry.known, now - known.at <= Self.freshness {
                // Who wrote earlier may come later: counts rise.
                if known.count < count { entry.known = Known(count: count, at: known.at) }
            } else if state.turns == turn {
                entry.known = Known(count: count, at: now)
            }
            state.entries[key] = entry == Entry() ? nil : entry
        }
    }

    /// What was on its way into the store is there, or comes back.
    private func written(_ count: Int, _ key: Key, isWritten: Bool) {
        state.withLock { state in
            var entry = state.entries[key] ?? Entry()
            entry.writing -= count
            entry.owed -= count
            if !isWritten { entry.pending += count }
            state.entries[key] = entry == Entry() ? nil : entry
        }
    }

    /// Gives back what `reserve` counted, for a message that was not taken after all.
    package func release(account: Int64, kind: CounterKind, day: Int64) throws(StoreFailure) {
        let key = Key(account: account, day: day, kind: kind)
        let isPending = state.withLock { state in
            guard let entry = state.entries[key], entry.pending > 0 else { return false }
            state.entries[key]?.pending -= 1
            return true
        }
        if !isPending { try repository.release(account: account, kind: kind, day: day) }
    }

    /// How many were dropped for lack of room since the start.
    package var dropped: Int { state.withLock { $0.dropped } }

    /// Writes what has gathered. Where the store is away, what is not written yet is kept for the next time, and the error is
    /// thrown.
    /// - Parameter now: of what the audit says of it, in seconds since 1970; nil for the beginning of its day.
    package func flush(now: Int64? = nil) throws(StoreFailure) {
        try marks.flush()
        let counts = state.withLock { state in
            state.turns += 1
            // Those known alone were counted in the store.
            state.forwarded.formUnion(state.entries.keys.lazy.filter { $0.kind == .forwarded }.map(\.account))
            let counts = state.entries.filter { $0.value.pending != 0 }.mapValues(\.pending)
            // What was known is too old with this; what is on its way stays in view until it is there.
            state.entries = state.entries.compactMapValues { entry in
                let writing = entry.writing + entry.pending
                return writing == 0 ? nil : Entry(writing: writing, owed: entry.owed + entry.pending)
            }
            return counts
        }
        // After trouble they may be many: other writers wait for some of them at most.
        var rest = counts.map { (key: $0, count: $1) }.sorted { $0.key.order < $1.key.order }[...]
        while !rest.isEmpty {
            let step = rest.prefix(Self.step)
            do {
                try repository.add(
                    step.map { DailyCounter(accountNumber: $0.key.account, day: $0.key.day, kind: $0.key.kind, count: $0.count) },
                    now: now)
            } catch {
                for (key, count) in rest { self.written(count, key, isWritten: false) }
                throw error
            }
            state.withLock { state in
                state.turns += 1
                // What was noted meanwhile may be from before this.
                for (key, count) in step {
                    guard let known = state.entries[key]?.known else { continue }
                    state.entries[key]?.known = Known(count: known.count + count, at: known.at)
                }
            }
            for (key, count) in step { self.written(count, key, isWritten: true) }
            rest = rest.dropFirst(Self.step)
        }
    }

    /// Accounts to which messages went, as far as they were counted here before the last flushes, each once. Of one caller.
    package func takeForwarded() -> [Int64] {
        state.withLock { state in
            defer { state.forwarded = [] }
            return state.forwarded.sorted()
        }
    }

    /// Gives back what was taken and could not be looked at.
    package func putBack(forwarded accounts: [Int64]) { state.withLock { $0.forwarded.formUnion(accounts) } }
}
