// The pattern that Infineon's library left in its RSA keys (CVE-2017-15361, "ROCA"). Anyone with
// the modulus can factor many of them.

package enum ROCA {
    /// The odd primes up to 167: every such modulus is a power of 65537 modulo each of them.
    private static let primes: [UInt32] = [
        3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
        101, 103, 107, 109, 113, 127,
        131,
        137, 139, 149, 151, 157, 163, 167,
    ]

    /// For each prime the remainders that a power of 65537 can have.
    private static let remainders: [Set<UInt32>] = primes.map { prime in
        var powers: Set<UInt32> = []
        var power: UInt32 = 1
        while powers.insert(power).inserted { power = power * (65_537 % prime) % prime }
        return powers
    }

    /// Whether a modulus (big-endian) has the pattern. One modulus of another
    /// origin in 200 million does.
    package static func marks(modulus: [UInt8]) -> Bool {
        zip(primes, remainders).allSatisfy { prime, powers in
            powers.contains(modulus.reduce(0) { ($0 << 8 | UInt32($1)) % prime })
        }
    }
}
