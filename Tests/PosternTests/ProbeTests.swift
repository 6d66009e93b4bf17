// The relay's own test mail: only this installation can make it, and it opens little.

import InternetMessage
import MailAuth
import Relay
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ProbeTests {
    private static let now: Int64 = 1_790_000_000

    private func identity(_ secret: UInt8 = 7) throws -> ProbeIdentity {
        let keys = try #require(
            TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: secret, count: 32)],
                active: UInt8(ascii: "a")))
        return ProbeIdentity(keys: keys, domain: "relay.example")
    }

    private func header(_ fields: HeaderField...) -> HeaderSection {
        var header = HeaderSection()
        header.fields = fields
        return header
    }

    @Test func probeProof_expiredOrForeign_isNotProved() throws {
        let identity = try identity()
        let field = identity.proof(now: Self.now)
        #expect(identity.isProved(header(field), now: Self.now))
        #expect(identity.isProved(header(field), now: Self.now + ProbeIdentity.lifetime))
        #expect(!identity.isProved(header(field), now: Self.now + ProbeIdentity.lifetime + 1))
        // One with a longer lifetime than ours was not made by us.
        #expect(!identity.isProved(header(field), now: Self.now - 1))
        #expect(!(try self.identity(8)).isProved(header(field), now: Self.now))
        #expect(!identity.isProved(header(field, field), now: Self.now))
        #expect(!identity.isProved(header(), now: Self.now))
        for value in [
            "", "x y", "1790000900 a", "1790000900 aaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "99999999999999999999 ab",
            "1790000900 b" + String(repeating: "a", count: 26),
        ] {
            #expect(
                !identity.isProved(
                    header(HeaderField(ProbeIdentity.fieldName, value)), now: Self.now))
        }
    }

    @Test func probeAddress_afterTwoHours_isUnknown() throws {
        let identity = try identity()
        let address = identity.relayAddress(now: Self.now)
        #expect(address.localPart.utf8.count == 16)
        #expect(
            identity.isRelayAddress(
                address.localPart, domain: "relay.example", now: Self.now + 3600))
        #expect(
            !identity.isRelayAddress(
                address.localPart, domain: "relay.example", now: Self.now + 7200))
        #expect(!identity.isRelayAddress(address.localPart, domain: "other.example", now: Self.now))
        #expect(
            !(try self.identity(8)).isRelayAddress(
                address.localPart, domain: "relay.example", now: Self.now))
    }

    private struct Failing: SenderAuthenticator {
        final class Session: AuthenticationSession {
            func update(body: UnsafeRawBufferPointer) {}
            func finish() -> AuthenticationEvidence { AuthenticationEvidence() }
        }
        func begin(
            client: SMTPClientIdentity, header: HeaderSection, now: Int64
        ) -> any AuthenticationSession { Session() }
    }

    @Test func probeProof_anotherAuthor_isNotProved() throws {
        let identity = try identity()
        let authenticator = ProbingAuthenticator(Failing(), probe: identity)
        let client = SMTPClientIdentity(
            address: "127.0.0.1", helo: "x.example", mailFrom: "anna@home.example")
        let proved = authenticator.begin(
            client: client, header: header(identity.proof(now: Self.now)), now: Self.now
        ).finish()
        #expect(throws: Never.self) {
            try ReplyProof.prove(author: identity.author, evidence: proved)
        }
        #expect(throws: Refusal.self) {
            try ReplyProof.prove(
                author: AddrSpec(localPart: "anna", domain: "home.example"), evidence: proved)
        }
        let unproved = authenticator.begin(client: client, header: header(), now: Self.now).finish()
        #expect(throws: Refusal.self) {
            try ReplyProof.prove(author: identity.author, evidence: unproved)
        }
    }

    @Test func probeAccount_isNoStoredAccount() throws {
        #expect(AccountNumber(ProbeIdentity.account.rawValue + 1) == nil)
        let account = try identity().account(now: Self.now)
        #expect(
            account.inboxes.allSatisfy {
                $0.address.revealed.domain.hasSuffix(".invalid")
                    || $0.address.revealed.domain == "relay.example"
            })
    }
}
