// Proofs of work: their price, and texts that are none.

import MailCrypto
import Testing

@testable import SignIn

@Suite struct ProofOfWorkTests {
    private static let solved: (work: ProofOfWork, numbers: [Int]) = {
        let work = ProofOfWork(seed: "seed", effort: 1)
        return (
            work,
            (0..<ProofOfWork.puzzles).map { puzzle in
                (0...).first { work.isSolution($0, of: puzzle) } ?? -1
            }
        )
    }()

    private func text(_ numbers: [Int]) -> [UInt8] {
        Array(numbers.map(String.init).joined(separator: ",").utf8)
    }

    /// RFC 7914 section 11.
    @Test func key_ofTheVectors_isRight() throws {
        let one = try PBKDF2.key(
            password: Array("passwd".utf8), salt: Array("salt".utf8), iterations: 1, length: 8)
        #expect(one == [0x55, 0xAC, 0x04, 0x6E, 0x56, 0xE3, 0x08, 0x9F])
        let many = try PBKDF2.key(
            password: Array("Password".utf8), salt: Array("NaCl".utf8), iterations: 80_000,
            length: 8)
        #expect(many == [0x4D, 0xDC, 0xD8, 0xF6, 0x0B, 0x98, 0xBE, 0x21])
        #expect(throws: CryptoError.self) {
            try PBKDF2.key(password: [], salt: [], iterations: 0, length: 8)
        }
    }

    @Test func solution_ofAll_isTaken() {
        #expect(Self.solved.work.isSolved(by: text(Self.solved.numbers)))
    }

    @Test func solution_ofAnotherSeed_isNot() {
        let other = ProofOfWork(seed: "other", effort: 1)
        #expect(!other.isSolved(by: text(Self.solved.numbers)))
    }

    @Test func text_thatIsNoSolution_isNot() {
        let (work, numbers) = Self.solved
        let right = numbers.map(String.init)
        let rest = Array(right.dropFirst())
        var texts: [[String]] = [[], [""], Array(right.dropLast()), right + ["0"]]
        texts += ["0" + right[0], "+" + right[0], right[0] + " ", "1000000", "-1", "١"].map {
            [$0] + rest
        }
        texts.append(Array(repeating: right[0], count: 16))
        for parts in texts {
            #expect(!work.isSolved(by: Array(parts.joined(separator: ",").utf8)), "\(parts)")
        }
        #expect(!work.isSolved(by: Array(repeating: 0x2C, count: 100_000)))
    }

    /// The effort is the price: twice of it, twice as many tries.
    @Test(arguments: [1, 2, 10, 100]) func effort_ofAPolicy_isTheNumberOfTries(effort: Int) {
        let work = ProofOfWork(seed: "s", effort: effort)
        let share = Double(work.target) / 4_294_967_296
        let expected = 1 / share * Double(ProofOfWork.iterations * ProofOfWork.puzzles)
        #expect(abs(expected / Double(effort * ProofOfWork.unit) - 1) < 0.02)
    }
}
