// From fields that two programs could read differently: each is refused, for the reason that the
// file names.

import Foundation
import InternetMessage
import TestSupport
import Testing

@testable import MailAuth

/// A file of Vectors/forged-from.
private struct ForgedFrom: CustomTestStringConvertible {
    let name: String
    let defect: String
    let message: [UInt8]

    var testDescription: String { name }

    static let all: [ForgedFrom] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Vectors/forged-from")
        let files =
            (try? FileManager.default.contentsOfDirectory(
                at: folder, includingPropertiesForKeys: nil)) ?? []
        return files.filter { $0.pathExtension == "txt" }.sorted { $0.path < $1.path }.compactMap(
            ForgedFrom.init)
    }()

    init?(_ file: URL) {
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n")
        guard lines.count > 2, lines[0].hasPrefix("# why: "), lines[1].hasPrefix("# defect: ")
        else { return nil }
        name = file.deletingPathExtension().lastPathComponent
        defect = String(lines[1].dropFirst("# defect: ".count))
        message =
            lines[2...].flatMap {
                Self.unescaped($0.replacing("{to}", with: "x@relay.example")) + [0x0D, 0x0A]
            } + [0x0D, 0x0A]
    }

    /// Decodes `\r \n \t \0 \\ \xHH`.
    private static func unescaped(_ text: some StringProtocol) -> [UInt8] {
        var output = [UInt8]()
        var octets = Array(text.utf8)[...]
        while let octet = octets.popFirst() {
            guard octet == UInt8(ascii: "\\"), let kind = octets.popFirst() else {
                output.append(octet)
                continue
            }
            switch kind {
            case UInt8(ascii: "r"): output.append(0x0D)
            case UInt8(ascii: "n"): output.append(0x0A)
            case UInt8(ascii: "t"): output.append(0x09)
            case UInt8(ascii: "0"): output.append(0)
            case UInt8(ascii: "x"):
                output.append(
                    UInt8(String(decoding: octets.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                octets = octets.dropFirst(2)
            default: output.append(kind)
            }
        }
        return output
    }
}

@Suite(.blocking) struct AuthorVectorTests {
    @Test func forgedFrom_vectorFiles_arePresent() { #expect(ForgedFrom.all.count >= 57) }

    @Test(arguments: ForgedFrom.all) fileprivate func forgedFrom_eachVector_isRefusedWithReason(
        _ forged: ForgedFrom
    ) {
        switch AuthorAddress.parse(header: Message.parse(forged.message).header) {
        case .success(let author): Issue.record("\(author) was read")
        case .failure(let defect): #expect(defect.rawValue == forged.defect)
        }
    }

    /// There is no finding about an author who cannot be determined, even if the client is proved.
    @Test(arguments: ForgedFrom.all) fileprivate func forgedFrom_eachVector_hasNoDMARCFinding(
        _ forged: ForgedFrom
    ) {
        let zone = ZoneResolver([
            "good.example": .init(records: [.txt: [.txt(Array("v=spf1 +all".utf8))]]),
            "_dmarc.good.example": .init(records: [.txt: [.txt(Array("v=DMARC1; p=none".utf8))]]),
        ])
        let client = SMTPClientIdentity(
            address: "192.0.2.1", helo: "good.example", mailFrom: "billing@good.example")
        let session = NativeAuthenticator { zone }.begin(
            client: client, header: Message.parse(forged.message).header, now: 0)
        let evidence = session.finish()
        #expect(evidence.spf.first?.result == .pass)
        #expect(evidence.dmarc == nil)
    }
}
