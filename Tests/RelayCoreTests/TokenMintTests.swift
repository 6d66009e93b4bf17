// Reverse addresses and return paths: readable, authenticated, bound to their account.

import InternetMessage
import Testing

@testable import RelayCore

@Suite struct TokenMintTests {
    private let mint = TokenMint(keys: Fixture.keys)
    private let account = AccountNumber(12345)!

    private func address(_ text: String) -> AddrSpec { AddrSpec(envelope: text)! }

    private func readToken(_ localPart: String) -> AddressToken? {
        if case .token(let token) = mint.read(localPart) { return token }
        return nil
    }

    @Test func reverseAddressIsReadableAndLeadsBack() throws {
        let minted = mint.reverse(account: account, correspondent: address("billing@app.example"))
        #expect(minted.localPart.hasPrefix("billing=app.example."))
        #expect(minted.addressToStore == nil)
        let token = try #require(readToken(minted.localPart))
        #expect(token.purpose == .reverse)
        #expect(token.account == account)
        #expect(token.address == address("billing@app.example"))
    }

    @Test func reverseAddressIsAlwaysTheSame() {
        let first = mint.reverse(account: account, correspondent: address("billing@app.example"))
        #expect(first == mint.reverse(account: account, correspondent: address("billing@App.Example")))
    }

    @Test func anotherAccountGetsAnotherToken() {
        let correspondent = address("billing@app.example")
        let mine = mint.reverse(account: account, correspondent: correspondent).localPart
        let other = mint.reverse(account: AccountNumber(12346)!, correspondent: correspondent).localPart
        #expect(mine != other)
        // Account numbers cannot be exchanged under the MAC: the seven characters after key id and purpose.
        let start = mine.index(mine.lastIndex(of: ".")!, offsetBy: 3)
        let forged = mine.replacingCharacters(at: start, with: other[start..<other.index(start, offsetBy: 7)])
        #expect(mint.read(forged) == .forged(.reverse))
    }

    @Test func upperCaseOfTheWholeLocalPartStillReads() throws {
        let minted = mint.reverse(account: account, correspondent: address("billing@app.example"))
        #expect(readToken(minted.localPart.uppercased())?.address == address("billing@app.example"))
    }

    @Test func everyChangedCharacterIsNoticed() {
        let minted = mint.reverse(account: account, correspondent: address("billing@app.example")).localPart
        for index in minted.indices {
            let other: Character = minted[index] == "b" ? "c" : "b"
            let forged = minted.replacingCharacters(at: index, with: "\(other)")
            if case .token(let token) = mint.read(forged) { Issue.record("\(forged) reads as \(token)") }
        }
    }

    @Test(arguments: [
        "Billing@app.example", "\"a b\"@app.example", "bounces+0123456789-abcdef-someone=example.com@em1234.mail.app.example",
        "müller@app.example", "a@[192.0.2.1]",
    ])
    func whatDoesNotFitIsStored(_ text: String) throws {
        let correspondent = address(text)
        let minted = mint.reverse(account: account, correspondent: correspondent)
        #expect(minted.addressToStore == correspondent)
        #expect(minted.localPart.utf8.count <= 64)
        let token = try #require(readToken(minted.localPart))
        #expect(token.purpose == .storedReverse && token.address == nil)
        #expect(mint.verifies(token, stored: correspondent))
        #expect(!mint.verifies(token, stored: address("someone@else.example")))
        #expect(minted == mint.reverse(account: account, correspondent: correspondent))
    }

    @Test func storedTokenDistinguishesLetterCaseOfTheLocalPart() {
        #expect(
            mint.reverse(account: account, correspondent: address("Billing@app.example")).localPart
                != mint.reverse(account: account, correspondent: address("BILLING@app.example")).localPart)
    }

    @Test func longestAddressThatFitsIsInline() {
        // 64 octets less a dot, key id, purpose, seven of the account and thirteen of the MAC.
        let fits = "\(String(repeating: "a", count: 41 - 12))@app.example"
        #expect(mint.reverse(account: account, correspondent: address(fits)).localPart.utf8.count == 64)
        #expect(mint.reverse(account: account, correspondent: address("a" + fits)).addressToStore != nil)
    }

    @Test func returnPathsCarryNonceAndExpiry() throws {
        let minted = mint.forwardReturnPath(account: account, sender: address("news@app.example"), nonce: 0xFF_1234_5678, expiryDay: 20_500)
        let token = try #require(readToken(minted.localPart))
        #expect(token.purpose == .forward && token.address == address("news@app.example"))
        #expect(token.nonce == 0xFF_1234_5678 && token.expiryDay == 20_500)
    }

    @Test func returnPathOfAReplyHoldsNoAddress() throws {
        let minted = mint.replyReturnPath(account: account, nonce: 1, expiryDay: 20_500)
        #expect(!minted.localPart.contains("=") && !minted.localPart.contains("."))
        #expect(try #require(readToken(minted.localPart)).purpose == .reply)
    }

    @Test func silentReturnPathHoldsNoAddress() throws {
        let minted = mint.forwardReturnPath(account: account, sender: nil, nonce: 1, expiryDay: 20_500)
        #expect(minted.addressToStore == nil)
        #expect(try #require(readToken(minted.localPart)).purpose == .silentForward)
    }

    @Test func retiredKeyVerifiesNoLonger() {
        let old = mint.reverse(account: account, correspondent: address("billing@app.example")).localPart
        let both = TokenMint(
            keys: TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: 7, count: 32), UInt8(ascii: "b"): Array(repeating: 9, count: 32)],
                active: UInt8(ascii: "b"))!)
        if case .token = both.read(old) {} else { Issue.record("an old key must keep verifying") }
        let new = TokenMint(keys: TokenKeys(keys: [UInt8(ascii: "b"): Array(repeating: 9, count: 32)], active: UInt8(ascii: "b"))!)
        #expect(new.read(old) == .forged(.reverse))
    }

    @Test(arguments: ["", ".", "a.b", "postmaster", "x7k2m9q4wd", "billing=app.example", "billing=app.example.", "=.avaaaaaaaaaaaaaaaaaaaaaaa", "é"])
    func ordinaryLocalPartsAreNoTokens(_ text: String) {
        if case .token(let token) = mint.read(text) { Issue.record("\(text) reads as \(token)") }
    }

    @Test func accountNumbersEndAtThirtyFiveBits() {
        #expect(AccountNumber(1 << 35) == nil)
        let last = AccountNumber((1 << 35) - 1)!
        let minted = mint.reverse(account: last, correspondent: address("a@b.example"))
        #expect(readToken(minted.localPart)?.account == last)
    }
}

extension String {
    func replacingCharacters(at index: Index, with text: some StringProtocol) -> String {
        String(self[..<index]) + text + String(self[self.index(index, offsetBy: text.count)...])
    }
}
