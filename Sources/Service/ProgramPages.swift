// Releases code that only the start needed. A start uses most of the program once, and mail needs
// little of it.

import Glibc

enum ProgramPages {
    /// Removes those pages of the program and its libraries from this process that are identical to
    /// their files. The pages stay in the kernel's cache. Pages that are needed again are mapped
    /// again, sixteen at a time, without a read.
    static func release() {
        // Foundation would read only one page of a file in `/proc`.
        guard let maps = fopen("/proc/self/maps", "re") else { return }
        defer { fclose(maps) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        while getline(&line, &capacity, maps) > 0, let text = line.map({ String(cString: $0) }) {
            guard let range = clean(text),
                let start = UnsafeMutableRawPointer(bitPattern: range.lowerBound)
            else { continue }
            madvise(start, Int(range.upperBound - range.lowerBound), MADV_DONTNEED)
        }
    }

    /// The addresses of a mapping in a line of `/proc/self/maps`; nil if any of its pages may have
    /// been written to. Returned are code (`r-xp`) and read-only mappings at the beginning of a
    /// file. Read-only mappings after the code may be data that the loader wrote before it
    /// protected them.
    static func clean(_ line: String) -> Range<UInt>? {
        // 55d25f9a6000-55d261e21000 r-xp 00000000 fe:00 5753179   /usr/local/bin/postern
        let words = line.split(separator: " ", maxSplits: 5)
        guard words.count == 6, words[4] != "0", words[5].drop(while: { $0 == " " }).hasPrefix("/")
        else { return nil }
        guard words[1] == "r-xp" || words[1] == "r--p" && UInt(words[2], radix: 16) == 0 else {
            return nil
        }
        let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
        guard ends.count == 2, ends[0] < ends[1] else { return nil }
        return ends[0]..<ends[1]
    }
}
