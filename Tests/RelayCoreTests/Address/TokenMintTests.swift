// Reverse addresses: readable, authenticated, bound to their account.

import InternetMessage
import MailCrypto
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct TokenMintTests {
    private let mint = TokenMint(keys: Fixture.keys)
    private let account = AccountNumber(12345)!

    private func address(_ text: String) -> AddrSpec { AddrSpec(envelope: text)! }

    private func readToken(_ localPart: String) -> AddressToken? {
        if case .token(let token) = mint.read(localPart) { return token }
        return nil
    }

    @Test func reverseAddress_minted_readsBack() throws {
        let minted = mint.reverse(account: account, correspondent: address("billing@app.example"))
        #expect(minted.localPart.hasPrefix("billing=app.example."))
        #expect(minted.addressToStore == nil)
        let token = try #require(readToken(minted.localPart))
        #expect(token.purpose == .reverse)
        #expect(token.account == account)
        #expect(token.address == address("billing@app.example"))
    }

    @Test func reverseAddress_sameCorrespondent_isTheSame() {
        let first = mint.reverse(account: account, correspondent: address("billing@app.example"))
        #expect(
            first == mint.reverse(account: account, correspondent: address("billing@App.Example")))
    }

    @Test func reverseAddress_anotherAccount_isDifferent() {
        let correspondent = address("billing@app.example")
        let mine = mint.reverse(account: account, correspondent: correspondent).localPart
        let other = mint.reverse(account: AccountNumber(12346)!, correspondent: correspondent)
            .localPart
        #expect(mine != other)
        // Account numbers cannot be exchanged under the MAC: the seven
        // characters after key id and purpose.
        let start = mine.index(mine.lastIndex(of: ".")!, offsetBy: 3)
        let forged = mine.replacingCharacters(
            at: start, with: other[start..<other.index(start, offsetBy: 7)])
        #expect(mint.read(forged) == .forged(.reverse))
    }

    @Test func reverseAddress_inUpperCase_readsBack() throws {
        let minted = mint.reverse(account: account, correspondent: address("billing@app.example"))
        #expect(readToken(minted.localPart.uppercased())?.address == address("billing@app.example"))
    }

    @Test func reverseAddress_changedCharacter_isNotRead() {
        let minted = mint.reverse(account: account, correspondent: address("billing@app.example"))
            .localPart
        for index in minted.indices {
            let other: Character = minted[index] == "b" ? "c" : "b"
            let forged = minted.replacingCharacters(at: index, with: "\(other)")
            if case .token(let token) = mint.read(forged) {
                Issue.record("\(forged) reads as \(token)")
            }
        }
    }

    @Test(arguments: [
        "Billing@app.example", "\"a b\"@app.example",
        "bounces+0123456789-abcdef-someone=example.com@em1234.mail.app.example",
        "müller@app.example", "a@[192.0.2.1]",
    ])
    func reverseAddress_doesNotFit_isStored(_ text: String) throws {
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

    @Test func reverseAddress_otherLetterCase_isDifferent() {
        #expect(
            mint.reverse(account: account, correspondent: address("Billing@app.example")).localPart
                != mint.reverse(account: account, correspondent: address("BILLING@app.example"))
                .localPart)
    }

    @Test func reverseAddress_longestThatFits_isInline() {
        // 64 octets less a dot, key id, purpose, seven of the account and thirteen of the MAC.
        let fits = "\(String(repeating: "a", count: 41 - 12))@app.example"
        #expect(
            mint.reverse(account: account, correspondent: address(fits)).localPart.utf8.count == 64)
        #expect(
            mint.reverse(account: account, correspondent: address("a" + fits)).addressToStore != nil
        )
    }

    @Test func reverseAddress_underARetiredKey_isForged() {
        let old = mint.reverse(account: account, correspondent: address("billing@app.example"))
            .localPart
        let both = TokenMint(
            keys: TokenKeys(
                keys: [
                    UInt8(ascii: "a"): Array(repeating: 7, count: 32),
                    UInt8(ascii: "b"): Array(repeating: 9, count: 32),
                ],
                active: UInt8(ascii: "b"))!)
        if case .token = both.read(old) {} else { Issue.record("an old key must keep verifying") }
        let new = TokenMint(
            keys: TokenKeys(
                keys: [UInt8(ascii: "b"): Array(repeating: 9, count: 32)], active: UInt8(ascii: "b")
            )!)
        #expect(new.read(old) == .forged(.reverse))
    }

    @Test(arguments: [
        "", ".", "a.b", "postmaster", "x7k2m9q4wd", "billing=app.example", "billing=app.example.",
        "=.axaaaaaaaaaaaaaaaaaaaaaaa",
        "é",
    ])
    func localPart_ordinary_isNoToken(_ text: String) {
        if case .token(let token) = mint.read(text) { Issue.record("\(text) reads as \(token)") }
    }

    /// Two teams must not match accounts n and n + 1 of one user, and no one may count accounts.
    @Test func accountNumber_consecutive_looksRandom() throws {
        func written(_ mint: TokenMint, _ number: UInt64) -> String {
            let local = mint.reverse(
                account: AccountNumber(number)!, correspondent: address("a@b.example")
            ).localPart
            let tail = local.lastIndex(of: ".")!
            return String(local[tail...].dropFirst(3).prefix(7))
        }
        let digits = (1...2_000).map { written(mint, $0) }
        #expect(Set(digits).count == digits.count, "two accounts look alike")
        let numbers: [UInt64] = try digits.map { try #require(Base32.number($0.utf8)) }
        // In a random permutation about half of the steps go up, and nearly none is short.
        let steps = zip(numbers, numbers.dropFirst()).map { Int64($1) - Int64($0) }
        #expect((900...1_100).contains(steps.count { $0 > 0 }))
        #expect(steps.allSatisfy { abs($0) > 1_000 })
        // Every bit is set in about half of them.
        for bit in 0..<35 {
            #expect(
                (880...1_120).contains(numbers.count { $0 >> UInt64(bit) & 1 == 1 }), "bit \(bit)")
        }
        // Under another key they are different.
        let other = TokenMint(
            keys: TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: 8, count: 32)], active: UInt8(ascii: "a")
            )!)
        #expect(
            other.reverse(account: AccountNumber(1)!, correspondent: address("a@b.example"))
                .localPart.contains(digits[0]) == false)
    }

    @Test func accountPermutation_hiddenNumber_isRevealed() {
        var random = SeededRandom("numbers".utf8)
        let numbers: [UInt64] =
            [0, 1, (1 << 35) - 1, 1 << 17, (1 << 17) - 1]
            + (0..<1_000).map { _ in random.next() >> 29 }
        for series in [AccountPermutation.Series.account, .verification] {
            let permutation = AccountPermutation(key: Fixture.keys.activeKey, series: series)
            for number in numbers {
                let hidden = permutation.hidden(number)
                #expect(hidden < 1 << 35 && permutation.revealed(hidden) == number)
            }
        }
    }

    @Test func tokenWithoutItsDomain_inText_isFound() {
        let names = ReplyNames(
            engine: Fixture(evidence: .init()).engine, account: Fixture.anna,
            message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: MemoryDirectory([]), tokens: mint))
        let token = mint.reverse(
            account: Fixture.anna.number, correspondent: address("billing@app.example")
        ).localPart
        let text = TextRewriter(names: names).rewrite(Array("to \(token)!".utf8))
        #expect(text.map { String(decoding: $0, as: UTF8.self) } == "to billing@app.example!")
    }

    @Test func lettersOfNoPurpose_readAsNoToken() {
        let token = mint.reverse(account: account, correspondent: address("billing@app.example"))
            .localPart
        let (head, tail) = (token.prefix(21), token.dropFirst(22))
        #expect("\(head)x\(tail)" == token)
        for letter in "abcefgijklmnqrtuvwz234567" {
            #expect(mint.read("\(head)\(letter)\(tail)") == .notAToken, "\(letter)")
        }
    }

    @Test func accountNumber_beyond35Bits_isNil() {
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
