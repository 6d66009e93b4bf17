// The memory budget that replies and reports share, for bodies in memory and for their rewriting.

import Synchronization

/// Octets of messages with their body in memory, over all sessions. A message that does not fit is
/// deferred. A message in memory waits for its turn to be rewritten, in order of arrival, so that
/// all of them stay within the limit. A part of the budget is a lane for small messages, so that
/// these need not wait for a large one.
package final class ReplyMemory: Sendable {
    package let limit: Int
    /// The additional budget of forwards: a quarter as much.
    package let forwards: ForwardMemory

    /// The part of the budget for a body or its rewriting.
    enum Lane { case main, small }

    /// The octets in use of a lane's limit.
    private struct Pool {
        let limit: Int
        /// Octets of bodies in memory, and of kept results of rewriting.
        var held = 0
        /// Octets of each body that must still be rewritten.
        var bodies: [ObjectIdentifier: Int] = [:]
        /// Number of bodies that are being rewritten.
        var running = 0
        var usual = 0
        var most = 0
        /// Turns that wait, with the octets of each body.
        var queue: [(octets: Int, turn: any RewritingTurn)] = []

        /// Reserves octets for a body if enough memory remains to rewrite the largest of all.
        /// Otherwise reserves nothing and returns false.
        mutating func take(_ octets: Int, for body: ObjectIdentifier, size: Int?) -> Bool {
            let largest = max(size ?? 0, bodies.values.max() ?? 0)
            let room = max(usual, largest > 0 ? ReplyMemory.usual(largest) : 0)
            guard octets <= limit - held - room else { return false }
            held += octets
            if let size { bodies[body] = size }
            return true
        }

        /// Whether a body may be rewritten now. A body that is alone always may.
        func isFree(_ octets: Int) -> Bool {
            running == 0 || ReplyMemory.most(octets) <= limit - held - most
        }

        mutating func start(_ octets: Int) {
            running += 1
            usual += ReplyMemory.usual(octets)
            most += ReplyMemory.most(octets)
        }

        mutating func end(_ octets: Int) {
            running -= 1
            usual -= ReplyMemory.usual(octets)
            most -= ReplyMemory.most(octets)
        }

        /// Removes from the queue the turns that may begin now.
        mutating func admit() -> [any RewritingTurn] {
            var next: [any RewritingTurn] = []
            while let first = queue.first, isFree(first.octets) {
                start(first.octets)
                next.append(queue.removeFirst().turn)
            }
            return next
        }
    }

    private struct State {
        var main: Pool
        var small: Pool

        subscript(lane: Lane) -> Pool {
            get { lane == .main ? main : small }
            _modify { if lane == .main { yield &main } else { yield &small } }
        }
    }

    private let state: Mutex<State>

    /// - Parameter limit: octets, over all sessions.
    package init(limit: Int) {
        self.limit = limit
        forwards = ForwardMemory(limit: limit / 4)
        let lane = min(Self.laneOctets, limit / 6)
        state = Mutex(State(main: Pool(limit: limit - lane), small: Pool(limit: lane)))
    }

    /// Octets in use, without those of the rewriting in progress.
    package var inUse: Int { state.withLock { $0.main.held + $0.small.held } }

    /// The number of messages in rewriting, and of messages that wait for it.
    package var turns: (running: Int, waiting: Int) {
        state.withLock {
            ($0.main.running + $0.small.running, $0.main.queue.count + $0.small.queue.count)
        }
    }

    // MARK: The memory of a message. `RelayBench --memory` measures it.

    /// A session with its thread, and libmilter's block of the body.
    static let session = 131_072
    /// Additional octets while a body of any size is rewritten: tables and windows.
    private static let tables = 3_500_000
    /// The same for a small body, whose windows are small.
    private static let smallTables = 1_200_000
    /// Octets per octet of the body: decoded text, new text, and new text encoded again. Ordinary
    /// messages need less.
    private static let usualFactor = 3
    /// The same for a message with only the most costly content: empty lines, parts of one octet,
    /// soft line breaks.
    private static let mostFactor = 19

    /// Octets of a body that may use the small lane; most replies have fewer.
    static let smallBody = 65_536
    /// Octets of the small lane, or a sixth of the limit if that is less: for two or three small
    /// bodies in rewriting, and two dozen in memory. If this lane is also full, a small body waits,
    /// or is deferred, like a large one.
    private static let laneOctets = 8_000_000

    private static func usual(_ octets: Int) -> Int { product(octets, usualFactor) }
    private static func most(_ octets: Int) -> Int { product(octets, mostFactor) }

    private static func product(_ octets: Int, _ factor: Int) -> Int {
        let (product, isOver) = octets.multipliedReportingOverflow(by: factor)
        return isOver
            ? Int.max / 4 : min(product, Int.max / 4) + (octets <= smallBody ? smallTables : tables)
    }

    /// The largest body that fits while no other is in memory.
    /// - Parameters:
    ///   - weight: octets of memory per octet of the body.
    ///   - isRewritten: whether memory to rewrite it is also required.
    func largest(weight: Int, isRewritten: Bool) -> Int {
        let limit = limit - min(Self.laneOctets, limit / 6)
        return max(0, limit - Self.session - (isRewritten ? Self.tables : 0))
            / (weight + (isRewritten ? Self.usualFactor : 0))
    }

    // MARK: Holding

    /// Reserves octets for a body. If they do not fit, reserves nothing and returns nil.
    /// - Parameters:
    ///   - octets: all that the body needs from now on.
    ///   - size: octets of the body itself.
    ///   - isRewritten: whether memory to rewrite it is also required, as it is
    ///     not relayed unchanged.
    ///   - before: the lane of the body until now, and the octets reserved in it.
    /// - Returns: the lane of the body from now on.
    func take(
        _ octets: Int, for body: ObjectIdentifier, size: Int, isRewritten: Bool,
        before: (lane: Lane, octets: Int)
    ) -> Lane? {
        let (lane, next): (Lane?, [any RewritingTurn]) = state.withLock { state in
            let rewritten = isRewritten ? size : nil
            if before.lane == .main {
                if state.main.take(octets - before.octets, for: body, size: rewritten) {
                    return (.main, [])
                }
                guard size <= Self.smallBody, before.octets == 0,
                    state.small.take(octets, for: body, size: rewritten)
                else {
                    return (nil, [])
                }
                return (.small, [])
            }
            if size <= Self.smallBody {
                return (
                    state.small.take(octets - before.octets, for: body, size: rewritten)
                        ? .small : nil, []
                )
            }
            // The body is now too large for the small lane.
            guard state.main.take(octets, for: body, size: rewritten) else { return (nil, []) }
            state.small.held -= before.octets
            state.small.bodies[body] = nil
            return (.main, state.small.admit())
        }
        for turn in next { turn.begin() }
        return lane
    }

    func give(back octets: Int, of body: ObjectIdentifier, in lane: Lane) {
        let next = state.withLock { state in
            state[lane].held -= octets
            state[lane].bodies[body] = nil
            return state[lane].admit()
        }
        for turn in next { turn.begin() }
    }

    // MARK: Rewriting

    /// Begins to rewrite a body as soon as even the most costly kind of message fits. A small body
    /// that would have to wait for others uses the small lane.
    /// - Parameter turn: called if the body must wait; creates its turn, or returns nil if the
    ///   caller cannot wait.
    /// - Returns: the lane of the rewriting, for `end`; nil if the body must wait but has no turn.
    func begin(_ octets: Int, turn: () -> (any RewritingTurn)?) -> Lane? {
        let (waiting, lane): ((any RewritingTurn)?, Lane?) = state.withLock { state in
            for lane in [.main, .small] as [Lane] where lane == .main || octets <= Self.smallBody {
                guard state[lane].queue.isEmpty, state[lane].isFree(octets) else { continue }
                state[lane].start(octets)
                return (nil, lane)
            }
            guard let turn = turn() else { return (nil, nil) }
            let lane: Lane = octets <= Self.smallBody ? .small : .main
            state[lane].queue.append((octets, turn))
            return (turn, lane)
        }
        waiting?.wait()
        return lane
    }

    /// Ends the rewriting of a body.
    /// - Parameters:
    ///   - lane: the lane of the rewriting.
    ///   - keeping: additional octets that stay in memory from now on: the result.
    ///   - home: the lane of the body.
    func end(
        _ octets: Int, in lane: Lane, keeping: Int, of body: ObjectIdentifier, heldIn home: Lane
    ) {
        let next = state.withLock { state in
            state[lane].end(octets)
            state[home].held += keeping
            state[home].bodies[body] = nil
            return state.main.admit() + state.small.admit()
        }
        for turn in next { turn.begin() }
    }
}

/// A body's turn to be rewritten. The core has no threads and no clock, so the code that runs
/// transactions provides the waiting.
package protocol RewritingTurn: Sendable {
    /// Says that the rewriting may begin. Called once, by any thread.
    func begin()
    /// Returns when the rewriting may begin.
    func wait()
}

/// A body in memory. Its octets return to the shared budget when the body is released. Not
/// thread-safe.
final class HeldBody {
    /// Chunks of the body in order, until the whole body is requested.
    private var blocks: [[UInt8]] = []
    private(set) var count = 0
    private let budget: ReplyMemory
    private var taken = 0
    private var lane = ReplyMemory.Lane.main
    private let weight: Int
    private let isRewritten: Bool

    /// The budget is reserved in steps, so that many small chunks need few locks.
    private static let step = 65_536
    /// A block, with the headers of its array and of the allocator, fills whole pages.
    private static let block = 262_144 - 64

    /// - Parameters:
    ///   - isRewritten: whether it is rewritten, and not only relayed.
    ///   - hasCopies: whether the message also leaves as a copy. Its original is then assembled,
    ///     and its dots are stuffed.
    init(budget: ReplyMemory, isRewritten: Bool, hasCopies: Bool) {
        self.budget = budget
        self.isRewritten = isRewritten
        weight = hasCopies ? 3 : 1
    }

    deinit { budget.give(back: taken, of: ObjectIdentifier(self), in: lane) }

    /// Takes the next octets.
    /// - Throws: the answer to the sender: to retry if the budget is used up, or that no message of
    ///   this size ever fits.
    func append(_ chunk: UnsafeRawBufferPointer) throws(Refusal) {
        guard !chunk.isEmpty else { return }
        let size = count + chunk.count
        let needed = ReplyMemory.session + weight * (size + Self.step - 1) / Self.step * Self.step
        if needed > taken {
            let largest = budget.largest(weight: weight, isRewritten: isRewritten)
            guard size <= largest else { throw .messageTooLarge(largest) }
            guard
                let lane = budget.take(
                    needed, for: ObjectIdentifier(self), size: size, isRewritten: isRewritten,
                    before: (self.lane, taken))
            else { throw .replyMemory }
            self.lane = lane
            taken = needed
        }
        count = size
        // Most messages have only one chunk.
        guard !blocks.isEmpty else { return blocks.append(Array(chunk)) }
        var rest = chunk[...]
        while !rest.isEmpty {
            if blocks.count == 1 || blocks[blocks.count - 1].count >= Self.block {
                blocks.append([])
                blocks[blocks.count - 1].reserveCapacity(Self.block)
            }
            let part = rest.prefix(Self.block - blocks[blocks.count - 1].count)
            blocks[blocks.count - 1].append(contentsOf: UnsafeRawBufferPointer(rebasing: part))
            rest = rest.dropFirst(part.count)
        }
    }

    /// The complete body. Each block is released once it is appended, so that memory contains the
    /// body only once.
    var bytes: [UInt8] {
        if blocks.count > 1 {
            var whole: [UInt8] = []
            whole.reserveCapacity(count)
            for index in blocks.indices {
                whole += blocks[index]
                blocks[index] = []
            }
            blocks = [whole]
        }
        return blocks.first ?? []
    }

    /// Runs `work` on the complete body when its turn comes.
    /// - Parameters:
    ///   - turn: called if memory is short; creates the turn that `work` waits for, or returns nil
    ///     if the caller cannot wait.
    ///   - keeping: octets of a result that stay in memory for as long as this object.
    func rewrite<Result>(
        turn: () -> (any RewritingTurn)?, keeping: (Result, [UInt8]) -> Int = { _, _ in 0 },
        _ work: ([UInt8]) throws(Refusal) -> Result
    ) throws(Refusal) -> Result {
        guard let running = budget.begin(count, turn: turn) else { throw .replyMemory }
        var kept = 0
        defer {
            taken += kept
            budget.end(count, in: running, keeping: kept, of: ObjectIdentifier(self), heldIn: lane)
        }
        let body = bytes
        let result = try work(body)
        kept = keeping(result, body)
        return result
    }
}
