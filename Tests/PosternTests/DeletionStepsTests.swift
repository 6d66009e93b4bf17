// Deletions go on for as long as there is something to delete.

import Testing

@testable import Service

@Suite struct DeletionStepsTests {
    /// A step that took a thousand rows of one table and three of another was taken for the last one: the log of a busy relay was
    /// never shortened to what its retention says.
    @Test func aStepThatDeletesOfTwoTablesIsNotTheLastOne() throws {
        var left = [1_003, 2_000, 1, 0, 7]
        try DeletionSteps.run { left.removeFirst() }
        #expect(left == [7])
    }

    @Test func whatFailsEndsTheDeletion() {
        struct Failure: Error {}
        #expect(throws: Failure.self) { try DeletionSteps.run { throw Failure() } }
    }
}
