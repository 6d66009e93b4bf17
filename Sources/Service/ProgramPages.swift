// The code that starting has used is let go: a start walks once through most of the program, and mail needs little of it.

import Glibc

enum ProgramPages {
    /// Takes the pages of program and libraries that hold nothing but what is in their files out of this process. They stay in
    /// the kernel's cache; what is needed again is mapped again, sixteen pages at a time, without a read.
    static func release() {
        // Foundation takes a file of `/proc` for one of a page.
        guard let maps = fopen("/proc/self/maps", "re") else { return }
        defer { fclose(maps) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        while getline(&line, &capacity, maps) > 0, let text = line.map({ String(cString: $0) }) {
            guard let range = clean(text), let start = UnsafeMutableRawPointer(bitPattern: range.lowerBound) else { continue }
            madvise(start, Int(range.upperBound - range.lowerBound), MADV_DONTNEED)
        }
    }

    /// The addresses of a mapping as `/proc/self/maps` names it, where none of its pages can have been written to; nil for any
    /// other. Such are code (`r-xp`), and what can only be read at the beginning of a file: what is behind the code may be data
    /// that the loader has written to before it protected it.
    static func clean(_ line: String) -> Range<UInt>? {
        // 55d25f9a6000-55d261e21000 r-xp 00000000 fe:00 5753179   /usr/local/bin/postern
        let words = line.split(separator: " ", maxSplits: 5)
        guard words.count == 6, words[4] != "0", words[5].drop(while: { $0 == " " }).hasPrefix("/") else { return nil }
        guard words[1] == "r-xp" || words[1] == "r--p" && UInt(words[2], radix: 16) == 0 else { return nil }
        let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
        guard ends.count == 2, ends[0] < ends[1] else { return nil }
        return ends[0]..<ends[1]
    }
}
