// A price in the user's processor time. Pure.

import MailCrypto
import Support

/// Puzzles that a browser solves with its own `crypto.subtle`, and the server checks at a small
/// part of the cost. PBKDF2 (RFC 8018) is the only slow function that every browser has built in: a
/// program that solves puzzles for an attacker gains little over it.
package struct ProofOfWork: Sendable, Hashable {
    /// Iterations of PBKDF2-HMAC-SHA-256 that one unit of effort needs on average: about half a
    /// second of one core.
    package static let unit = 1_000_000
    /// Many small puzzles take a time that varies little; one large puzzle may take five times the
    /// average.
    package static let puzzles = 16
    /// Of one try.
    package static let iterations = 2_000
    /// A try that is larger was not made by counting from zero. With an effort of 100 the chance
    /// that a puzzle has no solution below it is less than one in 10^70.
    private static let largestTry = 999_999

    /// The same for a check each time: nothing is stored.
    package let seed: String
    /// In units.
    package let effort: Int

    /// - Parameter effort: from 1.
    package init(seed: String, effort: Int) {
        self.seed = seed
        self.effort = max(1, effort)
    }

    /// Tries that a puzzle takes on average.
    package var tries: Int { effort * Self.unit / (Self.puzzles * Self.iterations) }

    /// The first four octets of a solution's key, as a number, are below this.
    package var target: UInt32 { UInt32(0x1_0000_0000 / Int64(max(1, tries))) }

    /// Whether a text has the solution of each puzzle: decimal numbers, with commas between them.
    /// - Parameter text: as the browser sent it; of any length.
    package func isSolved(by text: [UInt8]) -> Bool {
        guard text.count <= Self.puzzles * 7 else { return false }
        let parts = text.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard parts.count == Self.puzzles else { return false }
        // Before any of them is computed: a wrong form costs nothing.
        let numbers = parts.compactMap(Self.number)
        guard numbers.count == parts.count else { return false }
        return numbers.enumerated().allSatisfy { puzzle, number in
            isSolution(number, of: puzzle)
        }
    }

    /// - Parameter puzzle: from 0.
    package func isSolution(_ number: Int, of puzzle: Int) -> Bool {
        guard
            let key = try? PBKDF2.key(
                password: Array("\(number)".utf8), salt: Array("\(seed).\(puzzle)".utf8),
                iterations: Self.iterations, length: 4)
        else { return false }
        return key.reduce(0) { $0 << 8 | UInt32($1) } < target
    }

    /// Decimal, without leading zeros.
    private static func number(_ octets: ArraySlice<UInt8>) -> Int? {
        guard (1...6).contains(octets.count), octets.count == 1 || octets.first != 0x30 else {
            return nil
        }
        var number = 0
        for octet in octets {
            guard octet.isASCIIDigit else { return nil }
            number = number * 10 + Int(octet - 0x30)
        }
        return number <= largestTry ? number : nil
    }
}
