// RSA and Ed25519 keys: making, writing, reading, use by several threads, refusal.

import Foundation
import MailCrypto
import Testing

struct KeyTests {
    @Test(arguments: [1024, 2048]) func rsaKey_generated_signsAndVerifies(bits: Int) throws {
        let key = try RSAPrivateKey.generate(bits: bits)
        let again = try RSAPrivateKey(pem: key.pem())
        #expect(key.bitCount == bits && again.bitCount == bits)
        let publicKey = try RSAPublicKey(der: key.publicKeyInfo())
        #expect(publicKey.bitCount == bits)
        let digest = SHA256.hash(Array("abc".utf8))
        var signature = try again.signSHA256(digest: digest)
        #expect(signature.count == bits / 8)
        #expect(publicKey.verifySHA256(digest: digest, signature: signature))
        signature[0] ^= 1
        #expect(!publicKey.verifySHA256(digest: digest, signature: signature))
        #expect(!publicKey.verifySHA256(digest: digest, signature: []))
        #expect(!publicKey.verifySHA256(digest: [], signature: signature))
        #expect(throws: CryptoError.self) { try key.signSHA256(digest: [1]) }
    }

    /// Contexts are reused. Neither an earlier failure nor another thread at the same time changes
    /// a result.
    @Test func rsaKey_contextsReused_keepsNothing() throws {
        let key = try RSAPrivateKey.generate(bits: 1024)
        let publicKey = try RSAPublicKey(der: key.publicKeyInfo())
        let digests = (0..<16).map { SHA256.hash([UInt8($0)]) }
        let signatures = try digests.map { try key.signSHA256(digest: $0) }
        DispatchQueue.concurrentPerform(iterations: 12) { thread in
            for round in 0..<60 {
                let (one, other) = ((thread + round) % 16, (thread + round + 1) % 16)
                #expect(!publicKey.verifySHA256(digest: digests[one], signature: signatures[other]))
                #expect(publicKey.verifySHA256(digest: digests[one], signature: signatures[one]))
                #expect((try? key.signSHA256(digest: digests[other])) == signatures[other])
                #expect(!publicKey.verifySHA256(digest: digests[one], signature: [1]))
            }
        }
    }

    @Test func ed25519Key_rfc8032Vector_signsAndVerifies() throws {
        // RFC 8032 section 7.1, test 3.
        let key = try Ed25519PrivateKey(
            rawBytes: hex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7"))
        #expect(
            try key.rawPublicKey()
                == hex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025"))
        let signature = try Ed25519PrivateKey(pem: key.pem()).sign(hex("af82"))
        #expect(
            signature
                == hex(
                    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
                ))
        let publicKey = try Ed25519PublicKey(rawBytes: key.rawPublicKey())
        #expect(publicKey.verify(signature: signature, message: hex("af82")))
        #expect(!publicKey.verify(signature: signature, message: hex("af83")))
        #expect(!publicKey.verify(signature: [], message: []))
        #expect(try key.sign([]).count == 64)
        #expect(
            try Ed25519PrivateKey.generate().rawPublicKey()
                != Ed25519PrivateKey.generate().rawPublicKey())
    }

    @Test func keys_ofOtherKindOrDamaged_areRefused() throws {
        let rsa = try RSAPrivateKey.generate(bits: 1024)
        let ed25519 = try Ed25519PrivateKey.generate()
        #expect(throws: CryptoError.self) { try RSAPrivateKey(pem: ed25519.pem()) }
        #expect(throws: CryptoError.self) { try Ed25519PrivateKey(pem: rsa.pem()) }
        #expect(throws: CryptoError.self) { try RSAPublicKey(der: rsa.publicKeyInfo() + [0]) }
        #expect(throws: CryptoError.self) {
            try RSAPublicKey(der: Array(rsa.publicKeyInfo().dropLast()))
        }
        #expect(throws: CryptoError.self) {
            try RSAPublicKey(der: hex("302a300506032b6570032100") + ed25519.rawPublicKey())
        }
        #expect(throws: CryptoError.self) { try RSAPublicKey(der: []) }
        #expect(throws: CryptoError.self) {
            try RSAPublicKey(der: [UInt8](repeating: 0x30, count: 5000))
        }
        #expect(throws: CryptoError.self) { try Ed25519PublicKey(rawBytes: [1]) }
        // Every octet of a key may be changed without a crash. A result that is still readable is
        // another key.
        let der = try rsa.publicKeyInfo()
        let signature = try rsa.signSHA256(message: [])
        #expect(try RSAPublicKey(der: der).verifySHA256(message: [], signature: signature))
        for index in der.indices {
            for value: UInt8 in [0, 0x7F, 0x80, 0x82, 0xFF] {
                var touched = der
                touched[index] = value
                if touched != der, let key = try? RSAPublicKey(der: touched) {
                    #expect(!key.verifySHA256(message: [], signature: signature))
                }
            }
            #expect(throws: CryptoError.self) { try RSAPublicKey(der: Array(der[..<index])) }
        }
        for pem in [
            "", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            #expect { try RSAPrivateKey(pem: pem) } throws: {
                ($0 as? CryptoError)?.code == .invalidKey
            }
        }
        #expect(throws: CryptoError.self) { try RSAPrivateKey.generate(bits: 512) }
    }

    @Test func privateKey_encryptedPEM_isRefused() {
        // Encrypted PKCS#8 (pass phrase "x"): reading must fail at once and must not prompt on the
        // terminal.
        let pem = """
            -----BEGIN ENCRYPTED PRIVATE KEY-----
            MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiXoTUBpBnjkAICCAAw
            DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEJ+/oWZzEoshNecYUuHhAVcEQJgj
            Kktj/TNfSMfDH3aJcrWYWwTR19U72EcCA//9vy2rxuurlHOGBVQsqneNC7e8pwEc
            78E/x3ni90S2zdxrCBA=
            -----END ENCRYPTED PRIVATE KEY-----
            """
        #expect(throws: CryptoError.self) { try Ed25519PrivateKey(pem: pem) }
    }

    @Test func rsaKey_sharedBetweenThreads_signsAndVerifies() async throws {
        let key = try RSAPrivateKey.generate(bits: 1024)
        let publicKey = try RSAPublicKey(der: key.publicKeyInfo())
        let valid = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<64 {
                group.addTask {
                    let digest = SHA256.hash([UInt8(number)])
                    return publicKey.verifySHA256(
                        digest: digest, signature: try key.signSHA256(digest: digest))
                }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(valid == 64)
    }

    /// Verifications, each with its own key, valid and invalid: the memory must not grow. One
    /// leaked context, key or signature each time (200 octets or more) makes 1,400 pages in every
    /// round. Other tests at the same time do not use memory in every round, so one round below the
    /// limit is the proof.
    @Test func verification_repeated_leaksNothing() throws {
        let key = try RSAPrivateKey.generate(bits: 1024)
        let der = try key.publicKeyInfo()
        let digest = SHA256.hash([1])
        let signature = try key.signSHA256(digest: digest)
        let ed25519 = try Ed25519PrivateKey.generate()
        let raw = try ed25519.rawPublicKey()
        let other = try ed25519.sign(digest)
        func verify(_ times: Int) throws {
            for number in 0..<times {
                if number % 2 == 0 {
                    let valid = try RSAPublicKey(der: der).verifySHA256(
                        digest: digest, signature: number % 4 == 0 ? signature : der)
                    #expect(valid == (number % 4 == 0))
                    _ = try? RSAPublicKey(der: raw)
                } else {
                    #expect(
                        try Ed25519PublicKey(rawBytes: raw).verify(
                            signature: other, message: digest))
                }
            }
        }
        try verify(10_000)
        var grown: [Int] = []
        repeat {
            let before = try residentPages()
            try verify(30_000)
            grown.append(try residentPages() - before)
        } while grown.min() ?? 0 >= 1_000 && grown.count < 12
        #expect(grown.min() ?? 0 < 1_000, "resident memory grew by \(grown) pages")
    }

    private func residentPages() throws -> Int {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(
            separator: " ")
        return try #require(fields.dropFirst().first.flatMap { Int($0) })
    }
}
