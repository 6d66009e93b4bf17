// Hidden message ids are reversible only for their account.

import InternetMessage
import MailCrypto
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct MessageIDsTests {
    private let ids = MessageIDs(keys: Fixture.keys)!
    private let account = AccountNumber(1)!
    private func isRelay(_ domain: String) -> Bool { domain == "relay.example" }

    @Test func hiddenID_forItsAccount_isRevealed() {
        let id = Array("CAF=x_1+y@mail.provider.example".utf8)
        let hidden = ids.hide(id, account: account, relayDomain: "relay.example")
        #expect(hidden == ids.hide(id, account: account, relayDomain: "relay.example"))
        #expect(String(decoding: hidden, as: UTF8.self).hasSuffix("@relay.example"))
        #expect(ids.reveal(hidden, account: account, isRelayDomain: isRelay) == id)
    }

    @Test func hiddenID_forAnotherAccount_isNotRevealed() {
        let hidden = ids.hide(
            Array("a@b.example".utf8), account: account, relayDomain: "relay.example")
        #expect(ids.reveal(hidden, account: AccountNumber(2)!, isRelayDomain: isRelay) == nil)
    }

    @Test func hiddenID_ofALongID_cannotBeRevealed() {
        let long = Array(String(repeating: "x", count: 151).utf8)
        let hidden = ids.hide(long, account: account, relayDomain: "relay.example")
        #expect(hidden.count < 60)
        #expect(ids.reveal(hidden, account: account, isRelayDomain: isRelay) == nil)
        #expect(
            ids.hide(Array(long.dropLast()), account: account, relayDomain: "relay.example").count
                > 250)
    }

    @Test func hiddenID_ofALongID_isKnownToItsAccount() {
        let hidden = ids.hide(
            Array(repeating: UInt8(ascii: "x"), count: 151), account: account,
            relayDomain: "relay.example")
        #expect(ids.isHidden(hidden, account: account, isRelayDomain: isRelay))
        #expect(!ids.isHidden(hidden, account: AccountNumber(2)!, isRelayDomain: isRelay))
        #expect(!ids.isHidden(hidden, account: account, isRelayDomain: { _ in false }))
        var forged = hidden
        forged[5] = forged[5] == UInt8(ascii: "a") ? UInt8(ascii: "b") : UInt8(ascii: "a")
        #expect(!ids.isHidden(forged, account: account, isRelayDomain: isRelay))
    }

    @Test func witness_ofAnID_vouchesForOneAccount() {
        let id = Array("0100018f@email.mailservice.example".utf8)
        let witness = ids.witness(for: id, account: account, relayDomain: "relay.example")
        #expect(ids.isWitness(witness, isRelayDomain: isRelay))
        let other = Array("other@id.example".utf8)
        let witnesses = ids.witnesses(among: [other, witness, id], isRelayDomain: isRelay)
        #expect(witnesses.count == 1)
        #expect(ids.isWitnessed(id, by: witnesses, account: account))
        #expect(!ids.isWitnessed(id, by: witnesses, account: AccountNumber(2)!))
        #expect(!ids.isWitnessed(other, by: witnesses, account: account))
        #expect(!ids.isWitnessed(id, by: [], account: account))
    }

    @Test func ids_inFoldedReferences_areRead() {
        #expect(
            MessageIDs.ids(in: Array(" <a@b>\r\n\t<c@d> junk <>\r\n <e@f".utf8)) == [
                Array("a@b".utf8), Array("c@d".utf8),
            ])
    }
}

@Suite(.blocking) struct MessageDateTests {
    @Test(
        arguments: [
            (0, "Thu, 1 Jan 1970 00:00:00 +0000"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (1_795_243_770, "Sat, 21 Nov 2026 06:49:30 +0000"),
            (-1, "Wed, 31 Dec 1969 23:59:59 +0000"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 +0000"),
        ] as [(Int64, String)])
    func messageDate_knownTime_isFormatted(_ seconds: Int64, _ text: String) {
        #expect(MessageDate.format(seconds) == text)
    }
}
