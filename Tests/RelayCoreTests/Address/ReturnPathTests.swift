// Return paths: sealed, of one form, and with the sender in them where it fits.

import InternetMessage
import MailCrypto
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ReturnPathTests {
    private let mint = TokenMint(keys: Fixture.keys)
    private let anna = Fixture.anna.number
    private static let context = Fixture.anna.senderContext
    /// An id with more bits than a return path has room for.
    private static let long =
        "bounce-md_30112948.55a02731.v1-163e4a0faf244a2da6b0121cc7af1fe9@app.example"

    private func address(_ text: String) -> AddrSpec { AddrSpec(envelope: text)! }

    private func path(
        _ sender: String?, account: AccountNumber = Fixture.anna.number, nonce: UInt64 = 97,
        day: UInt64 = 20_416
    ) -> MintedToken {
        mint.forwardReturnPath(
            account: account, sender: sender.map(address), context: Self.context, nonce: nonce,
            expiryDay: day)
    }

    private func read(_ localPart: String) -> AddressToken? {
        if case .token(let token) = mint.read(localPart) { token } else { nil }
    }

    /// The expected local parts come from another implementation (in Python).
    @Test(arguments: [
        ("news@app.example", "adhmmcd4l4oofhs6reqvcb2urmaklqiltek6r4cbhoxsap5yubr73pqflvepw7je"),
        (
            "bounces+1234567-abcd-annarelay2=relay.example@em12.App.Example",
            "add4wtyv64bkjvs5facothrybictdahjpcvvywebdigfj6rmqymrvpgwnk3kvb7l"
        ),
        ("a@other.example", "adhrlh2p6s4oxblgjtxqbrkwitcrrpwmaavytf3qyyeen5wasq2klwhck6hjo3xk"),
    ])
    func returnPath_senderThatFits_holdsIt(_ sender: String, _ expected: String) throws {
        let minted = path(sender)
        #expect(minted.localPart == expected)
        #expect(minted.addressToStore == nil && minted.storageKey == nil)
        let token = try #require(read(minted.localPart.uppercased()))
        #expect(token.purpose == .forward && token.account == anna)
        #expect(token.nonce == 97 && token.expiryDay == 20_416)
        let found = try #require(mint.sender(of: token, context: Self.context))
        #expect(found.localPart == address(sender).localPart)
        #expect(found.domain == address(sender).domain.lowercased())
    }

    @Test func returnPath_senderThatDoesNotFit_holdsItsHash() throws {
        let minted = path(Self.long)
        #expect(
            minted.localPart == "ad5ltv547wxkkuwt54ipj3yi7pbcwae56y4japwtdrv34bzqrmgbhzcvntyhpsbk")
        #expect(minted.addressToStore == address(Self.long))
        #expect(minted.storageKey == "asmrj5b2lkuhj5kd5qn46reljug")
        let token = try #require(read(minted.localPart))
        #expect(token.purpose == .storedForward && token.storageKey == minted.storageKey)
        #expect(mint.sender(of: token, context: Self.context) == nil)
        #expect(mint.verifies(token, stored: address(Self.long)))
        #expect(mint.verifies(token, stored: address(Self.long.replacing("app", with: "APP"))))
        #expect(!mint.verifies(token, stored: address(Self.long.replacing("md", with: "MD"))))
        // The same sender to the same account has the same key in any message, and no other.
        #expect(path(Self.long, nonce: 98, day: 20_417).storageKey == minted.storageKey)
        #expect(path(Self.long, account: Fixture.bob.number).storageKey != minted.storageKey)
        #expect(path("x" + Self.long).storageKey != minted.storageKey)
    }

    @Test func returnPath_withoutSender_holdsNone() throws {
        let minted = path(nil)
        #expect(
            minted.localPart == "adz47vtn7oysymsujabw7hkyyf3abyf7s4mmfboztmwyv5wznsrujdh7z7ngj33j")
        #expect(minted.addressToStore == nil)
        #expect(read(minted.localPart)?.purpose == .silentForward)
    }

    /// A reader of one must not recognise the account, the sender or the kind in the next.
    @Test func returnPaths_ofOneAccountAndSender_haveNothingInCommon() throws {
        let paths = (0..<64).flatMap { (nonce: UInt64) in
            [
                path("news@app.example", nonce: nonce), path(Self.long, nonce: nonce),
                path(nil, nonce: nonce),
                mint.replyReturnPath(
                    account: anna, recipients: [address("billing@app.example")], nonce: nonce,
                    expiryDay: 20_416),
            ].map { Array($0.localPart.utf8) }
        }
        #expect(Set(paths).count == paths.count)
        #expect(paths.allSatisfy { $0.count == 64 && $0.starts(with: Array("ad".utf8)) })
        #expect(paths.allSatisfy { Base32.isEncoded($0) })
        // At each place after the letter, the 32 characters occur about equally often.
        for place in 2..<64 {
            let counts = Dictionary(grouping: paths, by: { $0[place] }).mapValues(\.count)
            #expect(counts.count > 24, "place \(place): \(counts.count) different characters")
            #expect((counts.values.max() ?? 0) < 30, "place \(place)")
        }
    }

    @Test func returnPath_anyCharacterChanged_isForged() {
        for minted in [path("news@app.example"), path(Self.long), path(nil)] {
            for index in minted.localPart.indices.dropFirst(2) {
                let other: Character = minted.localPart[index] == "b" ? "c" : "b"
                let forged = minted.localPart.replacingCharacters(at: index, with: "\(other)")
                #expect(mint.read(forged) == .forged(.returnPath))
            }
        }
        #expect(read("a" + path(nil).localPart) == nil)
        #expect(read("x=y." + path(nil).localPart.dropFirst(4)) == nil)
    }

    @Test func returnPath_underAnotherKey_isForged() {
        let other = TokenMint(
            keys: TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: 8, count: 32)], active: UInt8(ascii: "a")
            )!)
        #expect(other.read(path("news@app.example").localPart) == .forged(.returnPath))
    }

    /// A team that gives up a domain gets no more reports there. The next owner of the domain
    /// must not get them.
    @Test func returnPath_domainGivenUp_leadsNowhere() throws {
        let token = try #require(read(path("news@app.example").localPart))
        for domains in [[], ["shop.example"], ["mail.app.example", "pp.example"]] {
            let context = SenderContext(
                domains: domains, relayAddresses: Self.context.relayAddresses)
            #expect(mint.sender(of: token, context: context) == nil)
        }
    }

    /// The address of the message is among those that the account had.
    @Test func returnPath_addressChangedSince_leadsToItsSender() throws {
        let sender = "b-annarelay2=relay.example@app.example"
        let token = try #require(read(path(sender).localPart))
        let now = AddrSpec(localPart: "x7k2m9q4wd", domain: "relay.example")
        func found(_ addresses: [AddrSpec]) -> AddrSpec? {
            mint.sender(
                of: token,
                context: SenderContext(
                    domains: ["shop.example", "app.example"], relayAddresses: addresses))
        }
        #expect(found([now] + Self.context.relayAddresses) == address(sender))
        #expect(found([now]) == nil)
    }

    @Test func returnPath_ofAReply_holdsNoAddress() throws {
        let minted = mint.replyReturnPath(
            account: anna, recipients: [address("billing@app.example")], nonce: 1,
            expiryDay: 20_500)
        #expect(minted.addressToStore == nil)
        #expect(try #require(read(minted.localPart)).purpose == .reply)
    }

    @Test func returnPath_ofAReply_knowsItsRecipientsOnly() throws {
        let recipients = (0..<6).map { address("r\($0)@app.example") }
        for count in 0...6 {
            let path = mint.replyReturnPath(
                account: anna, recipients: Array(recipients.prefix(count)), nonce: 9,
                expiryDay: 20_500
            ).localPart
            let token = try #require(read(path))
            #expect(token.nonce == 9 && token.expiryDay == 20_500)
            #expect(
                recipients.map { mint.isRecipient($0, of: token) }
                    == (0..<6).map { $0 < min(count, 4) })
            #expect(
                !mint.isRecipient(address("R0@app.example"), of: token)
                    && !mint.isRecipient(address("r0@evil.example"), of: token))
        }
    }
}
