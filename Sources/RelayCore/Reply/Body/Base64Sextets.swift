// The alphabet of base64 and the decoding of its groups, for all searches of base64 runs.

import LeakSearch
import Support

enum Base64Sextets {
    /// Shorter runs cannot contain a real address, and every word of a text is such a run.
    static let minimum = 12
    /// Runs up to this length are tried at each of the four possible starts of a group. Longer ones
    /// begin at a group.
    static let tried = 400

    /// The value of each octet in the base64 alphabets, standard and for URLs; 255 for other
    /// octets.
    static let values: [UInt8] = {
        var table = [UInt8](repeating: 255, count: 256)
        for alphabet in [Base64.alphabet, Base64URL.alphabet] {
            for (value, octet) in alphabet.enumerated() { table[Int(octet)] = UInt8(value) }
        }
        return table
    }()

    /// Decodes sextets; the first begins a group. A single sextet left at the end is ignored, as it
    /// completes no octet.
    /// - Parameter output: is overwritten; must have room for three octets per four sextets, and
    ///   two more.
    @inline(__always)
    static func decode(
        _ sextets: OctetBuffer, from start: Int, to end: Int, into output: OctetBuffer
    ) {
        let (input, result) = (sextets.base, output.base)
        var count = 0
        var index = start
        while index + 4 <= end {
            let group =
                UInt32(input[index]) << 18 | UInt32(input[index + 1]) << 12 | UInt32(
                    input[index + 2]) << 6
                | UInt32(input[index + 3])
            result[count] = UInt8(truncatingIfNeeded: group >> 16)
            result[count + 1] = UInt8(truncatingIfNeeded: group >> 8)
            result[count + 2] = UInt8(truncatingIfNeeded: group)
            count += 3
            index += 4
        }
        if end - index >= 2 {
            result[count] = input[index] << 2 | input[index + 1] >> 4
            count += 1
        }
        if end - index == 3 {
            result[count] = input[index + 1] << 4 | input[index + 2] >> 2
            count += 1
        }
        output.count = count
    }
}
