// Endings of file names.

import LeakSearch
import Testing

struct FileEndingsTests {
    /// An ending that is a top-level domain would hide addresses.
    @Test(arguments: FileEndings.all) func ending_any_isNoTopLevelDomain(_ ending: String) {
        #expect(!TopLevelDomains.contains(Array(ending.utf8)))
        #expect(FileEndings.contains(Array(ending.utf8)))
        #expect(FileEndings.contains(Array(ending.uppercased().utf8)))
    }

    @Test(arguments: ["", "p", "com", "example", "zip", "pngs"])
    func ending_other_isNone(_ text: String) {
        #expect(!FileEndings.contains(Array(text.utf8)))
    }
}
