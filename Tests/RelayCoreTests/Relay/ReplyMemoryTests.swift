// The budget of replies: the bodies in memory, those in rewriting, and those that wait.

import Concurrency
import Foundation
import InternetMessage
import RelayMilter
import Synchronization
import Testing

@testable import RelayCore

struct ReplyMemoryTests {
    private func body(
        _ octets: Int, in memory: ReplyMemory, isRewritten: Bool = true, hasCopies: Bool = false
    ) throws -> HeldBody {
        let body = HeldBody(budget: memory, isRewritten: isRewritten, hasCopies: hasCopies)
        let content = Self.content(octets)
        try content.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                try body.append(UnsafeRawBufferPointer(rebasing: rest.prefix(65_535)))
                rest = rest.dropFirst(65_535)
            }
        }
        return body
    }

    private static func turn(_ whileWaiting: @escaping () -> Void = {}) -> MilterTurn {
        MilterTurn(interval: .seconds(1), whileWaiting: whileWaiting)
    }

    /// Octets in which no block equals its neighbour.
    private static func content(_ octets: Int) -> [UInt8] {
        var content: [UInt8] = []
        content.reserveCapacity(octets + 1_000)
        // 997 is a prime, so no stretch meets a block in the same way twice.
        while content.count < octets { content += stretch }
        return Array(content.prefix(octets))
    }

    private static let stretch: [UInt8] = (0..<997).map {
        UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8)
    }

    private func outcome(_ work: () throws -> Void) -> String? {
        do { try work() } catch let refusal as Refusal {
            return "\(refusal.reply.code) \(refusal.reply.enhanced)"
        } catch {
            return "\(error)"
        }
        return nil
    }

    @Test(arguments: [0, 1, 4_096, 65_535, 65_536, 131_070, 262_079, 262_080, 327_616, 1_000_000])
    func heldBody_appendedInBlocks_returnsItsOctets(octets: Int) throws {
        let held = try body(octets, in: ReplyMemory(limit: 1 << 28))
        #expect(held.count == octets)
        #expect(held.bytes == Self.content(octets))
        // Requested again, as for copies.
        #expect(held.bytes == Self.content(octets))
    }

    @Test func heldBody_released_freesItsMemory() throws {
        let memory = ReplyMemory(limit: 1 << 28)
        do {
            let small = try body(4_096, in: memory)
            #expect(memory.inUse == ReplyMemory.session + 65_536)
            let large = try body(1_000_000, in: memory)
            #expect(memory.inUse == 2 * ReplyMemory.session + 65_536 + 16 * 65_536)
            _ = (small.count, large.count)
        }
        #expect(memory.inUse == 0)
    }

    @Test func heldBody_withCopies_countsThem() throws {
        let memory = ReplyMemory(limit: 1 << 28)
        let held = try body(1_000_000, in: memory, isRewritten: false, hasCopies: true)
        #expect(memory.inUse >= 3 * held.count)
    }

    @Test func replyMemory_largeBodyHeld_keepsRoomToRewrite() throws {
        let memory = ReplyMemory(limit: 24_000_000)
        let large = try body(3_000_000, in: memory)
        // 24 MB minus a sixth for the small ones, 9 MB and the tables, and minus the bodies already
        // in memory.
        var others: [HeldBody] = []
        var refused: String?
        while refused == nil {
            refused = outcome { others.append(try body(500_000, in: memory)) }
        }
        #expect(refused == "452 4.3.1")
        #expect(memory.inUse <= 20_000_000 - 3 * large.count - 3_500_000 && others.count >= 4)
        // A body that is relayed unchanged needs no memory for rewriting, but it must leave that of
        // others free.
        #expect(outcome { _ = try body(600_000, in: memory, isRewritten: false) } == "452 4.3.1")
    }

    @Test func replyMemory_bodyNeverFits_isRefused() throws {
        let memory = ReplyMemory(limit: 10_000_000)
        let largest = memory.largest(weight: 1, isRewritten: true)
        #expect((1_000_000..<2_500_000).contains(largest))
        #expect(outcome { _ = try body(largest + 1, in: memory) } == "552 5.3.4")
        #expect(memory.inUse == 0)
        #expect(outcome { _ = try body(largest - 65_536, in: memory) } == nil)
    }

    @Test func heldBody_rewritten_countsItsOutput() throws {
        let memory = ReplyMemory(limit: 1 << 28)
        do {
            let held = try body(1_000_000, in: memory)
            let before = memory.inUse
            let pieces = try held.rewrite(
                turn: { nil },
                keeping: {
                    OutgoingMessage(header: HeaderSection(), body: $0, bodyForSigning: []).octets(
                        beside: $1)
                }
            ) { bytes throws(Refusal) in
                #expect(memory.turns == (1, 0))
                return [bytes[..<900_000], Array(repeating: 0, count: 70_000)[...]]
                    as [ArraySlice<UInt8>]?
            }
            #expect(memory.turns == (0, 0) && memory.inUse == before + 70_000 && pieces?.count == 2)
        }
        #expect(memory.inUse == 0)
    }

    @Test func heldBody_rewritingFails_endsItsTurn() throws {
        let memory = ReplyMemory(limit: 1 << 28)
        let held = try body(10_000, in: memory)
        #expect(
            outcome { try held.rewrite(turn: { nil }) { _ throws(Refusal) -> Void in throw .loop } }
                == "554 5.4.6")
        #expect(memory.turns == (0, 0))
    }

    /// Bodies of a megabyte. Two of them would not fit at the same time if they were of the most
    /// costly kind.
    @Test func heldBody_noRoomForTwo_isRewrittenInTurn() throws {
        let memory = ReplyMemory(limit: 40_000_000)
        let bodies = try (0..<12).map { _ in try body(1_000_000, in: memory) }
        let seen = Mutex((running: 0, most: 0, done: 0))
        let over = DispatchGroup()
        for held in bodies.map(Unguarded.init) {
            over.enter()
            Thread.detachNewThread {
                try? held.value.rewrite(turn: { Self.turn() }) { bytes throws(Refusal) in
                    seen.withLock {
                        $0.running += 1
                        $0.most = max($0.most, $0.running)
                    }
                    // Some work, so that the others arrive at the same time.
                    let isWhole = bytes == Self.content(1_000_000)
                    seen.withLock {
                        $0.running -= 1
                        $0.done += isWhole ? 1 : 0
                    }
                }
                over.leave()
            }
        }
        #expect(over.wait(timeout: .now() + 300) == .success)
        let (_, most, done) = seen.withLock { $0 }
        #expect(most == 1 && done == 12 && memory.turns == (0, 0))
    }

    @Test func heldBody_cannotWait_isDeferred() throws {
        let memory = ReplyMemory(limit: 20_000_000)
        let (first, second) = try (body(1_000_000, in: memory), body(1_000_000, in: memory))
        let refused = try first.rewrite(turn: { nil }) { _ throws(Refusal) in
            outcome { try second.rewrite(turn: { nil }) { _ throws(Refusal) in } }
        }
        #expect(refused == "452 4.3.1" && memory.turns == (0, 0))
    }

    /// A 4 kB reply must not wait for a message of 19 MB.
    @Test func heldBody_smallBesideLarge_isRewrittenAtOnce() throws {
        let memory = ReplyMemory(limit: 20_000_000)
        let large = try (0..<2).map { _ in Unguarded(try body(1_000_000, in: memory)) }
        let small = try body(4_096, in: memory)
        let mayEnd = Watch(false)
        let begun = Watch((running: 0, waiting: 0))
        let over = DispatchGroup()
        for held in large {
            over.enter()
            Thread.detachNewThread {
                try? held.value.rewrite(turn: { Self.turn { begun.change { $0.waiting += 1 } } }) {
                    _ throws(Refusal) in
                    begun.change { $0.running += 1 }
                    mayEnd.wait { $0 }
                }
                over.leave()
            }
        }
        begun.wait { $0.running == 1 && $0.waiting > 0 }
        var waited = 0
        #expect(
            try small.rewrite(turn: { Self.turn { waited += 1 } }) { bytes throws(Refusal) in
                bytes.count
            } == 4_096)
        #expect(waited == 0 && memory.turns == (1, 1))
        mayEnd.change { $0 = true }
        #expect(over.wait(timeout: .now() + 300) == .success)
        #expect(memory.turns == (0, 0))
    }

    /// Bodies of many megabytes must not cause the deferral of every small one.
    @Test func replyMemory_usedUpByLargeBodies_holdsSmallOnes() throws {
        let memory = ReplyMemory(limit: 24_000_000)
        var others: [HeldBody] = []
        for size in [500_000, 70_000] {
            while outcome({ others.append(try body(size, in: memory)) }) == nil {}
        }
        let small = try body(65_536, in: memory)
        // A body that grows becomes a large one.
        #expect(outcome { _ = try body(65_537, in: memory) } == "452 4.3.1")
        #expect(
            outcome { try Self.content(1).withUnsafeBytes { try small.append($0) } } == "452 4.3.1")
        #expect(
            try small.rewrite(turn: { nil }) { bytes throws(Refusal) in
                bytes == Self.content(65_536)
            })
        others.removeAll()
        #expect(memory.inUse == ReplyMemory.session + 65_536)
        #expect(outcome { try Self.content(10).withUnsafeBytes { try small.append($0) } } == nil)
        #expect(memory.inUse == ReplyMemory.session + 2 * 65_536)
    }

    @Test func replyMemory_manySmallBodies_isLimited() throws {
        let memory = ReplyMemory(limit: 24_000_000)
        var held: [HeldBody] = []
        var refused: String?
        while refused == nil { refused = outcome { held.append(try body(4_096, in: memory)) } }
        #expect(refused == "452 4.3.1" && memory.inUse <= 24_000_000)
        held.removeAll()
        #expect(memory.inUse == 0)
    }

    @Test func heldBody_roomForTwo_isRewrittenSideBySide() throws {
        let memory = ReplyMemory(limit: 14_000_000)
        let bodies = try (0..<3).map { _ in try body(70_000, in: memory) }
        let started = Watch(0)
        let order = Watch<[Int]>([])
        let mayEnd = Watch(false)
        let told = Watch(0)
        let over = DispatchGroup()
        func start(_ number: Int) {
            let held = Unguarded(bodies[number])
            over.enter()
            Thread.detachNewThread {
                try? held.value.rewrite(turn: { Self.turn { told.change { $0 += 1 } } }) {
                    _ throws(Refusal) in
                    order.change { $0.append(number) }
                    started.change { $0 += 1 }
                    mayEnd.wait { $0 }
                }
                over.leave()
            }
        }
        start(0)
        started.wait { $0 == 1 }
        start(1)
        started.wait { $0 == 2 }
        // The tables of a third body do not fit, so it waits and reports progress repeatedly.
        start(2)
        told.wait { $0 >= 2 }
        #expect(memory.turns == (2, 1))
        mayEnd.change { $0 = true }
        #expect(over.wait(timeout: .now() + 300) == .success)
        order.wait { $0 == [0, 1, 2] }
        #expect(memory.turns == (0, 0))
    }
}

/// Passed from one thread to one other.
private struct Unguarded<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

/// A value that threads wait for.
private typealias Watch = Monitor

extension Monitor {
    fileprivate func change(_ body: (inout State) -> Void) { with(body) }

    /// Returns when the condition is true; fails the test after five minutes.
    fileprivate func wait(_ holds: (State) -> Bool) {
        if !wait(atMost: .seconds(300), until: holds) { Issue.record("waited in vain") }
    }
}
