// The distance by which a mistyped name is found.

import Support
import TestSupport
import Testing

@Suite(.blocking) struct EditDistanceTests {
    @Test(arguments: [
        ("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3),
        ("milter.listen", "mitler.listen", 1), ("ab", "ba", 1),
        ("abc", "ca", 3),
        (String(repeating: "a", count: 101), "a", Int.max),
    ])
    func editDistance_eachEdit_isCounted(_ one: String, _ other: String, _ expected: Int) {
        #expect(editDistance(one, other) == expected && editDistance(other, one) == expected)
    }
}
