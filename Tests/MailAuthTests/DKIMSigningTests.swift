// Postern's signatures verify: here, with dkimpy, and with Mail::DKIM.

import Foundation
import InternetMessage
import MailCrypto
import MailTesting
import Testing

@testable import MailAuth

/// 200 generated messages with two signatures each, signed once for all tests.
private enum Signed {
    static let now: Int64 = 1_793_600_000
    static let count = 200

    struct Fixture: Sendable {
        let messages: [DKIMTestMessage]
        let records: [String: String]
    }

    static let fixture: Result<Fixture, any Error> = Result {
        let rsa = DKIMSigningKey.rsa(try RSAPrivateKey.generate(bits: 2048))
        let ed25519 = DKIMSigningKey.ed25519(try Ed25519PrivateKey.generate())
        let signers = [
            try DKIMSigner(domain: "relay.example", selector: "r2026", key: rsa),
            try DKIMSigner(domain: "Relay.Example", selector: "e2026", key: ed25519),
        ]
        var records: [String: String] = [:]
        for (selector, key) in [("r2026", rsa), ("e2026", ed25519)] {
            let publication = try DKIMKeyPublication(
                domain: "relay.example", selector: selector, key: key)
            records[publication.name] = publication.characterStrings.joined()
        }
        let messages = try (0..<count).map { number in
            let generated = GeneratedMail.message(number)
            var message = DKIMTestMessage(header: generated.header, body: generated.body)
            let hasher = DKIMBodyHasher()
            feed(message.body, chunk: 1 + number * 37) { hasher.update(body: $0) }
            let hash = hasher.finish()
            let unsigned = message.header
            message.header.fields.insert(
                contentsOf: try signers.map {
                    try $0.sign(header: unsigned, bodyHash: hash, now: now)
                }, at: 0)
            return message
        }
        return Fixture(messages: messages, records: records)
    }

    /// The messages as files next to their keys, for other programs.
    static func write() throws -> URL {
        let fixture = try fixture.get()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-dkim-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (number, message) in fixture.messages.enumerated() {
            let name = String(number + 1000).dropFirst()
            try Data(message.bytes).write(
                to: folder.appendingPathComponent("\(name)-\(GeneratedMail.kind(number)).eml"))
        }
        let records = fixture.records.map { "\($0)\t\($1)\n" }.joined()
        try Data(records.utf8).write(to: folder.appendingPathComponent("dns.tsv"))
        return folder
    }
}

struct DKIMSigningTests {
    @Test func signature_generatedMail_passesOwnVerification() throws {
        let fixture = try Signed.fixture.get()
        let dns = DKIMTestDNS(txt: fixture.records)
        for (number, message) in fixture.messages.enumerated() {
            let findings = message.verify(dns, now: Signed.now)
            #expect(findings.map(\.result) == [.pass, .pass], "message \(number): \(findings)")
            #expect(findings.allSatisfy { $0.coversWholeBody })
            #expect(findings.map(\.algorithm) == ["rsa-sha256", "ed25519-sha256"])
        }
        #expect(
            Set(dns.questions) == [
                "r2026._domainkey.relay.example", "e2026._domainkey.relay.example",
            ])
        print("dkim signing: \(fixture.messages.count) of \(Signed.count) messages verified here")
    }

    @Test(
        .enabled(
            if: DKIMVerifiers.python != nil,
            "skipped: no python3 with dkimpy and PyNaCl (make test-tools)"))
    func signature_generatedMail_passesDkimpy() throws {
        let python = try #require(DKIMVerifiers.python)
        let folder = try Signed.write()
        defer { try? FileManager.default.removeItem(at: folder) }
        let lines = try DKIMVerifiers.dkimpy(folder, python: python)
        #expect(lines.count == Signed.count)
        for line in lines { #expect(line.dropFirst() == ["pass", "pass"], "\(line)") }
        print(
            "dkim signing: \(lines.filter { $0.dropFirst() == ["pass", "pass"] }.count) of \(Signed.count) messages verified"
                + " by dkimpy"
        )
    }

    @Test(
        .enabled(
            if: DKIMVerifiers.hasMailDKIM,
            "skipped: no perl with Mail::DKIM (Debian: libmail-dkim-perl)"))
    func signature_generatedMail_passesMailDKIM() throws {
        let folder = try Signed.write()
        defer { try? FileManager.default.removeItem(at: folder) }
        let lines = try DKIMVerifiers.mailDKIM(folder)
        #expect(lines.count == Signed.count)
        for line in lines {
            #expect(
                line.count == 3 && line[1] == "pass"
                    && (line[2] == "pass" || line[2] == "unsupported"), "\(line)")
        }
        let skipped = lines.contains { $0.contains("unsupported") }
        print(
            "dkim signing: \(lines.filter { $0.count == 3 && $0[1] == "pass" }.count) of \(Signed.count) messages verified"
                + " by Mail::DKIM"
                + (skipped ? " (Ed25519 skipped: unknown to this version)" : ""))
    }

    @Test func signature_fieldLayout_hasShortLinesAndNoLengthTag() throws {
        let fixture = try Signed.fixture.get()
        for message in fixture.messages {
            for field in message.header.fields.prefix(2) {
                let text = String(decoding: field.bytes, as: UTF8.self)
                for line in text.split(separator: "\r\n", omittingEmptySubsequences: false) {
                    #expect(line.utf8.count < 78 && !line.allSatisfy { $0.isWhitespace }, "\(line)")
                }
                #expect(!text.replacing("\r\n", with: "").contains { $0 == "\r" || $0 == "\n" })
                #expect(
                    text.hasPrefix("DKIM-Signature: v=1; a=") && text.contains(" t=\(Signed.now);")
                        && !text.contains("l="))
            }
        }
    }

    @Test func signature_eachSignedName_isOversigned() throws {
        let signer = try DKIMSigner(
            domain: "relay.example", selector: "s", key: .ed25519(.generate()))
        var header = GeneratedMail.message(0).header
        header.fields.append(HeaderField("cc", "a@example.org"))
        header.fields.append(HeaderField("Cc", "b@example.org"))
        let signature = try DKIMSignature(
            signer.sign(header: header, bodyHash: DKIMBodyHasher().finish(), now: 1))
        for name in DKIMSigner.signedNames {
            let present = header.all(name).count
            #expect(
                signature.signedNames.texts.filter { $0 == name.lowercased() }.count == present + 1,
                "\(name)")
        }
        #expect(
            signature.timestamp == 1 && signature.bodyLength == nil && signature.expiration == nil)
        for name in DKIMSigner.signedIfPresent {
            #expect(!signature.signedNames.texts.contains(name.lowercased()), "\(name)")
        }
    }

    /// A service on the way adds a field of the same name above ours, as Amazon SES does: ours
    /// stays signed, and cannot be changed or removed.
    @Test(arguments: DKIMSigner.signedIfPresent)
    func signature_fieldAddedByAService_staysValid(name: String) throws {
        let key = DKIMSigningKey.ed25519(try .generate())
        let signer = try DKIMSigner(domain: "relay.example", selector: "s", key: key)
        let record = try DKIMKeyPublication(domain: "relay.example", selector: "s", key: key)
        let dns = DKIMTestDNS(txt: [record.name: record.text])
        var header = GeneratedMail.message(0).header
        header.fields.append(HeaderField(name, "ours"))
        let field = try signer.sign(header: header, bodyHash: DKIMBodyHasher().finish(), now: 1)
        func result(_ fields: [HeaderField]) -> DKIMResult? {
            DKIMVerifier(header: HeaderSection([field] + fields), now: 1).finish(resolver: dns)
                .first?.result
        }
        #expect(result(header.fields) == .pass)
        #expect(result([HeaderField(name, "of the service")] + header.fields) == .pass)
        #expect(result(header.fields + [HeaderField(name, "below")]) == .fail)
        #expect(result(header.fields.filter { !$0.isNamed(name) }) == .fail)
        #expect(
            result(header.fields.map { $0.isNamed(name) ? HeaderField(name, "other") : $0 })
                == .fail)
    }

    /// No signed part can be added, removed or changed; unsigned parts can.
    @Test func signature_signedPartChanged_fails() throws {
        let fixture = try Signed.fixture.get()
        let dns = DKIMTestDNS(txt: fixture.records)
        let message = fixture.messages[0]
        for name in DKIMSigner.signedNames {
            for bottom in [false, true] {
                var changed = message
                changed.header.fields.insert(
                    HeaderField(name, "evil@example.net"),
                    at: bottom ? changed.header.fields.count : 2)
                let findings = changed.verify(dns, now: Signed.now)
                #expect(
                    findings.count >= 2
                        && findings.allSatisfy { $0.result == .fail || $0.result == .policy },
                    "\(name)")
            }
            if let index = message.header.fields.firstIndex(where: { $0.isNamed(name) }) {
                var changed = message
                changed.header.fields.remove(at: index)
                #expect(
                    changed.verify(dns, now: Signed.now).map(\.result) == [.fail, .fail], "\(name)")
            }
        }
        var body = message
        body.body += Array("more\r\n".utf8)
        #expect(body.verify(dns, now: Signed.now).map(\.result) == [.fail, .fail])
        var other = message
        other.header.fields.append(HeaderField("X-Other", "x"))
        other.body += Array("\r\n \r\n".utf8)
        #expect(other.verify(dns, now: Signed.now).map(\.result) == [.pass, .pass])
    }

    @Test func signer_invalidDomainOrSelector_throws() throws {
        let key = DKIMSigningKey.ed25519(try .generate())
        for (domain, selector) in [
            ("", "s"), ("relay example", "s"), ("relay.example", ""), ("relay.example", "a;b"),
            ("-a.example", "s"),
            ("ä.example", "s"),
        ] {
            #expect(throws: DKIMSigner.InvalidName.self) {
                try DKIMSigner(domain: domain, selector: selector, key: key)
            }
        }
        let long = Array(repeating: String(repeating: "a", count: 49), count: 5).joined(
            separator: ".")
        #expect(throws: DKIMSigner.InvalidName.self) {
            try DKIMSigner(domain: long, selector: "s", key: key)
        }
        // With the longest possible names, the field still folds and verifies.
        let signer = try DKIMSigner(domain: String(long.dropLast(20)), selector: "s", key: key)
        let field = try signer.sign(
            header: HeaderSection([HeaderField("From", "a@b.example")]),
            bodyHash: DKIMBodyHasher().finish(), now: .max)
        #expect(throws: Never.self) {
            try DKIMSignature(DKIMTagList(field.rawValue)["t"] == nil ? field : field.withTime("5"))
        }
    }

    @Test func keyPublication_rsaOrEd25519_isWrittenAsTXTRecord() throws {
        let rsa = try RSAPrivateKey.generate(bits: 4096)
        let publication = try DKIMKeyPublication(
            domain: "relay.example", selector: "a.b", key: .rsa(rsa))
        #expect(publication.name == "a.b._domainkey.relay.example")
        #expect(
            publication.characterStrings.count == 3
                && publication.characterStrings.allSatisfy { $0.utf8.count <= 255 })
        #expect(publication.characterStrings.joined() == publication.text)
        #expect(
            publication.zoneFileRecord.hasPrefix(
                "a.b._domainkey.relay.example. IN TXT ( \"v=DKIM1; k=rsa; p=MII"))
        #expect(publication.zoneFileRecord.hasSuffix("\" )"))
        let record = try DKIMKeyRecord(Array(publication.text.utf8))
        #expect(try record.keyData == rsa.publicKeyInfo() && !record.isTesting)
        let small = try DKIMKeyPublication(
            domain: "relay.example", selector: "s", key: .ed25519(.generate()), isTesting: true)
        #expect(
            small.zoneFileRecord.hasPrefix(
                "s._domainkey.relay.example. IN TXT \"v=DKIM1; k=ed25519; t=y; p="))
        #expect(try DKIMKeyRecord(Array(small.text.utf8)).isTesting)
    }
}

struct DKIMKeyPublicationTests {
    @Test func keyPublication_dnsAnswer_givesObjection() throws {
        let publication = try DKIMKeyPublication(
            domain: "app.example", selector: "s", key: .ed25519(DKIMForge.ed25519.get()))
        let own = DNSRecord.txt(Array(publication.text.utf8))
        let rsa = DNSRecord.txt(Array("p=\(try DKIMForge.publicKey("rsa"))".utf8))
        #expect(publication.objection(to: .records([.txt(Array("v=spf1 -all".utf8)), own])) == nil)
        #expect(publication.objection(to: .records([own, rsa]))?.contains("2 keys") == true)
        #expect(publication.objection(to: .records([rsa])) == "another key is published")
        #expect(publication.objection(to: .nxDomain) == "no key in the DNS")
        #expect(
            publication.objection(to: .temporaryFailure("SERVFAIL"))
                == "no answer for the key: SERVFAIL")
        let testing = DNSRecord.txt(Array(publication.text.replacing("p=", with: "t=y; p=").utf8))
        #expect(publication.objection(to: .records([testing]))?.contains("t=y") == true)
        let narrow = DNSRecord.txt(Array(publication.text.replacing("p=", with: "h=sha1; p=").utf8))
        #expect(publication.objection(to: .records([narrow]))?.contains("SHA-256") == true)
        #expect(DKIMKeyAnswer(.records([own, rsa])).text == "ed25519; rsa, 1024 bits")
        #expect(
            DKIMKeyAnswer(.records([.txt(Array("v=DKIM1; p=".utf8))])).text == "the key is revoked")
    }
}

extension HeaderField {
    fileprivate func withTime(_ time: String) -> HeaderField {
        HeaderField(
            bytes: Array(
                String(decoding: bytes, as: UTF8.self).replacing(
                    "t=\(Int64.max)", with: "t=\(time)"
                ).utf8))
    }
}
