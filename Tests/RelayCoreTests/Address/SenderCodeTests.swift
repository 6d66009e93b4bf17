// Envelope senders in few bits: each reads back as itself, and no number does harm.

import Foundation
import InternetMessage
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct SenderCodeTests {
    private static let relay = AddrSpec(localPart: "x7k2m9q4wd", domain: "relay.example")
    private static let context = SenderContext(
        domains: ["app.example", "mail.app.example", "esp.example"], relayAddresses: [relay])

    /// Senders in the forms of well-known mailing services, and whether they fit.
    private static let senders: [(sender: String, fits: Bool)] = [
        ("news@app.example", true),
        ("NoReply@App.Example", true),
        ("bounces+1234567-abcd-x7k2m9q4wd=relay.example@em1234.app.example", true),
        ("bounces-12345-x7k2m9q4wd=relay.example@mail.app.example", true),
        ("bounce+3ae87d.f2c9-x7k2m9q4wd=relay.example@esp.example", true),
        ("pm_bounces@pm-bounces.app.example", true),
        ("gentoo-announce-return-530-x7k2m9q4wd=relay.example@app.example", true),
        ("prvs=1234abcdef=news@app.example", true),
        ("4124973-137966-3089@app.example", true),
        ("1axybs-9csh8y-2z8k-bounce@app.example", true),
        ("o'neil~{1}@app.example", true),
        ("\"a b\"@app.example", true),
        ("owner-list@lists.other.example", false),
        ("0100018f3c2a1b4d-5e6f7a8b-1c2d-4e3f-9a0b-1c2d3e4f5a6b-000000@esp.example", false),
        ("bounce-md_30112948.55a02731.v1-163e4a0faf244a2da6b0121cc7af1fe9@esp.example", false),
        ("müller@app.example", false),
        ("\"a@b\"@app.example", false),
    ]

    @Test(arguments: senders)
    func sender_ofAService_fitsOrNot(_ text: String, _ fits: Bool) throws {
        let sender = try #require(AddrSpec(envelope: text))
        let code = SenderCode.encode(sender, context: Self.context)
        #expect((code != nil) == fits)
        guard let code else { return }
        #expect(code.count == SenderCode.digits && Base32.isEncoded(code))
        let expected = AddrSpec(localPart: sender.localPart, domain: sender.domain.lowercased())
        #expect(SenderCode.decode(code, context: Self.context).contains(expected))
    }

    @Test(arguments: [
        ("owner-list@lists.other.example", true), ("a@[192.0.2.1]", true),
        ("MAILER-DAEMON@mail.other.com", true), ("\"a b\"@other.example", true),
        ("bounces+1234567-abcd-x7k2m9q4wd=relay.example@em1234.other.example", false),
        ("a@müller.example", false),
    ])
    func sender_atAnUnknownDomain_fitsOrNot(_ text: String, _ fits: Bool) throws {
        let sender = try #require(AddrSpec(envelope: text))
        let code = SenderCode.encodeWhole(sender)
        #expect((code != nil) == fits)
        guard let code else { return }
        #expect(code.count == SenderCode.wholeDigits && Base32.isEncoded(code))
        #expect(SenderCode.decodeWhole(code) == sender)
    }

    /// Envelope senders of public mail, as for a team that registered their domain, and for one
    /// that did not. The figures stand in PERFORMANCE.
    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func sender_ofPublicMail_seldomNeedsARow() throws {
        let senders = try Self.publicSenders()
        try #require(senders.count > 90)
        let known = senders.count {
            SenderCode.encode(
                $0,
                context: SenderContext(
                    domains: [$0.domain.lowercased()], relayAddresses: [Self.relay]))
                == nil
        }
        let unknown = senders.count { SenderCode.encodeWhole($0) == nil }
        #expect(known <= senders.count / 18, "\(known) of \(senders.count)")
        #expect(unknown <= senders.count / 8, "\(unknown) of \(senders.count)")
    }

    /// The addresses of all `Return-Path` fields, each once.
    private static func publicSenders() throws -> [AddrSpec] {
        var found: Set<String> = []
        for folder in ["mail", "replies", "dkim", "bounces", "calendar"] {
            let files = FileManager.default.enumerator(
                at: Folders.conformance.appending(path: folder), includingPropertiesForKeys: nil)
            for case let file as URL in try #require(files) where !file.hasDirectoryPath {
                let lines = try Data(contentsOf: file).split(separator: 0x0A)
                for line in lines {
                    let line = String(decoding: line, as: UTF8.self)
                    guard line.lowercased().hasPrefix("return-path:"),
                        let start = line.firstIndex(of: "<"), let end = line.lastIndex(of: ">")
                    else { continue }
                    found.insert(String(line[line.index(after: start)..<end]))
                }
            }
        }
        return found.sorted().compactMap { AddrSpec(envelope: $0) }
    }

    @Test func sender_accountWithoutAddress_doesNotFit() {
        let context = SenderContext(domains: ["app.example"], relayAddresses: [])
        #expect(
            SenderCode.encode(AddrSpec(localPart: "a", domain: "app.example"), context: context)
                == nil)
    }

    @Test func sender_random_readsBack() throws {
        var random = SeededRandom("senders".utf8)
        var written = 0
        for _ in 0..<2_000 {
            let alphabet = ["0123456789", "abcdef0123456789", "aZ9-._+=", "~ #$%&'*!?^`{|}/"][
                Int(random.next() % 4)]
            let sender = AddrSpec(
                localPart: random.word(1 + Int(random.next() % 40), from: alphabet),
                domain: ["app.example", "x.app.example", "y.z.esp.example"][Int(random.next() % 3)])
            guard let code = SenderCode.encode(sender, context: Self.context) else { continue }
            written += 1
            #expect(SenderCode.decode(code, context: Self.context).contains(sender))
        }
        #expect(written > 700, "\(written) of 2,000 fit")
    }

    /// Any number ends, and is never longer than an address may be.
    @Test func anyNumber_read_staysWithinBounds() {
        var random = SeededRandom("numbers".utf8)
        var count = 0
        for _ in 0..<2_000 {
            let code = Base32.characters(
                fromRandom: (0..<SenderCode.digits).map { _ in
                    UInt8(truncatingIfNeeded: random.next())
                }
            )
            for address in SenderCode.decode(code.utf8, context: Self.context) {
                count += 1
                #expect(address.localPart.utf8.count + address.domain.utf8.count < 700)
            }
        }
        #expect(count < 6_000)
        #expect(SenderCode.decode("!".utf8, context: Self.context).isEmpty)
        #expect(
            SenderCode.decode(
                String(repeating: "7", count: SenderCode.digits).utf8, context: Self.context
            ).allSatisfy { $0.localPart.utf8.count < 400 })
    }
}
