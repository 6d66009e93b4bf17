// Released code comes back automatically, and nothing else is released.

import Foundation
import Testing

@testable import Service

struct ProgramPagesTests {
    @Test(arguments: [
        (
            "55d25f9a6000-55d261e21000 r-xp 00000000 fe:00 5753179                    /usr/local/bin/postern",
            true
        ),
        ("7f26a5a22000-7f26a5a23000 r--p 00000000 fe:00 332717   /usr/lib/a library", true),
        // Data that the loader wrote to before it protected it.
        ("55d261e22000-55d261f2a000 r--p 0247b000 fe:00 5753179  /usr/local/bin/postern", false),
        ("55d261f2a000-55d2621a5000 rw-p 02583000 fe:00 5753179  /usr/local/bin/postern", false),
        ("7f3f58000000-7f3f58021000 rw-p 00000000 00:00 0 ", false),
        ("7ffe651f5000-7ffe651f7000 r-xp 00000000 00:00 0        [vdso]", false),
        // The store's files, to which other processes write.
        (
            "7f26a0000000-7f26a0008000 rw-s 00000000 fe:00 12       /var/lib/postern/postern.db-shm",
            false
        ),
        (
            "7f26a0000000-7f26a0100000 r--s 00000000 fe:00 11       /var/lib/postern/postern.db",
            false
        ),
        ("", false), ("nonsense", false),
    ])
    func clean_mappingLine_acceptsUnchangedFilePagesOnly(line: String, isClean: Bool) {
        #expect((ProgramPages.clean(line) != nil) == isClean)
    }

    @Test func clean_mappingLine_returnsItsAddresses() {
        #expect(ProgramPages.clean("1000-3000 r-xp 00000000 fe:00 5 /bin/x") == 0x1000..<0x3000)
    }

    /// This process releases its own code, including tests that run at the same time, and
    /// continues. The number of pages afterwards does not matter, because other tests bring theirs
    /// back at the same time.
    @Test func release_repeated_keepsProgramRunning() throws {
        for _ in 0..<3 { ProgramPages.release() }
        let text = try JSONSerialization.data(withJSONObject: ["a": [1, 2, 3]])
        #expect(String(decoding: text, as: UTF8.self) == #"{"a":[1,2,3]}"#)
    }
}
