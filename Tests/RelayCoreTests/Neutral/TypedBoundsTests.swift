// The number of guesses that one reply can confirm.

import Testing

@testable import RelayCore

@Suite struct TypedBoundsTests {
    @Test func addresses_beyondFour_makeTheTextNeutral() {
        var bounds = TypedBounds()
        for number in 0..<4 {
            bounds.note(address: Array("a\(number)@home.example".utf8))
            bounds.note(address: Array("a\(number)@home.example".utf8))
        }
        #expect(bounds.mode == .full)
        bounds.note(address: Array("b@home.example".utf8))
        #expect(bounds.mode == .neutral)
    }

    @Test func words_beyondSixteen_areNotLookedFor() {
        var bounds = TypedBounds()
        for number in 0..<16 { bounds.note(word: Array("jane.k\(number)x".utf8)) }
        #expect(bounds.mode == .full)
        bounds.note(word: Array("jane.k77x".utf8))
        #expect(bounds.mode == .withoutWords)
        for number in 0..<5 { bounds.note(address: Array("a\(number)@home.example".utf8)) }
        #expect(bounds.mode == .neutral)
    }

    /// Words of a language, dates and times are not local parts.
    @Test func words_thatArePronouncedOrDates_doNotCount() {
        var bounds = TypedBounds()
        for word in ["market", "berlin", "michael", "2025", "2025-11-20", "10.15.30"] {
            bounds.note(word: Array(word.utf8))
        }
        for number in 0..<16 { bounds.note(word: Array("jane.k\(number)x".utf8)) }
        #expect(bounds.mode == .full)
    }
}
