// The budget that replies and reports share: what is held of them, and what rewriting them takes beside.

import Glibc
import Synchronization

/// Octets that messages whose body is held take, over all sessions. What does not fit is told to come again; what is held waits for its turn
/// to be rewritten, in the order in which it came, so that all of it together stays within the limit.
package final class ReplyMemory: Sendable {
    package let limit: Int

    private struct State {
        /// Held, and kept of what was rewritten.
        var held = 0
        /// Octets of each body that is still to be rewritten.
        var bodies: [ObjectIdentifier: Int] = [:]
        /// What is being rewritten.
        var running = 0
        var usual = 0
        var most = 0
        /// What waits for its turn.
        var queue: [Turn] = []
    }

    private let state = Mutex(State())
    private let interval: Int

    /// - Parameter interval: seconds after which whoever waits is called, so that nobody takes the message for lost: far below what Postfix
    ///   waits for its filter (milter_content_timeout, 300 s).
    package init(limit: Int, interval: Int = 10) {
        self.limit = limit
        self.interval = interval
    }

    /// Octets in use, those granted to what is being rewritten aside.
    package var inUse: Int { state.withLock { $0.held } }

    /// Messages that are being rewritten, and that wait for it.
    package var turns: (running: Int, waiting: Int) { state.withLock { ($0.running, $0.queue.count) } }

    // MARK: What a message takes. `RelayBench --memory` measures it.

    /// A session with its thread, and libmilter's block of the body.
    static let session = 131_072
    /// Octets beside the body while it is rewritten: tables and windows, whatever its size.
    private static let tables = 3_500_000
    /// Octets for each of the body: decoded text, new text, what is new encoded again. Ordinary messages take less.
    private static let usualFactor = 3
    /// The same for a message made of nothing but the dearest there is: empty lines, parts of one octet, soft line breaks.
    private static let mostFactor = 19

    private static func usual(_ octets: Int) -> Int { product(octets, usualFactor) }
    private static func most(_ octets: Int) -> Int { product(octets, mostFactor) }

    private static func product(_ octets: Int, _ factor: Int) -> Int {
        let (product, isOver) = octets.multipliedReportingOverflow(by: factor)
        return isOver ? Int.max / 4 : min(product, Int.max / 4) + tables
    }

    /// The largest body that fits where there is no other.
    /// - Parameters:
    ///   - weight: octets held for each of the body.
    ///   - isRewritten: whether there has to be room to rewrite it.
    func largest(weight: Int, isRewritten: Bool) -> Int {
        max(0, limit - Self.session - (isRewritten ? Self.tables : 0)) / (weight + (isRewritten ? Self.usualFactor : 0))
    }

    // MARK: Holding

    /// Takes octets for a body, where room to rewrite the largest of all is left; false, and nothing taken, where not.
    /// - Parameter size: octets of the body that has to be rewritten, these among them; nil for one that goes as it is.
    func take(_ octets: Int, for body: ObjectIdentifier, size: Int?) -> Bool {
        state.withLock { state in
            let largest = max(size ?? 0, state.bodies.values.max() ?? 0)
            let room = max(state.usual, largest > 0 ? Self.usual(largest) : 0)
            guard octets <= limit - state.held - room else { return false }
            state.held += octets
            if let size { state.bodies[body] = size }
            return true
        }
    }

    func give(back octets: Int, of body: ObjectIdentifier) {
        let next = state.withLock { state in
            state.held -= octets
            state.bodies[body] = nil
            return admit(&state)
        }
        for turn in next { turn.begin() }
    }

    // MARK: Rewriting

    /// Waits until a body may be rewritten. One that is alone always may; others as long as even the dearest kind of message fits.
    /// - Parameter whileWaiting: called again and again until then.
    func begin(_ octets: Int, whileWaiting: () -> Void) {
        let turn: Turn? = state.withLock { state in
            if state.queue.isEmpty, isFree(octets, state) {
                Self.start(octets, &state)
                return nil
            }
            let turn = Turn(octets)
            state.queue.append(turn)
            return turn
        }
        turn?.wait(interval, whileWaiting)
    }

    /// A body was rewritten.
    /// - Parameter keeping: octets that are held from now on beside it: what came out.
    func end(_ octets: Int, keeping: Int, of body: ObjectIdentifier) {
        let next = state.withLock { state in
            state.running -= 1
            state.usual -= Self.usual(octets)
            state.most -= Self.most(octets)
            state.held += keeping
            state.bodies[body] = nil
            return admit(&state)
        }
        for turn in next { turn.begin() }
    }

    private func isFree(_ octets: Int, _ state: State) -> Bool {
        state.running == 0 || Self.most(octets) <= limit - state.held - state.most
    }

    private static func start(_ octets: Int, _ state: inout State) {
        state.running += 1
        state.usual += usual(octets)
        state.most += most(octets)
    }

    /// Takes out of the queue whoever may begin now.
    private func admit(_ state: inout State) -> [Turn] {
        var next: [Turn] = []
        while let first = state.queue.first, isFree(first.octets, state) {
            Self.start(first.octets, &state)
            next.append(state.queue.removeFirst())
        }
        return next
    }

    /// A thread that waits for its turn.
    private final class Turn: @unchecked Sendable {
        let octets: Int
        private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

        init(_ octets: Int) {
            self.octets = octets
            sem_init(semaphore, 0, 0)
        }

        deinit {
            sem_destroy(semaphore)
            semaphore.deallocate()
        }

        func begin() { sem_post(semaphore) }

        func wait(_ interval: Int, _ meanwhile: () -> Void) {
            while true {
                var until = timespec()
                clock_gettime(CLOCK_REALTIME, &until)
                until.tv_sec += interval
                if sem_timedwait(semaphore, &until) == 0 { return }
                if errno == ETIMEDOUT { meanwhile() }
            }
        }
    }
}

/// A body held in memory against the shared budget, which gets it back when the body is let go. Not thread-safe.
final class HeldBody {
    /// Stretches of the body in order, until it is asked for as a whole.
    private var blocks: [[UInt8]] = []
    private(set) var count = 0
    private let budget: ReplyMemory
    private var taken = 0
    private let weight: Int
    private let isRewritten: Bool

    /// The budget is asked for in steps, so that many small chunks cost few locks.
    private static let step = 65_536
    /// A block with the header of an array and of the allocator fills whole pages.
    private static let block = 262_144 - 64

    /// - Parameters:
    ///   - isRewritten: whether it is to be rewritten, and not only handed on.
    ///   - hasCopies: whether the message goes out as a copy too: its original is put together and its dots are stuffed then.
    init(budget: ReplyMemory, isRewritten: Bool, hasCopies: Bool) {
        self.budget = budget
        self.isRewritten = isRewritten
        weight = hasCopies ? 3 : 1
    }

    deinit { budget.give(back: taken, of: ObjectIdentifier(self)) }

    /// Takes the next octets.
    /// - Throws: what the sender is told: to come again where the budget is used up, or that no such message ever fits.
    func append(_ chunk: UnsafeRawBufferPointer) throws(Refusal) {
        guard !chunk.isEmpty else { return }
        let size = count + chunk.count
        let needed = ReplyMemory.session + weight * (size + Self.step - 1) / Self.step * Self.step
        if needed > taken {
            let largest = budget.largest(weight: weight, isRewritten: isRewritten)
            guard size <= largest else { throw .messageTooLarge(largest) }
            guard budget.take(needed - taken, for: ObjectIdentifier(self), size: isRewritten ? size : nil) else { throw .replyMemory }
            taken = needed
        }
        count = size
        // Most messages are one chunk.
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

    /// The whole body. Blocks are given back one by one as they are put together, so that it is there once and not twice.
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

    /// Works on the whole body when it is its turn.
    /// - Parameters:
    ///   - whileWaiting: called again and again until then.
    ///   - keeping: octets that a result takes beside the body for as long as this object lives.
    func rewrite<Result>(
        whileWaiting: () -> Void, keeping: (Result, [UInt8]) -> Int = { _, _ in 0 }, _ work: ([UInt8]) throws(Refusal) -> Result
    ) throws(Refusal) -> Result {
        budget.begin(count, whileWaiting: whileWaiting)
        var kept = 0
        defer {
            taken += kept
            budget.end(count, keeping: kept, of: ObjectIdentifier(self))
        }
        let body = bytes
        let result = try work(body)
        kept = keeping(result, body)
        return result
    }
}
