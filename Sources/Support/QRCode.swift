// QR codes (ISO/IEC 18004), for what a phone reads from a screen. Pure.

/// A text as a square of dark and light modules: octet mode, error correction level M.
package struct QRCode: Sendable {
    /// Modules on one side, without the light margin of four modules that belongs around it.
    package private(set) var size: Int
    /// Whether modules are dark, row by row.
    private var dark: [Bool]
    /// Modules whose place is fixed: patterns, format and version.
    private var isFixed: [Bool]

    /// Nil for more than 412 octets, which is version 15: a phone reads no denser code
    /// from a screen with ease.
    package init?(_ text: String) {
        let octets = Array(text.utf8)
        guard let version = (1...15).first(where: { octets.count <= Layout($0).capacity }) else {
            return nil
        }
        let layout = Layout(version)
        size = layout.size
        dark = [Bool](repeating: false, count: size * size)
        isFixed = dark
        drawPatterns(layout)
        drawCodewords(layout.codewords(of: octets))
        let masks = (0..<8).map { mask -> QRCode in
            var masked = self
            masked.apply(mask: mask)
            return masked
        }
        self = masks.min { $0.penalty < $1.penalty } ?? self
    }

    /// - Parameters:
    ///   - x: column, from the left.
    ///   - y: row, from the top.
    package func isDark(_ x: Int, _ y: Int) -> Bool { dark[y * size + x] }

    /// The dark modules as data of an SVG path, one unit each.
    package var path: String {
        var path = ""
        for y in 0..<size {
            var x = 0
            while x < size {
                let start = x
                while x < size, isDark(x, y) { x += 1 }
                if x > start { path += "M\(start) \(y)h\(x - start)v1H\(start)z" } else { x += 1 }
            }
        }
        return path
    }

    // MARK: Patterns (sections 6.3, 7.9, 7.10)

    private mutating func set(_ x: Int, _ y: Int, _ isDark: Bool) {
        guard (0..<size).contains(x), (0..<size).contains(y) else { return }
        dark[y * size + x] = isDark
        isFixed[y * size + x] = true
    }

    private mutating func drawPatterns(_ layout: Layout) {
        for place in 0..<size {
            set(6, place, place % 2 == 0)
            set(place, 6, place % 2 == 0)
        }
        for (x, y) in [(3, 3), (size - 4, 3), (3, size - 4)] {
            // With the light separator around it.
            drawSquares(x, y, reach: 4) { $0 != 2 && $0 != 4 }
        }
        let places = layout.alignments
        for x in places {
            for y in places where !isFinder(x, y) { drawSquares(x, y, reach: 2) { $0 != 1 } }
        }
        draw(mask: 0)
        guard layout.version >= 7 else { return }
        let bits = Self.code(layout.version, check: 12, generator: 0x1F25)
        for bit in 0..<18 {
            let (a, b) = (size - 11 + bit % 3, bit / 3)
            set(a, b, bits >> bit & 1 == 1)
            set(b, a, bits >> bit & 1 == 1)
        }
    }

    private func isFinder(_ x: Int, _ y: Int) -> Bool {
        (x, y) == (6, 6) || (x, y) == (6, size - 7) || (x, y) == (size - 7, 6)
    }

    private mutating func drawSquares(_ x: Int, _ y: Int, reach: Int, isDark: (Int) -> Bool) {
        for dy in -reach...reach {
            for dx in -reach...reach { set(x + dx, y + dy, isDark(max(abs(dx), abs(dy)))) }
        }
    }

    /// The format: level M, which is 00, and the mask.
    private mutating func draw(mask: Int) {
        let bits = Self.code(mask, check: 10, generator: 0x537) ^ 0x5412
        func bit(_ place: Int) -> Bool { bits >> place & 1 == 1 }
        for place in 0..<6 { set(8, place, bit(place)) }
        set(8, 7, bit(6))
        set(8, 8, bit(7))
        set(7, 8, bit(8))
        for place in 9..<15 { set(14 - place, 8, bit(place)) }
        for place in 0..<8 { set(size - 1 - place, 8, bit(place)) }
        for place in 8..<15 { set(8, size - 15 + place, bit(place)) }
        set(8, size - 8, true)
    }

    /// A number with the check bits of its BCH code behind it (annexes C and D).
    private static func code(_ number: Int, check: Int, generator: Int) -> Int {
        var rest = number
        for _ in 0..<check { rest = rest << 1 ^ (rest >> (check - 1)) * generator }
        return number << check | rest
    }

    // MARK: Data and masks (sections 7.7 and 7.8)

    private mutating func drawCodewords(_ codewords: [UInt8]) {
        var bit = 0
        var right = size - 1
        while right >= 1 {
            if right == 6 { right = 5 }
            let goesUp = (right + 1) & 2 == 0
            for step in 0..<size {
                for x in [right, right - 1] {
                    let y = goesUp ? size - 1 - step : step
                    guard !isFixed[y * size + x], bit < codewords.count * 8 else { continue }
                    dark[y * size + x] = codewords[bit / 8] >> (7 - bit % 8) & 1 == 1
                    bit += 1
                }
            }
            right -= 2
        }
    }

    private mutating func apply(mask: Int) {
        draw(mask: mask)
        for y in 0..<size {
            for x in 0..<size where !isFixed[y * size + x] {
                let isInverted =
                    switch mask {
                    case 0: (x + y) % 2 == 0
                    case 1: y % 2 == 0
                    case 2: x % 3 == 0
                    case 3: (x + y) % 3 == 0
                    case 4: (x / 3 + y / 2) % 2 == 0
                    case 5: x * y % 2 + x * y % 3 == 0
                    case 6: (x * y % 2 + x * y % 3) % 2 == 0
                    default: ((x + y) % 2 + x * y % 3) % 2 == 0
                    }
                if isInverted { dark[y * size + x].toggle() }
            }
        }
    }

    /// How hard the code is to read: runs, blocks, false finders, and dark
    /// and light out of balance.
    private var penalty: Int {
        var sum = 0
        for line in 0..<size {
            sum += Self.penalty((0..<size).map { isDark($0, line) })
            sum += Self.penalty((0..<size).map { isDark(line, $0) })
        }
        for y in 0..<size - 1 {
            for x in 0..<size - 1 {
                let module = isDark(x, y)
                if module == isDark(x + 1, y), module == isDark(x, y + 1),
                    module == isDark(x + 1, y + 1)
                {
                    sum += 3
                }
            }
        }
        let percent = dark.count(where: { $0 }) * 100 / dark.count
        return sum + abs(percent - 50) / 5 * 10
    }

    private static func penalty(_ line: [Bool]) -> Int {
        var (sum, run) = (0, 1)
        for place in 1...line.count {
            if place < line.count, line[place] == line[place - 1] {
                run += 1
            } else {
                if run >= 5 { sum += run - 2 }
                run = 1
            }
        }
        let finder = [true, false, true, true, true, false, true]
        let light = [Bool](repeating: false, count: 4)
        for start in 0..<max(0, line.count - 10) {
            let part = line[start..<start + 11]
            if part.elementsEqual(finder + light) || part.elementsEqual(light + finder) {
                sum += 40
            }
        }
        return sum
    }
}

/// How codewords lie in a version at level M (tables 1 and 9, annex E).
private struct Layout {
    let version: Int

    init(_ version: Int) { self.version = version }

    /// Check codewords of one block, for versions 1 to 15.
    private static let checks = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24]
    private static let blocks = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10]

    var size: Int { 17 + 4 * version }

    /// The centres of alignment patterns, on both axes.
    var alignments: [Int] {
        guard version > 1 else { return [] }
        let count = version / 7 + 2
        let step = (version * 8 + count * 3 + 5) / (count * 4 - 4) * 2
        return [6] + (0..<count - 1).map { size - 7 - $0 * step }.reversed()
    }

    /// Codewords, those for checking included.
    private var total: Int {
        let patterns = alignments.count
        var modules = (16 * version + 128) * version + 64
        if version >= 2 { modules -= (25 * patterns - 10) * patterns - 55 }
        if version >= 7 { modules -= 36 }
        return modules / 8
    }

    private var check: Int { Self.checks[version - 1] }
    private var blocks: Int { Self.blocks[version - 1] }
    private var data: Int { total - check * blocks }
    private var countLength: Int { version < 10 ? 8 : 16 }

    /// Octets of text.
    var capacity: Int { (data * 8 - 4 - countLength) / 8 }

    /// The codewords in the order in which they are drawn.
    func codewords(of octets: [UInt8]) -> [UInt8] {
        // The mode, the count, the octets and the end do not lie on octets: four bits are in front.
        var bits: [Bool] = []
        func append(_ value: Int, _ length: Int) {
            bits += (0..<length).reversed().map { value >> $0 & 1 == 1 }
        }
        append(0b0100, 4)
        append(octets.count, countLength)
        for octet in octets { append(Int(octet), 8) }
        append(0, min(4, data * 8 - bits.count))
        append(0, (8 - bits.count % 8) % 8)
        var words = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
        }
        for place in 0..<data - words.count { words.append(place % 2 == 0 ? 0xEC : 0x11) }
        return interleaved(words)
    }

    private func interleaved(_ words: [UInt8]) -> [UInt8] {
        let short = total / blocks - check
        let shortBlocks = blocks - total % blocks
        var (parts, checks): ([ArraySlice<UInt8>], [[UInt8]]) = ([], [])
        var start = 0
        let code = ReedSolomon(degree: check)
        for block in 0..<blocks {
            let end = start + short + (block < shortBlocks ? 0 : 1)
            parts.append(words[start..<end])
            checks.append(code.remainder(words[start..<end]))
            start = end
        }
        let data = (0...short).flatMap { place in
            parts.compactMap { place < $0.count ? $0[$0.startIndex + place] : nil }
        }
        return data + (0..<check).flatMap { place in checks.map { $0[place] } }
    }
}

/// The Reed-Solomon code of QR codes, over the field of 256 elements with the polynomial
/// 0x11D (section 7.5.2).
private struct ReedSolomon {
    /// The generator, the highest power left out.
    private let generator: [UInt8]

    init(degree: Int) {
        var polynomial = [UInt8](repeating: 0, count: degree)
        polynomial[degree - 1] = 1
        var root: UInt8 = 1
        for _ in 0..<degree {
            for place in 0..<degree {
                polynomial[place] = Self.product(polynomial[place], root)
                if place + 1 < degree { polynomial[place] ^= polynomial[place + 1] }
            }
            root = Self.product(root, 2)
        }
        generator = polynomial
    }

    func remainder(_ words: ArraySlice<UInt8>) -> [UInt8] {
        var rest = [UInt8](repeating: 0, count: generator.count)
        for word in words {
            let factor = word ^ rest.removeFirst()
            rest.append(0)
            for (place, coefficient) in generator.enumerated() {
                rest[place] ^= Self.product(coefficient, factor)
            }
        }
        return rest
    }

    private static func product(_ a: UInt8, _ b: UInt8) -> UInt8 {
        var product = 0
        for bit in (0..<8).reversed() {
            product = product << 1 ^ (product >> 7) * 0x11D
            if b >> bit & 1 == 1 { product ^= Int(a) }
        }
        return UInt8(product)
    }
}
