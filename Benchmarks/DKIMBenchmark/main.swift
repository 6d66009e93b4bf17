// DKIM per second and core: verification and signing of 4 kB and 4 MB messages, and body canonicalization beside SHA-256 alone.
// Run a release build: `swift run -c release dkim-benchmark`; beside it `openssl speed sha256 rsa2048 ed25519`.

import Glibc
import InternetMessage
import MailAuth
import MailCrypto

private func seconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Times a second a piece of work can be done; runs it for about a second of CPU time.
private func rate(_ work: () throws -> Void) rethrows -> Double {
    try work()
    var batch = 1
    while true {
        let start = seconds()
        for _ in 0..<batch { try work() }
        let time = seconds() - start
        if time > 0.7 { return Double(batch) / time }
        batch = time < 0.01 ? batch * 10 : Int(Double(batch) / time) + 1
    }
}

private struct FixedDNS: DNSResolver {
    let records: [String: String]
    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        records[name].map { .records([.txt(Array($0.utf8))]) } ?? .nxDomain
    }
}

private func text(_ count: Int, _ line: String) -> [UInt8] {
    let line = Array(line.utf8) + [13, 10]
    var body = [UInt8]()
    body.reserveCapacity(count + line.count)
    while body.count < count { body += line }
    return body
}

/// What libmilter hands over at most at once.
private let chunkSize = 65535

private func feed(_ body: [UInt8], _ take: (UnsafeRawBufferPointer) -> Void) {
    body.withUnsafeBytes { bytes in
        for start in stride(from: 0, to: bytes.count, by: chunkSize) {
            take(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + chunkSize, bytes.count)]))
        }
    }
}

private func shown(_ number: Double) -> String { "\(Int(number.rounded()))" }

private let header = HeaderSection(
    [
        HeaderField(
            "Received",
            "from mail.example ([192.0.2.1])\r\n\tby relay.example with ESMTPS id 12345;\r\n\tMon, 2 Nov 2026 10:00:00 +0000"),
        HeaderField("From", "Billing <billing@app.example>"), HeaderField("To", "x7k2m9q4wd@relay.example"),
        HeaderField("Subject", "Your invoice for October"), HeaderField("Date", "Mon, 2 Nov 2026 10:00:00 +0000"),
        HeaderField("Message-ID", "<123456.7890@app.example>"), HeaderField("MIME-Version", "1.0"),
        HeaderField("Content-Type", "text/plain;\r\n charset=utf-8"), HeaderField("Content-Transfer-Encoding", "8bit"),
        HeaderField("List-Unsubscribe", "<https://app.example/u/1>"),
        HeaderField("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    ] + (0..<12).map { HeaderField("X-Trace-\($0)", "some value that is neither long nor short; number=\($0)") })

private let now: Int64 = 1_793_600_000
private let keys: [(String, DKIMSigner.Key)] = [
    ("rsa-2048", .rsa(try RSAPrivateKey.generate(bits: 2048))), ("ed25519", .ed25519(try .generate())),
]
private let bodies = [
    ("4 kB", text(4096, "The quick brown fox jumps over the lazy dog, and the dog lets it.")),
    ("4 MB", text(4 << 20, "The quick brown fox jumps over the lazy dog, and the dog lets it.")),
]

for (keyName, key) in keys {
    let signer = try DKIMSigner(domain: "app.example", selector: "s", key: key)
    let publication = try DKIMKeyPublication(domain: "app.example", selector: "s", key: key)
    let dns = FixedDNS(records: [publication.name: publication.text])
    for (bodyName, body) in bodies {
        func sign() throws -> HeaderField {
            let hasher = DKIMBodyHasher()
            feed(body) { hasher.update(body: $0) }
            return try signer.sign(header: header, bodyHash: hasher.finish(), now: now)
        }
        var signed = header
        signed.fields.insert(try sign(), at: 0)
        print("sign \(keyName) \(bodyName): \(shown(try rate { _ = try sign() })) messages/s")
        let verified = rate {
            let verifier = DKIMVerifier(header: signed, now: now)
            feed(body) { verifier.update(body: $0) }
            precondition(verifier.finish(resolver: dns).map(\.result) == [.pass])
        }
        print("verify \(keyName) \(bodyName): \(shown(verified)) messages/s")
    }
}

/// Body hash through the verifier, which canonicalizes; the signature need not be valid for that.
for (name, body) in [
    ("prose", bodies[1].1), ("base64", text(4 << 20, String(repeating: "QUJD", count: 19))),
    ("indented HTML", text(4 << 20, "        <td   class=\"a\">\t<b>word</b> and  more </td>  ")),
    ("blank lines", text(4 << 20, "")),
    ("spaces and tabs only", text(4 << 20, String(repeating: " \t", count: 35))),
    ("a b a b", text(4 << 20, String(repeating: "a  ", count: 25))),
] {
    let megabytes = Double(body.count) / 1e6
    let plain =
        rate {
            let hash = SHA256()
            feed(body) { hash.update($0) }
            _ = hash.finalize()
        } * megabytes
    print("\(name): SHA-256 alone \(shown(plain)) MB/s", terminator: "")
    for c in ["simple", "relaxed"] {
        let field = HeaderField("DKIM-Signature", "v=1; a=rsa-sha256; c=\(c)/\(c); d=app.example; s=s; h=from; bh=AAAA; b=AAAA")
        let signed = HeaderSection([field] + header.fields)
        let speed =
            rate {
                let verifier = DKIMVerifier(header: signed, now: now)
                feed(body) { verifier.update(body: $0) }
                _ = verifier.finish(resolver: FixedDNS(records: [:]))
            } * megabytes
        print("; \(c) and SHA-256 \(shown(speed)) MB/s (\(shown(speed / plain * 100)) %)", terminator: "")
    }
    print("")
}
