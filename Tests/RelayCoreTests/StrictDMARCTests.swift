// The alignment rules in the DMARC record of the author's domain are honoured, even if the relay's
// own rule would accept more.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct StrictDMARCTests {
    /// A zone, as name and text of its TXT record; `!` represents a name server that does not
    /// answer.
    private typealias Records = KeyValuePairs<String, String>

    private func zone(_ records: Records) -> ZoneResolver {
        ZoneResolver(
            Dictionary(
                uniqueKeysWithValues: records.map { name, text in
                    (
                        name,
                        text == "!"
                            ? .init(failure: .timeout)
                            : .init(records: [.txt: [.txt(Array(text.utf8))]])
                    )
                }))
    }

    /// The evidence of the authenticator, with DMARC evaluated over these records.
    private func evidence(
        from: String, dkim: [(String, DKIMResult)] = [], spf: [(String, SPFResult)] = [],
        _ records: Records
    ) -> AuthenticationEvidence {
        let signatures = dkim.map {
            DKIMFinding(
                result: $0.1, domain: $0.0, selector: "s", algorithm: "rsa-sha256",
                coversWholeBody: true, reason: "test")
        }
        let envelopes = spf.map {
            SPFFinding(result: $0.1, identity: .mailFrom, domain: $0.0, reason: "test")
        }
        return AuthenticationEvidence(
            spf: envelopes, dkim: signatures,
            dmarc: DMARC.evaluate(
                fromDomain: from, spf: envelopes, dkim: signatures, resolver: zone(records)))
    }

    private func answer(_ prove: () throws(Refusal) -> SenderProof) -> String {
        do throws(Refusal) {
            let proof = try prove()
            return "\(proof.method):\(proof.domain)"
        } catch {
            return "\(error.reply.code) \(error.reply.enhanced) \(error.reason.code)"
        }
    }

    private func reply(
        from: String, dkim: [(String, DKIMResult)] = [], spf: [(String, SPFResult)] = [],
        _ records: Records
    ) -> String {
        answer { () throws(Refusal) in
            try ReplyProof.prove(
                author: AddrSpec(localPart: "anna", domain: from),
                evidence: evidence(from: from, dkim: dkim, spf: spf, records))
        }
    }

    private func forward(
        from: String, paired: String? = nil, dkim: [(String, DKIMResult)] = [],
        spf: [(String, SPFResult)] = [],
        _ records: Records
    ) -> String {
        answer { () throws(Refusal) in
            try ForwardProof.prove(
                author: AddrSpec(localPart: "billing", domain: from),
                sources: [
                    RegisteredSource(scope: .domain("app.example"), pairedEnvelopeDomain: paired)
                ],
                evidence: evidence(from: from, dkim: dkim, spf: spf, records))
        }
    }

    private static let refused = "550 5.7.26 reply-not-proved"
    private static let later = "451 4.4.3 dns-trouble"
    private static let failed = "550 5.7.26 dmarc-failed"

    // MARK: Replies

    @Test func replyProof_siblingOfStrictDomain_isRefused() {
        let strict: Records = ["_dmarc.home.example": "v=DMARC1; p=none; adkim=s; aspf=s"]
        #expect(
            reply(from: "a.home.example", dkim: [("b.home.example", .pass)], strict) == Self.refused
        )
        #expect(
            reply(from: "a.home.example", spf: [("b.home.example", .pass)], strict) == Self.refused)
        #expect(
            reply(from: "a.home.example", dkim: [("a.home.example", .pass)], strict)
                == "dkim:a.home.example")
        let relaxed: Records = ["_dmarc.home.example": "v=DMARC1; p=none"]
        #expect(
            reply(from: "a.home.example", dkim: [("b.home.example", .pass)], relaxed)
                == "dkim:b.home.example")
    }

    /// evilhome.example ends in home.example, but is not below it.
    @Test func replyProof_domainWithSameEnding_isRefused() {
        for records: Records in [
            ["_dmarc.home.example": "v=DMARC1; p=none"], ["_dmarc.home.example": "v=DMARC1"], [:],
        ] {
            #expect(
                reply(from: "home.example", dkim: [("evilhome.example", .pass)], records)
                    == Self.refused)
            #expect(
                reply(from: "home.example", spf: [("evilhome.example", .pass)], records)
                    == Self.refused)
            #expect(
                reply(from: "evilhome.example", dkim: [("home.example", .pass)], records)
                    == Self.refused)
        }
    }

    @Test func replyProof_parentOfStrictDomain_isRefused() {
        let strict: Records = [
            "_dmarc.a.home.example": "v=DMARC1; p=reject; adkim=s",
            "_dmarc.home.example": "v=DMARC1; p=none",
        ]
        #expect(
            reply(from: "a.home.example", dkim: [("home.example", .pass)], strict) == Self.refused)
        // This record requires it only for signatures.
        #expect(
            reply(
                from: "a.home.example", dkim: [("home.example", .pass)],
                spf: [("home.example", .pass)], strict)
                == "spf:home.example")
        #expect(
            reply(from: "a.home.example", dkim: [("home.example", .pass)], [:])
                == "dkim:home.example")
    }

    @Test func replyProof_strictRecordWithoutPolicy_isRefused() {
        let record: Records = ["_dmarc.home.example": "v=DMARC1; adkim=s"]
        #expect(
            reply(from: "a.home.example", dkim: [("home.example", .pass)], record) == Self.refused)
    }

    @Test func replyProof_organizationOfItsOwn_hasNoParent() {
        let unit: Records = [
            "_dmarc.unit.home.example": "v=DMARC1; p=none; psd=n",
            "_dmarc.home.example": "v=DMARC1; p=none",
        ]
        #expect(
            reply(from: "unit.home.example", dkim: [("home.example", .pass)], unit) == Self.refused)
        #expect(
            reply(from: "home.example", dkim: [("unit.home.example", .pass)], unit) == Self.refused)
    }

    /// The log names the look-up that failed.
    @Test func forwardProof_dnsTrouble_namesSelectorAndDomain() {
        func detail(
            dkim: [(String, DKIMResult)] = [], spf: [(String, SPFResult)] = [],
            _ records: Records = [:]
        ) -> String? {
            do throws(Refusal) {
                _ = try ForwardProof.prove(
                    author: AddrSpec(localPart: "billing", domain: "app.example"),
                    sources: [
                        RegisteredSource(scope: .domain("app.example"), pairedEnvelopeDomain: nil)
                    ],
                    evidence: evidence(from: "app.example", dkim: dkim, spf: spf, records))
                return nil
            } catch {
                return error.reason.code == .dnsTrouble
                    ? error.reason.detail : error.reason.code.rawValue
            }
        }
        #expect(
            detail(dkim: [("app.example", .temperror)]) == "the key s._domainkey.app.example: test")
        #expect(detail(spf: [("app.example", .temperror)]) == "SPF of app.example: test")
        #expect(detail(dkim: [("app.example", .pass)]) == nil)
    }

    @Test func replyProof_recordUnreadable_isDeferred() {
        let broken: Records = ["_dmarc.a.home.example": "!"]
        #expect(
            reply(from: "a.home.example", dkim: [("home.example", .pass)], broken) == Self.later)
        #expect(
            reply(from: "a.home.example", dkim: [("a.home.example", .pass)], broken)
                == "dkim:a.home.example")
        #expect(reply(from: "a.home.example", dkim: [("evil.test", .pass)], broken) == Self.refused)
        let strict: Records = [
            "_dmarc.a.home.example": "v=DMARC1; p=none; adkim=s", "_dmarc.home.example": "!",
        ]
        #expect(
            reply(from: "a.home.example", dkim: [("home.example", .pass)], strict) == Self.refused)
        #expect(
            reply(from: "a.home.example", dkim: [("home.example", .temperror)], strict)
                == Self.refused)
        #expect(
            reply(from: "a.home.example", dkim: [("a.home.example", .temperror)], strict)
                == Self.later)
    }

    // MARK: Forwards

    @Test func forwardProof_childOfStrictDomain_isRefused() {
        for policy in ["reject", "quarantine"] {
            let strict: Records = ["_dmarc.app.example": "v=DMARC1; p=\(policy); adkim=s; aspf=s"]
            #expect(
                forward(from: "app.example", dkim: [("child.app.example", .pass)], strict)
                    == Self.failed)
            #expect(
                forward(from: "app.example", spf: [("child.app.example", .pass)], strict)
                    == Self.failed)
            #expect(
                forward(from: "app.example", dkim: [("app.example", .pass)], strict)
                    == "dkim:app.example")
            let relaxed: Records = ["_dmarc.app.example": "v=DMARC1; p=\(policy)"]
            #expect(
                forward(from: "app.example", dkim: [("child.app.example", .pass)], relaxed)
                    == "dkim:child.app.example")
        }
    }

    @Test func forwardProof_policyNone_isNotRefused() {
        for record in [
            "v=DMARC1; p=none; adkim=s", "v=DMARC1; p=quarantine; t=y; adkim=s",
            "v=DMARC1; adkim=s",
        ] {
            #expect(
                forward(
                    from: "app.example", dkim: [("child.app.example", .pass)],
                    ["_dmarc.app.example": record])
                    == "dkim:child.app.example")
        }
        // One level below reject is quarantine, and pct has no meaning (RFC 9989).
        for record in ["v=DMARC1; p=reject; t=y; adkim=s", "v=DMARC1; p=reject; pct=0; adkim=s"] {
            #expect(
                forward(
                    from: "app.example", dkim: [("child.app.example", .pass)],
                    ["_dmarc.app.example": record]) == Self.failed)
        }
    }

    @Test func forwardProof_subdomainPolicy_isApplied() {
        let none: Records = ["_dmarc.app.example": "v=DMARC1; p=reject; sp=none; adkim=s"]
        #expect(
            forward(from: "mail.app.example", dkim: [("app.example", .pass)], none)
                == "dkim:app.example")
        let reject: Records = ["_dmarc.app.example": "v=DMARC1; p=none; sp=reject; adkim=s"]
        #expect(
            forward(from: "mail.app.example", dkim: [("app.example", .pass)], reject) == Self.failed
        )
        let nonexistent: Records = ["_dmarc.app.example": "v=DMARC1; p=none; np=reject; adkim=s"]
        #expect(
            forward(from: "mail.app.example", dkim: [("app.example", .pass)], nonexistent)
                == Self.failed)
    }

    @Test func forwardProof_pairedDomainAgainstPolicy_isRefused() {
        let reject: Records = ["_dmarc.app.example": "v=DMARC1; p=reject"]
        #expect(
            forward(
                from: "app.example", paired: "bounces.esp.example",
                spf: [("bounces.esp.example", .pass)], reject)
                == Self.failed)
        #expect(
            forward(
                from: "app.example", paired: "bounces.esp.example", dkim: [("app.example", .pass)],
                spf: [("bounces.esp.example", .pass)],
                reject) == "dkim:app.example")
        let none: Records = ["_dmarc.app.example": "v=DMARC1; p=none"]
        #expect(
            forward(
                from: "app.example", paired: "bounces.esp.example",
                spf: [("bounces.esp.example", .pass)], none)
                == "spf:bounces.esp.example")
        // A signature that cannot be checked now may be the aligned one.
        #expect(
            forward(
                from: "app.example", paired: "bounces.esp.example",
                dkim: [("app.example", .temperror)],
                spf: [("bounces.esp.example", .pass)], reject) == Self.later)
    }

    @Test func forwardProof_policyUnreadable_isDeferred() {
        let broken: Records = ["_dmarc.app.example": "!"]
        #expect(
            forward(from: "app.example", dkim: [("child.app.example", .pass)], broken) == Self.later
        )
        #expect(
            forward(from: "app.example", dkim: [("app.example", .pass)], broken)
                == "dkim:app.example")
        #expect(
            forward(from: "app.example", dkim: [("evil.test", .pass)], broken)
                == "550 5.7.26 proof-failed")
    }

    /// The complete process, with the reply to the sender.
    @Test func forwardProof_dmarcFails_hasItsOwnReply() {
        let found = evidence(
            from: "app.example", dkim: [("child.app.example", .pass)],
            ["_dmarc.app.example": "v=DMARC1; p=reject; adkim=s"])
        let decision = Fixture(evidence: found).play(
            from: "x@child.app.example", to: ["annarelay2@relay.example"],
            message: "From: a@app.example\r\n\r\nx\r\n"
        ).decision
        guard case .refuse(let refusal) = decision.outcome else {
            Issue.record("\(decision.outcome)")
            return
        }
        #expect(
            refusal.reply.text
                == "DMARC fails, and the domain of From asks that such mail be refused")
        #expect(refusal.reason.code == .dmarcFailed)
    }
}
