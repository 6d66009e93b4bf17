// Forwards with From in the forms of real programs: accepted if there is one address, and otherwise
// refused with the right reason.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import RelayCore
import Testing

struct AuthorFormTests {
    /// The forms of InternetMessageTests: raw value and what is expected.
    private static let forms: [(value: [UInt8], expected: String)] = {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let file = tests.appending(path: "InternetMessageTests/Vectors/author/forms.txt")
        let lines = ((try? String(contentsOf: file, encoding: .utf8)) ?? "").split(separator: "\n")
        return lines.filter { !$0.hasPrefix("#") }.compactMap { line in
            let parts = line.split(separator: "\t")
            return parts.count == 2 ? (unescaped(parts[0]), String(parts[1])) : nil
        }
    }()

    private static func unescaped(_ text: Substring) -> [UInt8] {
        var output: [UInt8] = []
        var octets = Array(text.utf8)[...]
        let plain: [UInt8: UInt8] = [
            UInt8(ascii: "r"): 13, UInt8(ascii: "n"): 10, UInt8(ascii: "t"): 9,
            UInt8(ascii: "0"): 0,
        ]
        while let octet = octets.popFirst() {
            guard octet == UInt8(ascii: "\\"), let kind = octets.popFirst() else {
                output.append(octet)
                continue
            }
            if kind == UInt8(ascii: "x") {
                output.append(
                    UInt8(String(decoding: octets.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                octets = octets.dropFirst(2)
            } else {
                output.append(plain[kind] ?? kind)
            }
        }
        return output
    }

    private func forward(_ value: [UInt8]) -> (RelayDecision, Fixture) {
        let account = Fixture.account(
            1, "annarelay2", team: "juice.example", inboxes: ["anna@inbox.example"])
        let proof = SPFFinding(
            result: .pass, identity: .mailFrom, domain: "juice.example", reason: "")
        let fixture = Fixture(accounts: [account], evidence: AuthenticationEvidence(spf: [proof]))
        let rest = "\r\nTo: annarelay2@relay.example\r\nSubject: Hello\r\n\r\nHello\r\n"
        let response = fixture.play(
            from: "b@juice.example", to: ["annarelay2@relay.example"],
            octets: Array("From: ".utf8) + value + Array(rest.utf8))
        return (response.decision, fixture)
    }

    @Test func formWithOneAddress_provedSender_leavesWithOneReverseAddress() throws {
        let forms = Self.forms.filter { !$0.expected.hasPrefix("!") }
        try #require(forms.count >= 50)
        for (value, expected) in forms {
            let text = String(decoding: value, as: UTF8.self)
            let (decision, fixture) = forward(value)
            guard decision.outcome == .relay else {
                Issue.record("\(text): \(decision)")
                continue
            }
            let from = try #require(
                decision.modifications.compactMap { modification -> [UInt8]? in
                    if case .changeHeader("From", 1, let value) = modification {
                        value
                    } else {
                        nil
                    }
                }.first, "\(text)")
            let address = try #require(AddrSpec(envelope: expected))
            let reverse = fixture.engine.tokens.reverse(
                account: Fixture.anna.number, correspondent: address
            ).localPart
            let leaving = AddressList.parse(from)
            #expect(
                leaving.mailboxes.map(\.addrSpec.localPart) == [reverse],
                "\(text): \(String(decoding: from, as: UTF8.self))")
            #expect(
                leaving.defects.subtracting([.encodedWordInQuotes]).allSatisfy { $0.isLegal },
                "\(text): \(String(decoding: from, as: UTF8.self))")
            #expect(
                AddressCandidates.find(in: from[...]).allSatisfy {
                    $0.addrSpec.domain == "relay.example"
                }, "\(text)")
        }
    }

    @Test func formWithoutOneAddress_provedSender_isRefusedForWhatCannotBeRead() throws {
        let forms = Self.forms.filter { $0.expected.hasPrefix("!") }
        try #require(forms.count >= 20)
        for (value, expected) in forms {
            guard case .refuse(let refusal) = forward(value).0.outcome else {
                Issue.record("\(String(decoding: value, as: UTF8.self)) was relayed")
                continue
            }
            let defect = try #require(AuthorDefect(rawValue: String(expected.dropFirst())))
            #expect(
                refusal.reply.code == 550 && refusal.reply.text == "From cannot be read: \(defect)")
            #expect(!refusal.reply.text.contains("DKIM") && !refusal.reply.text.contains("SPF"))
        }
    }

    @Test func fieldWithControlCharacter_provedSender_isRefusedWithoutNamingProof() {
        guard
            case .refuse(let refusal) = forward(
                Array("Juice <a@juice.example>\r\nSubject: a\u{0}b".utf8)
            ).0.outcome
        else {
            Issue.record("relayed")
            return
        }
        #expect(refusal.reason.code == .unsafeHeader && !refusal.reply.text.contains("SPF"))
    }
}
