// Mail authentication per second and core: DKIM compared with its primitives, SPF, and
// canonicalization compared with SHA-256. Run a release build: `swift run -c release AuthBench`.

import ArgumentParser
import Glibc
import InternetMessage
import MailAuth
import MailCrypto

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "AuthBench",
        abstract: "Measure mail authentication: DKIM beside the primitives it is made of, and SPF.")

    @Argument(help: "Measure only the lines that hold one of these words.") var words: [String] = []
}

/// Minimum seconds of CPU time for each measurement.
private let duration = 0.5

private func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// The number of times per second of this core's time that a piece of work can be done.
private func rate(_ work: () throws -> Void) rethrows -> Double {
    try work()
    var batch = 1
    while true {
        let start = cpuSeconds()
        for _ in 0..<batch { try work() }
        let time = cpuSeconds() - start
        if time >= duration { return Double(batch) / time }
        batch = time < 0.01 ? batch * 10 : Int(Double(batch) * duration * 1.1 / time) + 1
    }
}

private func shown(_ number: Double) -> String {
    number < 100 ? "\((number * 10).rounded() / 10)" : "\(Int(number.rounded()))"
}

private func text(_ count: Int, _ line: String) -> [UInt8] {
    let line = Array(line.utf8) + [13, 10]
    var body = [UInt8]()
    body.reserveCapacity(count + line.count)
    while body.count < count { body += line }
    return body
}

/// Passes a body as libmilter does, in chunks of at most 65,535 octets.
private func feed(_ body: [UInt8], _ take: (UnsafeRawBufferPointer) -> Void) {
    body.withUnsafeBytes { bytes in
        for start in stride(from: 0, to: bytes.count, by: 65_535) {
            take(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + 65_535, bytes.count)]))
        }
    }
}

private func hash(_ body: [UInt8]) -> [UInt8] {
    let hash = SHA256()
    feed(body) { hash.update($0) }
    return hash.finalize()
}

private func zone(
    _ texts: [String: [String]], addresses: [String: [[UInt8]]] = [:],
    exchanges: [String: [String]] = [:]
)
    -> ZoneResolver
{
    var nodes: [String: ZoneResolver.Node] = [:]
    for (name, list) in texts {
        nodes[name, default: .init()].records[.txt] = list.map { .txt(Array($0.utf8)) }
    }
    for (name, list) in addresses {
        nodes[name, default: .init()].records[.a] = list.map { .address($0) }
    }
    for (name, list) in exchanges {
        nodes[name, default: .init()].records[.mx] = list.map { .mx(preference: 10, exchange: $0) }
    }
    return ZoneResolver(nodes)
}

private let wanted = Options.parseOrExit().words
private func isWanted(_ name: String) -> Bool {
    wanted.isEmpty || wanted.contains { name.contains($0) }
}

private let now: Int64 = 1_795_000_000
private let sentence = "The quick brown fox jumps over the lazy dog, and the dog lets it."
private let header = HeaderSection(
    [
        HeaderField(
            "Received",
            "from mail.example ([192.0.2.1])\r\n\tby relay.example with ESMTPS id 12345;\r\n\tMon, 2 Nov 2026 10:00:00 +0000"
        ),
        HeaderField("From", "Billing <billing@app.example>"),
        HeaderField("To", "x7k2m9q4wd@relay.example"),
        HeaderField("Subject", "Your invoice for October"),
        HeaderField("Date", "Mon, 2 Nov 2026 10:00:00 +0000"),
        HeaderField("Message-ID", "<123456.7890@app.example>"), HeaderField("MIME-Version", "1.0"),
        HeaderField("Content-Type", "text/plain;\r\n charset=utf-8"),
        HeaderField("Content-Transfer-Encoding", "8bit"),
    ]
        + (0..<12).map {
            HeaderField("X-Trace-\($0)", "some value that is neither long nor short; number=\($0)")
        })

// MARK: DKIM compared with its primitives

/// The minimum cost of one message: the hash of its body and one operation with the key.
private func measure(
    _ name: String, _ size: String, _ body: [UInt8], primitive: () throws -> Void,
    whole: () throws -> Void
) rethrows {
    guard isWanted("\(name) \(size)") else { return }
    let raw = try rate {
        _ = hash(body)
        try primitive()
    }
    let full = try rate(whole)
    print(
        "\(name) \(size): \(shown(full))/s; SHA-256 of the body and the key operation alone "
            + "\(shown(raw))/s (\(shown(full / raw * 100)) %)"
    )
}

private let rsa = try RSAPrivateKey.generate(bits: 2048)
private let rsaPublic = try RSAPublicKey(der: rsa.publicKeyInfo())
private let ed25519 = try Ed25519PrivateKey.generate()
private let ed25519Public = try Ed25519PublicKey(rawBytes: ed25519.rawPublicKey())
private let digest = SHA256.hash(Array(sentence.utf8))

private func measureDKIM(
    _ algorithm: String, _ key: DKIMSigningKey, sign: () throws -> [UInt8],
    verify: ([UInt8]) -> Bool
) throws {
    let signer = try DKIMSigner(domain: "app.example", selector: "s", key: key)
    let publication = try DKIMKeyPublication(domain: "app.example", selector: "s", key: key)
    let dns = zone([publication.name: [publication.text]])
    let signature = try sign()
    for (size, body) in [("4 kB", text(4096, sentence)), ("4 MB", text(4 << 20, sentence))] {
        func signed() throws -> HeaderField {
            let hasher = DKIMBodyHasher()
            feed(body) { hasher.update(body: $0) }
            return try signer.sign(header: header, bodyHash: hasher.finish(), now: now)
        }
        try measure(
            "sign \(algorithm)", size, body, primitive: { _ = try sign() },
            whole: { _ = try signed() })
        var message = header
        message.fields.insert(try signed(), at: 0)
        measure(
            "verify \(algorithm)", size, body, primitive: { precondition(verify(signature)) },
            whole: {
                let verifier = DKIMVerifier(header: message, now: now)
                feed(body) { verifier.update(body: $0) }
                precondition(verifier.finish(resolver: dns).map(\.result) == [.pass])
            })
    }
}

try measureDKIM("rsa-2048", .rsa(rsa), sign: { try rsa.signSHA256(digest: digest) }) {
    rsaPublic.verifySHA256(digest: digest, signature: $0)
}
try measureDKIM("ed25519", .ed25519(ed25519), sign: { try ed25519.sign(digest) }) {
    ed25519Public.verify(signature: $0, message: digest)
}

// MARK: Canonicalization

/// The hash of a body through the verifier, which canonicalizes; no key is queried.
for (name, line) in [
    ("prose", sentence), ("base64", String(repeating: "QUJD", count: 19)),
    ("indented HTML", "        <td   class=\"a\">\t<b>word</b> and  more </td>  "),
    ("blank lines", ""),
    ("spaces and tabs", String(repeating: " \t", count: 35)),
    ("a b a b", String(repeating: "a  ", count: 25)),
] where isWanted("body \(name)") {
    let body = text(4 << 20, line)
    let megabytes = Double(body.count) / 1e6
    let plain = rate { _ = hash(body) } * megabytes
    var report = "body \(name): SHA-256 alone \(shown(plain)) MB/s"
    for kind in ["simple", "relaxed"] {
        let field = HeaderField(
            "DKIM-Signature",
            "v=1; a=rsa-sha256; c=\(kind)/\(kind); d=app.example; s=s; h=from; bh=AAAA; b=AAAA")
        let signed = HeaderSection([field] + header.fields)
        let none = zone([:])
        let speed =
            rate {
                let verifier = DKIMVerifier(header: signed, now: now)
                feed(body) { verifier.update(body: $0) }
                _ = verifier.finish(resolver: none)
            } * megabytes
        report += "; \(kind) and SHA-256 \(shown(speed)) MB/s (\(shown(speed / plain * 100)) %)"
    }
    print(report)
}

// MARK: SPF and the whole

private let spf = zone(
    [
        "one.example": ["v=spf1 ip4:192.0.2.0/24 -all"],
        "usual.example": ["v=spf1 include:_spf.provider.example mx -all"],
        "_spf.provider.example": [
            "v=spf1 include:_a.provider.example include:_b.provider.example ~all"
        ],
        "_a.provider.example": [
            "v=spf1 " + (0..<20).map { "ip4:198.51.100.\($0 * 8)/29" }.joined(separator: " ")
                + " ~all"
        ],
        "_b.provider.example": ["v=spf1 ip6:2001:db8::/32 ip4:203.0.113.0/24 ~all"],
        "macro.example": ["v=spf1 exists:%{ir}.%{v}._spf.%{d2} redirect=one.example"],
        "ten.example": [
            "v=spf1 " + (0..<10).map { "a:h\($0).ten.example" }.joined(separator: " ") + " -all"
        ],
        "_dmarc.app.example": ["v=DMARC1; p=reject"],
        "app.example": ["v=spf1 ip4:192.0.2.0/24 -all"],
    ],
    addresses: Dictionary(
        uniqueKeysWithValues: (0..<10).map { ("h\($0).ten.example", [[203, 0, 113, UInt8($0)]]) }),
    exchanges: ["usual.example": ["h0.ten.example", "h1.ten.example"]])

for (name, domain, result) in [
    ("one network", "one.example", SPFResult.pass),
    ("three includes and mx", "usual.example", .fail),
    ("macros and redirect", "macro.example", .pass),
    ("ten look-ups", "ten.example", .fail), ("no record", "h0.ten.example", .none),
] where isWanted("spf \(name)") {
    let client = SMTPClientIdentity(
        address: "192.0.2.7", helo: "mx.one.example", mailFrom: "bounce@\(domain)")
    let speed = rate { precondition(SPF.check(client: client, resolver: spf).result == result) }
    print("spf \(name): \(shown(speed))/s, answers from memory")
}

if isWanted("everything 4 kB") {
    let signer = try DKIMSigner(domain: "app.example", selector: "s", key: .rsa(rsa))
    let body = text(4096, sentence)
    let hasher = DKIMBodyHasher()
    hasher.update(body: body)
    let message = HeaderSection(
        [try signer.sign(header: header, bodyHash: hasher.finish(), now: now)] + header.fields)
    let publication = try DKIMKeyPublication(domain: "app.example", selector: "s", key: .rsa(rsa))
    let dns = zone([
        publication.name: [publication.text], "_dmarc.app.example": ["v=DMARC1; p=reject"],
        "app.example": ["v=spf1 ip4:192.0.2.0/24 -all"],
    ])
    let authenticator = NativeAuthenticator { dns }
    let client = SMTPClientIdentity(
        address: "192.0.2.7", helo: "mx.app.example", mailFrom: "bounce@app.example")
    let speed = rate {
        let session = authenticator.begin(client: client, header: message, now: now)
        feed(body) { session.update(body: $0) }
        precondition(session.finish().dmarc?.result == .pass)
    }
    print("everything 4 kB: \(shown(speed))/s: SPF, one RSA signature, DMARC, From")
}
