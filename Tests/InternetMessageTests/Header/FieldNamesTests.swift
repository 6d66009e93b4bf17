// Code that reads many octets at a time, or names by number, gives the same result as the simple
// method.
import InternetMessage
import TestSupport
import Testing

struct FieldNamesTests {
    @Test func fieldNameSet_nameInAnyCase_isFound() {
        let set: FieldNameSet = ["From", "to", "X-Long-Name", "cc", "TO"]
        for (name, isThere) in [
            ("from", true), ("FROM", true), ("To", true), ("tO", true), ("x-long-name", true),
            ("CC", true), ("", false),
            ("fro", false),
            ("form", false), ("frOm1", false), ("x-long-namf", false), ("bc", false),
            (String(repeating: "x", count: 5000), false),
        ] {
            #expect(set.contains(HeaderField(name, "x")) == isThere, "\(name)")
        }
        #expect(!set.contains(HeaderField(bytes: Array("no colon".utf8))))
        #expect(!([] as FieldNameSet).contains(HeaderField("From", "x")))
    }

    /// Compared with the simple method: strings in a dictionary. Uses names that differ in only one
    /// octet, and more of them than fit one table.
    @Test func fieldNameIndex_randomFields_matchesDictionary() {
        var generator = SeededGenerator(seed: 11)
        let letters = Array("aAbB-_@`".utf8)
        for round in 0..<60 {
            let fields = (0..<(round * 7)).map { _ in
                HeaderField(
                    bytes: (0..<Int.random(in: 0...(round % 12), using: &generator)).map { _ in
                        letters.randomElement(using: &generator) ?? 0
                    }
                        + [UInt8(ascii: ":")])
            }
            let index = FieldNameIndex(fields)
            var plain: [String: [Int]] = [:]
            for (position, field) in fields.enumerated() {
                plain[field.name.asciiLowercased, default: []].append(position)
                #expect(index.ordinal(position) == plain[field.name.asciiLowercased]?.count)
            }
            #expect(index.count == plain.count)
            for (name, positions) in plain {
                var name = name
                let number = name.withUTF8 { index.number(of: $0) }
                var found: [Int] = []
                var next = number.map(index.last)
                while let position = next {
                    found.insert(position, at: 0)
                    next = index.above(position)
                }
                #expect(found == positions)
            }
            var other = "no-such-name"
            #expect(other.withUTF8 { index.number(of: $0) } == nil)
        }
    }

    /// The same, octet by octet.
    private func plainControls(_ bytes: [UInt8]) -> HeaderControls {
        var found: HeaderControls = []
        var index = 0
        var isBlankContinuation = false
        while index < bytes.count {
            let octet = bytes[index]
            let next = index + 1 < bytes.count ? bytes[index + 1] : nil
            index += 1
            if octet == 0x0A || octet == 0x0D && next == 0x0A {
                if octet == 0x0A { found.insert(.bareLF) } else { index += 1 }
                if isBlankContinuation { found.insert(.emptyContinuation) }
                isBlankContinuation =
                    index < bytes.count && (bytes[index] == 0x20 || bytes[index] == 0x09)
                if !isBlankContinuation { found.insert(.lineBreak) }
            } else if octet == 0x0D {
                found.insert(.bareCR)
            } else if octet == 0 {
                found.insert(.nul)
            } else if octet != 0x20, octet != 0x09 {
                if octet < 0x20 || octet == 0x7F { found.insert(.otherControl) }
                isBlankContinuation = false
            }
        }
        if isBlankContinuation { found.insert(.emptyContinuation) }
        return found
    }

    @Test func headerControls_anyPosition_areFound() {
        var generator = SeededGenerator(seed: 12)
        let octets: [UInt8] = [
            0x0D, 0x0A, 0x0D, 0x0A, 0x20, 0x20, 0x09, 0, 0x1F, 0x7F, 0x61, 0x80, 0xFF,
        ]
        for round in 0..<4000 {
            var bytes = [UInt8](repeating: 0x61, count: round % 70)
            for _ in 0..<(round % 9) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] =
                    octets.randomElement(using: &generator) ?? 0
            }
            #expect(HeaderControls(scanning: bytes[...]) == plainControls(bytes), "\(bytes)")
            #expect(
                HeaderControls(scanning: ([1] + bytes)[1...]) == plainControls(bytes), "\(bytes)")
        }
        // Each octet alone, at each position of a block.
        for octet in UInt8.min...UInt8.max {
            for place in 0..<33 {
                var bytes = [UInt8](repeating: 0x61, count: 33)
                bytes[place] = octet
                #expect(
                    HeaderControls(scanning: bytes[...]) == plainControls(bytes),
                    "\(octet) at \(place)")
            }
        }
    }

    @Test func firstLineBreak_anyPosition_isFound() {
        for octet in UInt8.min...UInt8.max {
            for place in 0..<33 {
                var bytes = [UInt8](repeating: 0x61, count: 33)
                bytes[place] = octet
                let isBreak = octet == 0x0D || octet == 0x0A
                #expect(
                    bytes.withUnsafeBufferPointer { $0.firstLineBreak() } == (isBreak ? place : 33))
                #expect(bytes.withUnsafeBufferPointer { $0.firstLineBreak(from: place + 1) } == 33)
            }
        }
        #expect([UInt8]().withUnsafeBufferPointer { $0.firstLineBreak() } == 0)
    }
}
