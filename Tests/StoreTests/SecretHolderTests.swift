// Values that hold keys, printed.

import Accounts
import TestSupport
import Testing

@Suite(.blocking) struct SecretHolderTests {
    /// Printing the store, or a value that contains it, prints no key: neither as text nor through
    /// reflection.
    @Test func store_printedOrDumped_showsNoKey() throws {
        let store = try TestStore(.sqlite).store
        var dumped = ""
        dump(store, to: &dumped)
        for text in ["\(store)", String(reflecting: store)] {
            #expect(text.contains("TombstoneMarks") && text.contains("DecisionMarks"))
            #expect(text.firstMatch(of: /\[\d+(, \d+){7}/)?.output == nil)
        }
        // `dump` prints one octet a line.
        #expect(dumped.contains("TombstoneMarks"))
        #expect(dumped.firstMatch(of: /(\n\s*- \d+){8}/)?.output == nil)
    }
}
