// Shared by the DKIM tests: divided messages, a DNS made from a dictionary, body bytes in chunks.

import Foundation
import InternetMessage

@testable import MailAuth

/// TXT records by name. A name that is not listed does not exist.
final class DKIMTestDNS: DNSResolver, @unchecked Sendable {
    private let answers: [String: DNSAnswer]
    private let lock = NSLock()
    private var asked: [String] = []

    init(_ answers: [String: DNSAnswer]) { self.answers = answers }

    convenience init(txt: [String: String]) {
        self.init(txt.mapValues { .records([.txt(Array($0.utf8))]) })
    }

    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        lock.withLock { asked.append(name) }
        return type == .txt ? answers[name] ?? .nxDomain : .noData
    }

    var questions: [String] { lock.withLock { asked } }
}

struct DKIMTestMessage {
    var header: HeaderSection
    var body: [UInt8]

    init(header: HeaderSection, body: [UInt8]) {
        self.header = header
        self.body = body
    }

    /// Divides a message with CRLF line ends at the first empty line.
    init(_ bytes: [UInt8]) {
        var fields = [HeaderField]()
        var index = 0
        var fieldStart = 0
        var bodyStart = bytes.count
        while index < bytes.count {
            var lineEnd = index
            while lineEnd + 1 < bytes.count, !(bytes[lineEnd] == 13 && bytes[lineEnd + 1] == 10) {
                lineEnd += 1
            }
            if lineEnd + 1 >= bytes.count { lineEnd = bytes.count }
            if lineEnd == index {
                bodyStart = min(index + 2, bytes.count)
                break
            }
            let next = min(lineEnd + 2, bytes.count)
            let folded = next < bytes.count && (bytes[next] == 0x20 || bytes[next] == 0x09)
            if !folded {
                fields.append(HeaderField(bytes: Array(bytes[fieldStart..<lineEnd])))
                fieldStart = next
            }
            index = next
        }
        header = HeaderSection(fields)
        body = Array(bytes[bodyStart...])
    }

    init(_ text: String) { self.init(Array(text.utf8)) }

    var bytes: [UInt8] { header.fields.flatMap { $0.bytes + [13, 10] } + [13, 10] + body }

    func verify(
        _ dns: any DNSResolver, now: Int64 = 1_795_000_000, chunk: Int = 65536,
        limits: DKIMLimits = DKIMLimits()
    )
        -> [DKIMFinding]
    {
        let verifier = DKIMVerifier(header: header, now: now, limits: limits)
        feed(body, chunk: chunk) { verifier.update(body: $0) }
        return verifier.finish(resolver: dns)
    }
}

func feed(_ bytes: [UInt8], chunk: Int, _ take: (UnsafeRawBufferPointer) -> Void) {
    bytes.withUnsafeBytes { bytes in
        for start in stride(from: 0, to: bytes.count, by: chunk) {
            take(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + chunk, bytes.count)]))
        }
    }
}

func canonicalBody(_ kind: DKIMCanonicalization, _ body: [UInt8], chunk: Int) -> [UInt8] {
    var output = [UInt8]()
    let canonicalizer = DKIMBodyCanonicalizer(kind) { output.append(contentsOf: $0) }
    feed(body, chunk: chunk) { canonicalizer.update($0) }
    canonicalizer.finish()
    return output
}

enum DKIMConformance {
    static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent()

    /// `POSTERN_CONFORMANCE`, or otherwise ../shared/conformance next to the package.
    static let folder: URL = {
        if let path = ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"] {
            return URL(fileURLWithPath: path)
        }
        return package.deletingLastPathComponent().appendingPathComponent("shared/conformance")
    }()

    static var isPresent: Bool { FileManager.default.fileExists(atPath: folder.path) }
}
