// Digests, MACs, key derivation and sealing against the vectors of their RFCs.

import Dispatch
import MailCrypto
import Testing

struct SymmetricTests {
    @Test func sha256_knownText_givesDigest() {
        #expect(
            SHA256.hash(Array("abc".utf8))
                == hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
        #expect(
            SHA256.hash([UInt8]())
                == hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
    }

    @Test func sha256_inPieces_equalsWhole() {
        let text = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let whole = SHA256.hash(text)
        for size in [1, 63, 64, 65, 999] {
            let hash = SHA256()
            for start in stride(from: 0, to: text.count, by: size) {
                hash.update(text[start..<min(start + size, text.count)])
            }
            hash.update([])
            #expect(hash.finalize() == whole)
            hash.update(AnySequence(text))
            #expect(hash.finalize() == whole, "starts anew after the end")
        }
    }

    @Test(arguments: [
        // RFC 4231, cases 1, 2, 3, 6.
        (
            String(repeating: "0b", count: 20), "4869205468657265",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            String(repeating: "aa", count: 20), String(repeating: "dd", count: 50),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
        ),
        (
            String(repeating: "aa", count: 131),
            "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
        // HMAC without key and message.
        ("", "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
    ])
    func hmac_rfc4231Vectors_givesCode(key: String, message: String, code: String) {
        #expect(HMACSHA256.authenticationCode(for: hex(message), key: hex(key)) == hex(code))
        // One key for many messages, from many threads: none changes the results of another.
        let prepared = HMACSHA256(key: hex(key))
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            #expect(
                prepared.authenticationCode(for: [UInt8(thread)])
                    == HMACSHA256.authenticationCode(for: [UInt8(thread)], key: hex(key)))
            #expect(prepared.authenticationCode(for: hex(message)) == hex(code))
        }
    }

    @Test func constantTimeEqual_anyOctets_comparesThem() {
        #expect(constantTimeEqual([], []))
        #expect(constantTimeEqual([1, 2, 3], [1, 2, 3]))
        #expect(!constantTimeEqual([1, 2, 3], [1, 2, 4]))
        #expect(!constantTimeEqual([1, 2, 3], [1, 2]))
    }

    @Test func hkdf_rfc5869Vectors_givesKey() throws {
        // RFC 5869 A.1 to A.3.
        let key = hex(String(repeating: "0b", count: 22))
        #expect(
            try HKDFSHA256.derive(
                key: key, salt: hex("000102030405060708090a0b0c"),
                info: hex("f0f1f2f3f4f5f6f7f8f9"), length: 42)
                == hex(
                    "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
                ))
        #expect(
            try HKDFSHA256.derive(
                key: Array(0...0x4f), salt: Array(0x60...0xaf), info: Array(0xb0...0xff), length: 82
            )
                == hex(
                    "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
                ))
        #expect(
            try HKDFSHA256.derive(key: key, info: [], length: 42)
                == hex(
                    "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
                ))
        #expect(throws: CryptoError.self) { try HKDFSHA256.derive(key: key, info: [], length: 0) }
        #expect(throws: CryptoError.self) {
            try HKDFSHA256.derive(key: key, info: [], length: 8161)
        }
        #expect(try HKDFSHA256.derive(key: key, info: [], length: 8160).count == 8160)
    }

    @Test func aesGCM_specificationVectors_sealsAsStated() throws {
        // The GCM specification's test cases 13, 14 and 16.
        let zero = [UInt8](repeating: 0, count: 32)
        let nonce = [UInt8](repeating: 0, count: 12)
        #expect(
            try AESGCM.seal([], key: zero, nonce: nonce, associatedData: [])
                == hex("530f8afbc74536b9a963b4f1c4cb738b"))
        #expect(
            try AESGCM.seal(
                [UInt8](repeating: 0, count: 16), key: zero, nonce: nonce, associatedData: [])
                == hex("cea7403d4d606b6e074ec5d3baf39d18 d0d1c8a799996bf0265b98b5d48ab919"))
        let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")
        let plaintext = hex(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
        )
        let data = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
        let sealed = try AESGCM.seal(
            plaintext, key: key, nonce: hex("cafebabefacedbaddecaf888"), associatedData: data)
        #expect(
            sealed
                == hex(
                    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662 76fc6ece0f4e1768cddf8853bb2d551b"
                ))
        #expect(
            try AESGCM.open(
                sealed, key: key, nonce: hex("cafebabefacedbaddecaf888"), associatedData: data)
                == plaintext)
    }

    @Test func aesGCM_changedOctet_isRefused() throws {
        let key = [UInt8](repeating: 7, count: 32)
        let nonce = [UInt8](repeating: 9, count: 12)
        let sealed = try AESGCM.seal(
            Array("secret".utf8), key: key, nonce: nonce, associatedData: [1])
        for index in sealed.indices {
            var touched = sealed
            touched[index] ^= 1
            #expect {
                try AESGCM.open(touched, key: key, nonce: nonce, associatedData: [1])
            } throws: {
                ($0 as? CryptoError)?.code == .authenticationFailed
            }
        }
        #expect(throws: CryptoError.self) {
            try AESGCM.open(sealed, key: key, nonce: nonce, associatedData: [])
        }
        #expect(throws: CryptoError.self) {
            try AESGCM.open([1, 2], key: key, nonce: nonce, associatedData: [1])
        }
        #expect(throws: CryptoError.self) {
            try AESGCM.seal([], key: [1], nonce: nonce, associatedData: [])
        }
        #expect(throws: CryptoError.self) {
            try AESGCM.seal([], key: key, nonce: [1], associatedData: [])
        }
    }

    @Test func aesSIV_rfc5297Vectors_sealsAsStated() throws {
        // RFC 5297 A.1 and A.2.
        let first = try AESSIV.seal(
            hex("112233445566778899aabbccddee"),
            key: hex("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"),
            associatedData: [hex("101112131415161718191a1b1c1d1e1f2021222324252627")])
        #expect(first == hex("85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c"))
        let second = try AESSIV.seal(
            hex(
                "7468697320697320736f6d6520706c61696e7465787420746f20656e6372797074207573696e67205349562d414553"
            ),
            key: hex("7f7e7d7c7b7a79787776757473727170404142434445464748494a4b4c4d4e4f"),
            associatedData: [
                hex(
                    "00112233445566778899aabbccddeeffdeaddadadeaddadaffeeddccbbaa99887766554433221100"
                ),
                hex("102030405060708090a0"),
                hex("09f911029d74e35bd84156c5635688c0"),
            ])
        #expect(
            second
                == hex(
                    "7bdb6e3b432667eb06f4d14bff2fbd0fcb900f2fddbe404326601965c889bf17dba77ceb094fa663b7a3f748ba8af829ea64ad544a272e9c485b62a3fd5c0d"
                ))
    }

    @Test(arguments: [32, 48, 64], [0, 1, 15, 16, 17, 31, 32, 33, 1000])
    func aesSIV_anyLength_opensWhatItSealed(keyLength: Int, length: Int) throws {
        let key = (0..<keyLength).map { UInt8($0) }
        let plaintext = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        for data: [[UInt8]] in [[], [[]], [[], []], [[1]], [Array(0..<200), [2]]] {
            let sealed = try AESSIV.seal(plaintext, key: key, associatedData: data)
            #expect(sealed.count == length + 16)
            #expect(try AESSIV.open(sealed, key: key, associatedData: data) == plaintext)
            // An empty string of associated data counts as a string (CVE-2023-2975).
            #expect(throws: CryptoError.self) {
                try AESSIV.open(sealed, key: key, associatedData: data + [[]])
            }
            var touched = sealed
            touched[touched.count - 1] ^= 0x80
            #expect(throws: CryptoError.self) {
                try AESSIV.open(touched, key: key, associatedData: data)
            }
        }
        #expect(throws: CryptoError.self) { try AESSIV.open([1], key: key, associatedData: []) }
        #expect(throws: CryptoError.self) { try AESSIV.seal([], key: [1], associatedData: []) }
        #expect(throws: CryptoError.self) {
            try AESSIV.seal([], key: key, associatedData: .init(repeating: [], count: 127))
        }
    }

    @Test func secureRandom_askedTwice_differs() throws {
        #expect(try SecureRandom.bytes(count: 32) != SecureRandom.bytes(count: 32))
        #expect(throws: CryptoError.self) { try SecureRandom.bytes(count: 0) }
    }
}
