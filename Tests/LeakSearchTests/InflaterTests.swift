// Valid deflate streams, and streams of an attacker who wants to stop the relay.

import Support
import Testing

@testable import LeakSearch

@Suite struct InflaterTests {
    private static let text = String(
        repeating: "Anna writes to the team, and the team writes to Anna. ", count: 3)
    /// `text` as packed by zlib without a header.
    private static let packed =
        "73cccb4b54282fca2c492d5628c95728c9485528494dccd55148cc4b81f390143802d5eb81497ae90200"

    private struct Unpacked {
        var octets: [UInt8] = []
        var end: Int?
    }

    private static func unpacked(
        _ stream: [UInt8], by inflater: Inflater, most: Int = .max
    ) -> Unpacked {
        var result = Unpacked()
        result.end = stream.withUnsafeBufferPointer { octets in
            inflater.inflate(octets) { piece in
                result.octets += piece
                return result.octets.count < most
            }
        }
        return result
    }

    private static func inflater(limit: Int = 10_000_000) -> (inflater: Inflater, work: WorkBudget)
    {
        let work = WorkBudget(limit: limit)
        return (Inflater(work: work), work)
    }

    @Test func stream_octetsBehindIt_endsWhereItEnds() throws {
        let stream = try #require(Hex.decode(Self.packed.utf8))
        let inflater = Self.inflater().inflater
        for more in [[], [0x1F, 0x8B, 8], [UInt8](repeating: 0, count: 9)] {
            let result = Self.unpacked(stream + more, by: inflater)
            #expect(result.octets == Array(Self.text.utf8))
            #expect(result.end == stream.count)
        }
    }

    @Test func stream_truncated_givesWhatPrecedes() throws {
        let stream = try #require(Hex.decode(Self.packed.utf8))
        let inflater = Self.inflater().inflater
        for count in 0..<stream.count {
            let result = Self.unpacked(Array(stream[..<count]), by: inflater)
            #expect(result.end == nil)
            #expect(Array(Self.text.utf8).starts(with: result.octets))
            #expect(count < stream.count - 1 || result.octets.count == Self.text.utf8.count)
        }
    }

    /// A block of an unknown kind, a stored block with a wrong check of its length, and a reference
    /// to a dictionary that does not exist.
    @Test(arguments: ["07", "0001000100", "73c42e0c00"])
    func stream_damaged_isNotTaken(_ hexadecimal: String) throws {
        let stream = try #require(Hex.decode(hexadecimal.utf8))
        let result = Self.unpacked(stream, by: Self.inflater().inflater)
        #expect(result.end == nil)
        #expect(result.octets.count <= 1)
    }

    @Test func stream_muchLargerUnpacked_endsWithTheBudget() {
        let (inflater, work) = Self.inflater(limit: 1_000_000)
        let result = Self.unpacked(
            [0, 1, 0, 0xFE, 0xFF, 0] + Self.zeros(count: 4_000_000), by: inflater)
        #expect(work.isSpent)
        #expect(result.end == nil)
        #expect(result.octets.count <= 1_000_000)
        #expect(result.octets.allSatisfy { $0 == 0 })
    }

    /// A fixed block that repeats the octet before it until it would unpack to this size.
    private static func zeros(count: Int) -> [UInt8] {
        var octets: [UInt8] = []
        var (hold, held) = (0b011, 3)
        for _ in 0..<(count / 258) {
            // The length 258 is symbol 285; its code 1100_0101 is written with its highest bit
            // first. The distance 1 is 00000.
            hold |= 0b1010_0011 << held
            held += 13
            while held >= 8 {
                octets.append(UInt8(hold & 0xFF))
                hold >>= 8
                held -= 8
            }
        }
        return octets
    }

    @Test func blocks_empty_areCharged() {
        let (inflater, work) = Self.inflater(limit: 1_000_000)
        let result = Self.unpacked(
            (0..<20_000).flatMap { _ in [0, 0, 0, 0xFF, 0xFF] as [UInt8] }, by: inflater)
        #expect(work.isSpent)
        #expect(result.end == nil)
        #expect(result.octets.isEmpty)
    }

    @Test func sink_hasEnough_stopsTheStream() {
        let (inflater, work) = Self.inflater()
        let result = Self.unpacked(
            [0, 1, 0, 0xFE, 0xFF, 0] + Self.zeros(count: 1_000_000), by: inflater, most: 1)
        #expect(result.end == nil)
        #expect(result.octets.count == 65_536)
        #expect(!work.isSpent)
    }
}
