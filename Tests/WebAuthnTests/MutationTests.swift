// Every signed octet, altered once: refused. Random and cut input: refused, never a trap.

import Foundation
import PasskeyTesting
import Support
import TestSupport
import Testing

@testable import WebAuthn

@Suite(.blocking) struct MutationTests {
    /// Alters each octet of a member of a line, and returns the positions at which it was still
    /// accepted.
    private func survivors(_ ceremony: PublicCeremony, _ member: String) throws -> [Int] {
        let digits = try #require(ceremony.line[member] as? String)
        let octets = try #require(Hex.decode(digits.utf8))
        var survivors: [Int] = []
        var changed = ceremony
        for index in octets.indices {
            var altered = octets
            altered[index] ^= index % 2 == 0 ? 0x01 : 0x80
            changed.line[member] = Hex.encode(altered)
            if try changed.answer()["valid"] == .bool(true) { survivors.append(index) }
        }
        return survivors
    }

    /// In a registration that its authenticator signed, nothing may change, and nothing in the
    /// certificates that lead to the root.
    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func registration_anySignedOctetChanged_isRefused() throws {
        let signed = [
            "Self Attestation", "Packed Attestation with ES256", "Packed Attestation with RS256",
            "Apple", "Android Key",
        ]
        let vectors = try PublicCeremonies.standard().filter { vector in
            vector.name.hasPrefix("create") && signed.contains { vector.name.contains($0) }
        }
        #expect(vectors.count == signed.count)
        for vector in vectors {
            for member in ["attestation_object", "client_data_json", "challenge"] {
                #expect(try survivors(vector, member).isEmpty, "\(vector.name): \(member)")
            }
        }
    }

    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func signIn_anyOctetChanged_isRefused() throws {
        let vectors = try PublicCeremonies.standard().filter { $0.name.hasPrefix("get") }
        #expect(vectors.count == 15)
        for vector in vectors {
            for member in ["authenticator_data", "client_data_json", "signature", "challenge"] {
                #expect(try survivors(vector, member).isEmpty, "\(vector.name): \(member)")
            }
        }
    }

    /// Without a signature some octets may change, but not the hash, the presence and the key;
    /// nothing traps.
    @Test func registration_mutated_neverTraps() throws {
        var generator = SeededGenerator(seed: 18)
        var authenticator = try TestAuthenticator(.create)
        authenticator.statementFormat = "packed"
        let (object, clientData) = (
            try authenticator.attestationObject(), Array(authenticator.clientData.utf8)
        )
        var refused = 0
        for round in 0..<3000 {
            var altered = object
            if round % 3 == 0 {
                altered.removeLast(Int.random(in: 1...altered.count, using: &generator))
            }
            for _ in 0..<Int.random(in: 1...4, using: &generator) where !altered.isEmpty {
                altered[Int.random(in: altered.indices, using: &generator)] = UInt8.random(
                    in: 0...255, using: &generator)
            }
            guard altered != object else { continue }
            do {
                _ = try authenticator.relyingParty.register(
                    clientData: clientData, attestationObject: altered,
                    challenge: TestAuthenticator.challenge)
            } catch {
                refused += 1
            }
        }
        #expect(refused > 2990)
    }
}
