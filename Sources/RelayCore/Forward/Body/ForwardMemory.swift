// The memory budget that forwards share for the bodies that they keep.

import Synchronization

/// Octets of forwards in memory, over all sessions. Most forwards need no change to their body, but
/// this is known only at the end of the body. So a body is kept while there is memory for it, and
/// is otherwise released. If a released body needs a change, the sender must send the message
/// again. A mark then identifies it, and its body is kept from the beginning.
package final class ForwardMemory: Sendable {
    package let limit: Int

    /// A body up to this size is kept as long as there is any memory. Most bodies are smaller.
    static let small = 32_768
    /// Octets that all bodies not known to need a change may use together. Beyond this, larger
    /// bodies are released. This is the cost of many large forwards at one time, in addition to
    /// that of a session.
    static let undecided = 4_000_000
    /// A body larger than this is rewritten alone, so that only one needs the memory for rewriting.
    static let alone = 1_000_000
    /// Marks of messages that will be sent again. Beyond this number the oldest are dropped, and
    /// the bodies of those messages may be released again.
    static let marks = 1_000
    /// Seconds for which a mark is kept: as long as servers commonly retry.
    static let markSeconds: Int64 = 5 * 86_400

    private struct State {
        var held = 0
        var undecided = 0
        var expected: [[UInt8]: Int64] = [:]
    }

    private let state = Mutex(State())
    private let turn = Mutex(())

    init(limit: Int) { self.limit = limit }

    /// Octets in use.
    package var inUse: Int { state.withLock { $0.held } }

    /// Octets of the largest body that fits while no other is kept; a quarter is reserved for small
    /// ones.
    var largest: Int { limit - limit / 4 }

    /// Reserves octets for a body. If there is no memory, reserves nothing and returns false.
    /// - Parameters:
    ///   - size: octets of the body so far, including these.
    ///   - isNeeded: whether it is known that the body must be rewritten.
    func take(_ octets: Int, size: Int, isNeeded: Bool) -> Bool {
        state.withLock { state in
            let isFree =
                size <= Self.small
                ? octets <= limit - state.held
                : octets <= largest - state.held
                    && (isNeeded || octets <= Self.undecided - state.undecided)
            guard isFree else { return false }
            state.held += octets
            if !isNeeded { state.undecided += octets }
            return true
        }
    }

    /// Releases reserved octets.
    /// - Parameter undecided: how many of them were reserved before it was known that the body must
    ///   be rewritten.
    func give(back octets: Int, undecided: Int) {
        state.withLock { state in
            state.held -= octets
            state.undecided -= undecided
        }
    }

    /// Records a message that will be sent again, for `markSeconds` from `now` (seconds since
    /// 1970).
    func expect(_ mark: [UInt8], now: Int64) {
        state.withLock { state in
            if state.expected.count >= Self.marks {
                for (mark, _) in state.expected.sorted(by: { $0.value < $1.value }).prefix(
                    Self.marks / 2)
                {
                    state.expected[mark] = nil
                }
            }
            state.expected[mark] = now + Self.markSeconds
        }
    }

    /// Whether the message was refused before, and its body must be kept from the beginning.
    /// Computes the mark only if any mark is recorded.
    func isExpected(_ mark: @autoclosure () -> [UInt8], now: Int64) -> Bool {
        guard state.withLock({ !$0.expected.isEmpty }) else { return false }
        let mark = mark()
        return state.withLock { ($0.expected[mark] ?? 0) > now }
    }

    /// Runs `work` on a body. Runs for only one large body at a time.
    func work<Result>(
        on octets: Int, _ work: () throws(Refusal) -> Result
    ) throws(Refusal) -> Result {
        guard octets > Self.alone else { return try work() }
        let outcome: Swift.Result<Result, Refusal> = turn.withLock { _ in
            do throws(Refusal) { return .success(try work()) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}
