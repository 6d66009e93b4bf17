// The octets of requests, which differ in one number.

import Foundation

/// Numbers from a seed, so that two runs send the same requests.
struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    /// SplitMix64.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// A request with a place for a number.
struct RequestText {
    private static let digits = 16

    private var octets: [UInt8]
    private let places: [Range<Int>]
    private let numbers: UInt64
    private let stride: UInt64
    private var random = SeededNumbers(1)

    init(host: String, path: String, key: String, body: String, numbers: UInt64, stride: UInt64) {
        let body = body.replacingOccurrences(
            of: "{n}", with: String(repeating: "0", count: Self.digits))
        octets = Array(
            """
            POST \(path) HTTP/1.1\r
            Host: \(host)\r
            Authorization: Bearer \(key)\r
            Content-Type: application/json\r
            Content-Length: \(body.utf8.count)\r
            \r
            \(body)
            """.utf8)
        // Nothing else in our bodies has as many zeros.
        let zeros = Array(repeating: UInt8(ascii: "0"), count: Self.digits)
        let text = octets
        places = (0..<max(0, text.count - Self.digits + 1)).filter {
            Array(text[$0..<$0 + Self.digits]) == zeros
        }.map {
            $0..<$0 + Self.digits
        }
        (self.numbers, self.stride) = (numbers, stride)
    }

    /// The next request.
    mutating func next() -> [UInt8] {
        var number = UInt64.random(in: 1...numbers, using: &random) * stride
        var digits: [UInt8] = []
        for _ in 0..<Self.digits {
            digits.append(UInt8(ascii: "0") + UInt8(number % 10))
            number /= 10
        }
        for place in places { octets.replaceSubrange(place, with: digits.reversed()) }
        return octets
    }
}

/// The times at which requests are due, as if from very many independent people.
struct Arrivals {
    private let rate: Double
    private var random = SeededNumbers(2)

    init(_ rate: Double) { self.rate = rate }

    /// Nanoseconds until the next one.
    mutating func gap() -> UInt64 {
        UInt64(-log(1 - Double.random(in: 0..<1, using: &random)) / rate * 1e9)
    }
}
