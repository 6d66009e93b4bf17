// The memory of a process stays bounded, for all sequences of sets and removals.

import TestSupport
import Testing

@testable import Decisions

@Suite(.blocking) struct BoundedMemoryTests {
    /// A removed key that is set again must count as new.
    @Test func boundedMemory_keyRemovedAndSetAgain_countsAsNew() {
        var memory = BoundedMemory<String, Int>(capacity: 3)
        memory.set("a", 1)
        memory.remove("a")
        for (value, key) in ["b", "c", "a"].enumerated() { memory.set(key, value) }
        memory.set("d", 4)
        #expect(memory["b"] == nil && memory["c"] == 1 && memory["a"] == 2 && memory["d"] == 4)
        // Set without being removed, it keeps its place.
        memory.set("c", 7)
        memory.set("e", 5)
        #expect(memory["c"] == nil && memory["a"] == 2 && memory.count == 3)
    }

    /// If all values are removed again, the order must not grow.
    @Test func boundedMemory_keysRemoved_staysBounded() {
        var memory = BoundedMemory<Int, Int>(capacity: 10)
        for number in 0..<10_000 {
            memory.set(number, number)
            memory.remove(number)
            #expect(memory.listed <= 30)
        }
        #expect(memory.count == 0)
        for number in 0..<10_000 {
            memory.set(number % 7, number)
            if number % 3 == 0 { memory.remove(number % 7) }
            memory.set(-number, number)
            #expect(memory.listed <= 30 && memory.count <= 10)
            #expect(memory[-number] == number, "the newest is forgotten")
        }
    }
}
