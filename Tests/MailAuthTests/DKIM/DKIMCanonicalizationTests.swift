// Canonicalization compared with a simple implementation of RFC 6376, in chunks of every size; tag
// lists, base64; mutations.

import InternetMessage
import MailCrypto
import Support
import TestSupport
import Testing

@testable import MailAuth

struct DKIMCanonicalizationTests {
    /// The rules of section 3.4 applied to a whole body, step by step as written there.
    private func plain(_ kind: DKIMCanonicalization, _ body: [UInt8]) -> [UInt8] {
        var output = [UInt8]()
        var index = 0
        while index < body.count {
            if kind == .relaxed, body[index] == 32 || body[index] == 9 {
                var next = index
                while next < body.count, body[next] == 32 || body[next] == 9 { next += 1 }
                if !(next + 1 < body.count && body[next] == 13 && body[next + 1] == 10) {
                    output.append(32)
                }
                index = next
            } else {
                output.append(body[index])
                index += 1
            }
        }
        while output.suffix(2) == [13, 10] { output.removeLast(2) }
        return output.isEmpty && kind == .relaxed ? [] : output + [13, 10]
    }

    @Test(arguments: [DKIMCanonicalization.simple, .relaxed])
    func canonicalBody_anyChunks_matchesPlainReading(kind: DKIMCanonicalization) {
        var generator = SeededGenerator(seed: 7)
        let alphabets: [[UInt8]] = [
            [32, 9, 13, 10, 97], [13, 10], [32, 9], [97, 98, 99, 100, 101, 32, 102, 103, 13, 10],
            [32, 13],
            [0, 11, 12, 31, 32, 33, 255, 10],
        ]
        for round in 0..<3000 {
            let alphabet = alphabets[round % alphabets.count]
            var body = [UInt8]()
            for _ in 0..<Int.random(in: 0...120, using: &generator) {
                // CRLF as a pair more often than by chance.
                if Int.random(in: 0..<6, using: &generator) == 0 {
                    body += [13, 10]
                } else {
                    body.append(alphabet.randomElement(using: &generator) ?? 0)
                }
            }
            let expected = plain(kind, body)
            for chunk in [1, 2, 3, 5, 16, 17, 18, 33, 1000] {
                let output = canonicalBody(kind, body, chunk: chunk)
                guard output == expected else {
                    Issue.record(
                        "\(kind) of \(body) in chunks of \(chunk): \(output), not \(expected)")
                    return
                }
            }
            var output = [UInt8]()
            let canonicalizer = DKIMBodyCanonicalizer(kind) { output.append(contentsOf: $0) }
            var start = 0
            while start < body.count {
                let end = min(body.count, start + Int.random(in: 0...40, using: &generator))
                body[start..<end].withUnsafeBytes { canonicalizer.update($0) }
                start = end
            }
            canonicalizer.finish()
            #expect(output == expected)
        }
    }

    @Test func canonicalBody_longRuns_matchesPlainReading() {
        var generator = SeededGenerator(seed: 8)
        var body = [UInt8]()
        for length in [2047, 2048, 2049, 16383, 16384, 16385, 40000] {
            body +=
                [UInt8](repeating: 0x61, count: length) + [32, 32, 13, 10]
                + [UInt8](repeating: 32, count: length) + [
                    13, 10, 13, 10,
                ]
            body += (0..<length).map { _ in
                [97, 32, 98, 99][Int.random(in: 0..<4, using: &generator)]
            }
        }
        for kind in [DKIMCanonicalization.simple, .relaxed] {
            let expected = plain(kind, body)
            for chunk in [1000, 2048, 65536, 1 << 20] {
                #expect(canonicalBody(kind, body, chunk: chunk) == expected)
            }
        }
    }

    @Test func canonicalBody_empty_isAsInRFC6376() {
        #expect(canonicalBody(.simple, [], chunk: 1) == [13, 10])
        #expect(canonicalBody(.relaxed, [], chunk: 1) == [])
        #expect(canonicalBody(.simple, [13, 10, 13, 10], chunk: 1) == [13, 10])
        #expect(canonicalBody(.relaxed, [32, 13, 10, 13, 10], chunk: 1) == [])
        // RFC 6376 sections 3.4.3 and 3.4.4.
        let simple = DKIMBodyHashes([.init(canonicalization: .simple, length: nil)]).finish()
        #expect(
            simple.values.map { Base64.encodeUnbroken($0.sha256) } == [
                Array("frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY=".utf8)
            ]
        )
        let relaxed = DKIMBodyHashes([.init(canonicalization: .relaxed, length: nil)]).finish()
        #expect(
            relaxed.values.map { Base64.encodeUnbroken($0.sha256) } == [
                Array("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".utf8)
            ])
    }

    @Test func canonicalHeader_simpleOrRelaxed_isAsInRFC6376() {
        func form(_ kind: DKIMCanonicalization, _ text: String) -> String {
            var output = [UInt8]()
            kind.append(HeaderField(bytes: Array(text.utf8)), to: &output)
            return String(decoding: output, as: UTF8.self)
        }
        // RFC 6376 section 3.4.5.
        #expect(form(.relaxed, "A: X") == "a:X")
        #expect(form(.relaxed, "B : Y\t\r\n\tZ  ") == "b:Y Z")
        #expect(form(.simple, "B : Y\t\r\n\tZ  ") == "B : Y\t\r\n\tZ  ")
        #expect(form(.relaxed, "Subject:") == "subject:")
        #expect(form(.relaxed, "Subject: \r\n \r\n\t") == "subject:")
        #expect(form(.relaxed, "SUBJect:\r\n  a\r\n \r\n b") == "subject:a b")
        #expect(form(.relaxed, "no colon") == ":")
        #expect(form(.relaxed, "X: a:b : c") == "x:a:b : c")
    }

    @Test func tagList_validOrMalformed_isReadOrRefused() throws {
        let tags = try DKIMTagList(Array(" a = 1 ; b=\r\n x\r\n\ty ;c=;".utf8)[...])
        #expect(tags.names == ["a", "b", "c"])
        #expect(tags["a"].map { Array($0.value) } == Array("1".utf8))
        #expect(tags["b"].map { Array($0.value) } == Array("x\r\n\ty".utf8))
        #expect(tags["c"]?.value.isEmpty == true && tags["A"] == nil)
        for text in [
            "", ";", "a", "=1", "a b=1", "a=1;;", "a=1;b", "a=1;a=2", "1a=1", "a=1\r\n",
            "a=1\r\nb=2", "a=1\n ;b=1", "a=\r",
            "a=\u{0}", "a=\u{7F}",
        ] {
            #expect(throws: DKIMSyntaxError.self, "\(text)") {
                try DKIMTagList(Array(text.utf8)[...])
            }
        }
    }

    @Test func base64_validOrMalformed_isDecodedOrNil() {
        func decode(_ text: String) -> [UInt8]? { DKIMBase64.decode(Array(text.utf8)[...]) }
        #expect(decode("Zm9v") == Array("foo".utf8))
        #expect(decode(" Z\r\n m\t9v Yg = = ") == Array("foob".utf8))
        #expect(decode("Zm9vYmE=") == Array("fooba".utf8))
        for text in [
            "", " ", "Z", "Zm", "Zm9", "Zm9=v", "Zg=", "Zg===", "Zm9v=", "Zm9v====", "=", "====",
            "Zm9-", "Zm9_", "Zm.9v",
            "Zg==Zg==",
        ] {
            #expect(decode(text) == nil, "\(text)")
        }
        for length in 1..<100 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            #expect(DKIMBase64.decode(Base64.encodeUnbroken(bytes)[...]) == bytes)
        }
    }

    /// Changed messages, signatures and keys always get a result, and the same result for every
    /// division into chunks.
    @Test func verification_mutatedMessageOrKey_ignoresChunks() throws {
        let dns = try DKIMForge.dns()
        let template =
            "v=1; a=ed25519-sha256; c=relaxed/relaxed; d=app.example; i=a@app.example; s=s; t=1; l=20; "
            + "h=from:to:subject; bh={bh}; b={b}"
        let good = try DKIMForge.sign(
            DKIMForge.message, template, header: .relaxed, body: .relaxed, length: 20,
            names: ["from", "to", "subject"]
        ).bytes
        #expect(DKIMTestMessage(good).verify(dns).map(\.result) == [.pass])
        let key = Array(
            "v=DKIM1; k=ed25519; h=sha256; t=s; s=email; p=\(try DKIMForge.publicKey())".utf8)
        var generator = SeededGenerator(seed: 9)
        let interesting: [UInt8] = [0, 9, 10, 13, 32, 45, 58, 59, 61, 64, 127, 128, 255]
        func mutate(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                let octet = interesting.randomElement(using: &generator) ?? 0
                switch Int.random(in: 0..<5, using: &generator) {
                case 0: bytes[index] = octet
                case 1: bytes.insert(octet, at: index)
                case 2: bytes.remove(at: index)
                case 3:
                    bytes.insert(contentsOf: bytes[index..<min(bytes.count, index + 20)], at: index)
                default: bytes.removeSubrange(index..<min(bytes.count, index + 30))
                }
                if bytes.isEmpty { bytes = [octet] }
            }
            return bytes
        }
        var results: [DKIMResult: Int] = [:]
        for round in 0..<4000 {
            let message = DKIMTestMessage(round % 4 == 0 ? good : mutate(good))
            let keyed =
                round % 4 == 0
                ? DKIMTestDNS([DKIMForge.keyName: .records([.txt(mutate(key))])]) : dns
            let findings = message.verify(keyed)
            for finding in findings { results[finding.result, default: 0] += 1 }
            #expect(message.verify(keyed, chunk: 1 + round % 9) == findings)
        }
        #expect(
            results[.permerror, default: 0] > 100 && results[.fail, default: 0] > 100, "\(results)")
    }
}
