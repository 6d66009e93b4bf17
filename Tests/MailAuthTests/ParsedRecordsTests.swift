// The cache of parsed records never returns the answer for another text.

import Foundation
import InternetMessage
import MailCrypto
import Support
import Synchronization
import TestSupport
import Testing

@testable import MailAuth

@Suite(.blocking) struct ParsedRecordsTests {
    @Test func parsedRecords_textsDifferInOneOctet_areKeptApart() {
        let parses = Mutex(0)
        let records = ParsedRecords<[UInt8]>(capacity: 600, longest: 300) { text in
            parses.withLock { $0 += 1 }
            return text.reversed()
        }
        let text = [UInt8](repeating: 0x61, count: 256)
        for round in 1...2 {
            #expect(records[text] == text)
            for place in text.indices {
                var other = text
                other[place] = 0x62
                #expect(records[other] == other.reversed())
                #expect(records[Array(text[..<place])] == text[..<place].reversed())
            }
            #expect(parses.withLock { $0 } == 513, "round \(round)")
        }
    }

    @Test func parsedRecords_manyOrLongTexts_staysWithinCapacity() {
        let parses = Mutex(0)
        let records = ParsedRecords<Int>(capacity: 8, longest: 10) { text in
            parses.withLock { $0 += 1 }
            return text.count
        }
        for number in 0..<100 {
            #expect(records[Array("\(number)".utf8)] == "\(number)".utf8.count)
            #expect(records.count <= 8)
        }
        let bounded = ParsedRecords<Int>(capacity: 1_000, octets: 40) { $0.count }
        for length in 1...30 {
            #expect(bounded[[UInt8](repeating: 1, count: length)] == length)
            #expect(bounded.count <= 8)
        }
        let before = parses.withLock { $0 }
        for _ in 0..<3 { #expect(records[[UInt8](repeating: 1, count: 11)] == 11) }
        #expect(parses.withLock { $0 } == before + 3)
    }

    @Test func parsedRecords_manyThreads_returnsRecordOfEachText() {
        let records = ParsedRecords<[UInt8]>(capacity: 16) { $0 + [0] }
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<2_000 {
                let text = Array("record \((number &* 7 &+ thread) % 40)".utf8)
                if records[text] != text + [0] { Issue.record("a record of another text") }
            }
        }
    }

    /// A name's key was changed, and changed back. The current DNS answer decides.
    @Test func dkimKey_changedUnderSameName_isUsed() throws {
        for algorithm in ["rsa-sha256", "ed25519-sha256"] {
            let message = try DKIMForge.sign(
                DKIMForge.message, "v=1; a=\(algorithm); d=app.example; s=s; h=from; bh={bh}; b={b}"
            )
            let type = algorithm.hasPrefix("rsa") ? "rsa" : "ed25519"
            let right = try DKIMForge.dns("v=DKIM1; k=\(type);", algorithm: algorithm)
            let another =
                type == "rsa"
                ? try RSAPrivateKey.generate(bits: 1024).publicKeyInfo()
                : try Ed25519PrivateKey.generate().rawPublicKey()
            let changed = DKIMTestDNS(
                txt: [
                    DKIMForge.keyName:
                        "v=DKIM1; k=\(type); p=\(String(decoding: Base64.encodeUnbroken(another), as: UTF8.self))"
                ])
            let testing = try DKIMForge.dns("v=DKIM1; t=y; k=\(type);", algorithm: algorithm)
            let revoked = DKIMTestDNS(txt: [DKIMForge.keyName: "v=DKIM1; k=\(type); p="])
            for _ in 0..<2 {
                #expect(message.verify(right).map(\.result) == [.pass])
                #expect(message.verify(changed).map(\.result) == [.fail])
                #expect(message.verify(testing).map(\.result) == [.policy])
                #expect(message.verify(revoked).map(\.result) == [.permerror])
                #expect(message.verify(DKIMTestDNS(txt: [:])).map(\.result) == [.permerror])
            }
        }
    }

    @Test func policyRecord_changedUnderSameName_isUsed() {
        func spf(_ record: String) -> SPFResult {
            SPF.check(
                client: SMTPClientIdentity(
                    address: "192.0.2.1", helo: "h.example", mailFrom: "a@app.example"),
                resolver: DKIMTestDNS(txt: ["app.example": record])
            ).result
        }
        func dmarc(_ record: String) -> String {
            DMARC.evaluate(
                fromDomain: "app.example", spf: [], dkim: [],
                resolver: DKIMTestDNS(txt: ["_dmarc.app.example": record])
            ).policy
        }
        for _ in 0..<2 {
            #expect(spf("v=spf1 ip4:192.0.2.1 -all") == .pass)
            #expect(spf("v=spf1 ip4:192.0.2.2 -all") == .fail)
            #expect(spf("v=spf1 ip4:192.0.2.2 ~all") == .softfail)
            #expect(spf("v=spf1 ip4:192.0.2.2 =all") == .permerror)
            #expect(dmarc("v=DMARC1; p=reject") == "reject")
            #expect(dmarc("v=DMARC1; p=none") == "none")
            #expect(dmarc("v=DMARC2; p=none") == "")
        }
    }
}
