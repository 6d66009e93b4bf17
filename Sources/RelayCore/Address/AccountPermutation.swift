// Writes account numbers in tokens under a keyed permutation, so that a team cannot recognise
// consecutive numbers.

import MailCrypto

/// A permutation of the numbers below 2^35 under a token key: a Feistel network over 18 and 17 bits
/// with HMAC-SHA-256 as its round function. Teams see its output. They know some of the accounts
/// behind it, but none of the numbers.
struct AccountPermutation {
    /// The kind of number. Each series has its own permutation, so that equal numbers in two series
    /// look different.
    enum Series: UInt8 {
        case account = 0x61
        case verification = 0x63
    }

    /// Luby and Rackoff need four rounds; this is twice as many.
    private static let rounds: UInt8 = 8
    private static let label = Array("postern account number 1\n".utf8)
    /// Bits of the right half; the left half has 18.
    private static let rightBits: UInt64 = 17

    let key: HMACSHA256
    let series: Series

    /// The permuted number, as tokens write it.
    func hidden(_ number: UInt64) -> UInt64 {
        var left = number >> Self.rightBits
        var right = number & (1 << Self.rightBits - 1)
        for round in 0..<Self.rounds { step(round, &left, &right) }
        return left << Self.rightBits | right
    }

    /// The number behind a permuted one.
    func revealed(_ written: UInt64) -> UInt64 {
        var left = written >> Self.rightBits
        var right = written & (1 << Self.rightBits - 1)
        for round in (0..<Self.rounds).reversed() { step(round, &left, &right) }
        return left << Self.rightBits | right
    }

    /// One round changes one half by the other. The same round again undoes the change.
    private func step(_ round: UInt8, _ left: inout UInt64, _ right: inout UInt64) {
        if round % 2 == 0 {
            left ^= code(round, right) >> (64 - 18)
        } else {
            right ^= code(round, left) >> (64 - Self.rightBits)
        }
    }

    private func code(_ round: UInt8, _ half: UInt64) -> UInt64 {
        var message = Self.label
        message.reserveCapacity(message.count + 5)
        message += [
            series.rawValue, round, UInt8(truncatingIfNeeded: half >> 16),
            UInt8(truncatingIfNeeded: half >> 8),
            UInt8(truncatingIfNeeded: half),
        ]
        return key.authenticationCode(for: message).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
