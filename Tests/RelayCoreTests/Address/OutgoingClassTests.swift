// The class of a return path: its last character, and nothing else of the address.

import Foundation
import InternetMessage
import MailTesting
import Testing

@testable import RelayCore

@Suite struct OutgoingClassTests {
    private static let account = AccountNumber(1234)!

    private static func mint() throws -> TokenMint {
        TokenMint(
            keys: try #require(
                TokenKeys(
                    keys: [UInt8(ascii: "k"): Array(repeating: 7, count: 32)],
                    active: UInt8(ascii: "k"))))
    }

    private static let senders: [AddrSpec?] = [
        nil, AddrSpec(localPart: "bounce", domain: "juice.example"),
        AddrSpec(localPart: String(repeating: "long", count: 15), domain: "juice.example"),
    ]

    @Test func classes_everyCharacter_areInOneClass() {
        let classes = (0..<OutgoingClass.count).compactMap(OutgoingClass.init(number:))
        let all = classes.map(\.characters).joined()
        #expect(all.utf8.count == 32 && Set(all.utf8).count == 32)
        #expect(OutgoingClass(number: OutgoingClass.count) == nil)
        #expect(OutgoingClass(number: -1) == nil)
    }

    @Test(arguments: 0..<OutgoingClass.count) func returnPath_ofAClass_isReadLikeAnyOther(
        _ number: Int
    ) throws {
        let (mint, outgoing) = (try Self.mint(), try #require(OutgoingClass(number: number)))
        let expression = try NSRegularExpression(pattern: "^\(outgoing.expression)$")
        func matches(_ text: String) -> Bool {
            expression.firstMatch(
                in: text, range: NSRange(text.startIndex..<text.endIndex, in: text)) != nil
        }
        for sender in Self.senders {
            for nonce in UInt64(0)..<40 {
                let token = mint.forwardReturnPath(
                    account: Self.account, sender: sender, nonce: nonce << 10, expiryDay: 20_500,
                    outgoing: outgoing)
                #expect(outgoing.covers(token.localPart))
                #expect(matches(token.localPart), "\(token.localPart)")
                guard case .token(let read) = mint.read(token.localPart) else {
                    Issue.record("\(token.localPart) is not read")
                    continue
                }
                #expect(read.account == Self.account && read.expiryDay == 20_500)
            }
        }
        // The highest nonce has no next one.
        _ = mint.forwardReturnPath(
            account: Self.account, sender: nil, nonce: .max, expiryDay: 20_500, outgoing: outgoing)
        // Replies, and other addresses of the relay domain, leave by Postfix's own identity.
        for nonce in UInt64(0)..<40 {
            let reply = mint.replyReturnPath(
                account: Self.account,
                recipients: [AddrSpec(localPart: "help", domain: "juice.example")],
                nonce: nonce, expiryDay: 20_500, outgoing: .standard)
            #expect(matches(reply.localPart) == (number == 0))
        }
        for other in ["postmaster", "x7k2m9q4wd", "noreply", ""] { #expect(!matches(other)) }
    }

    @Test func returnPath_noClass_keepsItsNonce() throws {
        let mint = try Self.mint()
        let token = mint.forwardReturnPath(
            account: Self.account, sender: nil, nonce: 5, expiryDay: 20_500)
        guard case .token(let read) = mint.read(token.localPart) else {
            Issue.record("not read")
            return
        }
        #expect(read.nonce == 5)
    }

    @Test func classes_ofIdentities_followTheirNames() throws {
        let identities = try ["vip", "bulk"].map {
            OutgoingIdentity(
                name: try #require(OutgoingIdentityName($0)), address: "192.0.2.1", address6: nil,
                heloName: "\($0).example")
        }
        let classes = OutgoingIdentity.classes(of: identities)
        #expect(classes.map { "\($0.key) \($0.value.number)" }.sorted() == ["bulk 1", "vip 2"])
        var settings = RelaySettings(relayDomains: ["relay.example"], authservID: "x")
        #expect(settings.outgoingClass(identities[0].name) == nil)
        settings.outgoing = classes
        #expect(settings.outgoingClass(identities[0].name)?.number == 2)
        #expect(settings.outgoingClass(nil) == .standard)
        #expect(settings.outgoingClass(OutgoingIdentityName("gone")) == .standard)
    }

    @Test(arguments: ["", "Bulk", "1a", "-a", "a_b", "a b", "\u{212A}", "abcdefghijklmnopqrstu"])
    func name_notAllowed_isNil(_ text: String) {
        #expect(OutgoingIdentityName(text) == nil)
    }
}
