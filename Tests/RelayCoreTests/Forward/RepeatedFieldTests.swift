// Signed mail that is sent again with more fields: a second field of the same name, or a Reply-To
// that the signature does not cover.

import InternetMessage
import MailAuth
import MailTesting
import RelayCore
import Testing

struct RepeatedFieldTests {
    private static let once = [
        "Subject: a", "Date: Fri, 21 Nov 2025 06:00:00 +0100", "To: annarelay2@relay.example",
        "Sender: s@app.example",
        "Reply-To: r@app.example", "Message-ID: <1@app.example>",
    ]

    private func found(_ decision: RelayDecision) -> Refusal? {
        if case .refuse(let refusal) = decision.outcome { refusal } else { nil }
    }

    @Test(arguments: once) func field_secondOneInForward_isRefused(_ field: String) throws {
        let message = "From: b@app.example\r\n" + Self.once.map { $0 + "\r\n" }.joined()
        func play(_ message: String) -> RelayDecision {
            Fixture(evidence: .signed("app.example"))
                .play(
                    from: "b@app.example", to: ["annarelay2@relay.example"],
                    message: message + "\r\nHello\r\n"
                ).decision
        }
        #expect(play(message).outcome == .relay)
        let name = try #require(field.split(separator: ":").first)
        for second in [field, field.lowercased(), "\(name) : x"] {
            for repeated in [second + "\r\n" + message, message + second + "\r\n"] {
                let refusal = try #require(found(play(repeated)), "\(second)")
                #expect(refusal.reply.code == 550 && refusal.reason.code == .repeatedField)
                #expect(
                    refusal.reply.text
                        == "The header section cannot be read safely: more than one \(name) field")
            }
        }
    }

    @Test func field_thatProgramsRepeat_isReadAsOne() {
        let fields = [
            "Cc: c@app.example", "In-Reply-To: <2@app.example>", "References: <3@app.example>",
        ].map { $0 + "\r\n" + $0 }
        let message =
            "From: b@app.example\r\nTo: annarelay2@relay.example\r\n\(fields.joined(separator: "\r\n"))\r\n\r\nHello\r\n"
        let fixture = Fixture(evidence: .signed("app.example"))
        #expect(
            fixture.play(from: "b@app.example", to: ["annarelay2@relay.example"], message: message)
                .decision.outcome == .relay)
    }

    @Test(arguments: ["Subject: a", "Reply-To: r@inbox.example", "Date: x"])
    func field_secondOneInReply_isRefusedLikeAnUnprovedReply(_ field: String) {
        let fixture = Fixture(evidence: .signed("inbox.example"))
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number,
            correspondent: AddrSpec(localPart: "b", domain: "app.example")
        ).localPart
        func play(_ fields: String) -> RelayDecision {
            fixture.play(
                from: "anna@inbox.example", to: ["\(reverse)@relay.example"],
                message:
                    "From: anna@inbox.example\r\nTo: \(reverse)@relay.example\r\n\(fields)\r\nHello\r\n"
            ).decision
        }
        #expect(play(field + "\r\n").outcome == .relay)
        let refusal = found(play(field + "\r\n" + field + "\r\n"))
        #expect(
            refusal?.reply == Refusal.replyNotProved(RelayReason(.replyNotProved)).reply
                && refusal?.reason.code == .repeatedField
        )
    }

    /// A stranger must not turn the signed octets into another message.
    @Test(arguments: [
        "Content-Type: multipart/mixed; boundary=evil", "Content-Transfer-Encoding: base64",
        "MIME-Version: 2.0", "Content-Disposition: attachment",
    ])
    func mimeField_secondOneWithAnotherValue_isRefused(_ field: String) {
        let own = [
            "MIME-Version: 1.0", "Content-Type: text/plain", "Content-Transfer-Encoding: 7bit",
            "Content-Disposition: inline",
        ]
        func play(_ fields: [String]) -> RelayDecision {
            Fixture(evidence: .signed("app.example"))
                .play(
                    from: "b@app.example", to: ["annarelay2@relay.example"],
                    message: (["From: b@app.example"] + fields).joined(separator: "\r\n")
                        + "\r\n\r\nHello\r\n"
                ).decision
        }
        #expect(play(own).outcome == .relay)
        #expect(play(own + own).outcome == .relay, "the same twice is harmless")
        for fields in [[field] + own, own + [field]] {
            #expect(found(play(fields))?.reason.code == .repeatedField)
        }
    }

    // MARK: Fields next to a signature

    /// What leaves of fields that may be added to a message signed over `signed`.
    private func left(of fields: [String], signed: String, spf: SPFResult = .none) -> [String] {
        let evidence = AuthenticationEvidence(
            spf: [SPFFinding(result: spf, identity: .mailFrom, domain: "app.example", reason: "")],
            dkim: [
                DKIMFinding(
                    result: .pass, domain: "app.example", selector: "s", algorithm: "rsa-sha256",
                    coversWholeBody: true, reason: "", signaturePrefix: "AbCdEfGh")
            ])
        let message =
            ([
                "DKIM-Signature: v=1; a=rsa-sha256; d=app.example; s=s; h=\(signed); bh=x; b=AbCdEfGhIjKl",
                "From: b@app.example", "To: annarelay2@relay.example",
            ] + fields).joined(separator: "\r\n") + "\r\n\r\nHello\r\n"
        let decision = Fixture(evidence: evidence).play(
            from: "b@app.example", to: ["annarelay2@relay.example"], message: message
        ).decision
        #expect(decision.outcome == .relay)
        let told = decision.reasons.filter { $0.code == .fieldUnsigned }.map { "\($0)" }
        #expect(told.count <= 4 && !told.contains { $0.lowercased().contains("list-") })
        let old = Message.parse(Array(message.utf8))
        var new = ModifiedMessage(header: old.header, body: old.body, sender: "", recipients: [])
        new.apply(decision.modifications)
        let names = Set(fields.map { String($0.prefix { $0 != ":" }) })
        return HeaderSection(new.header).fields.map(\.name).filter(names.contains)
    }

    private static let leading = [
        "Cc: x@evil.example", "Sender: x@evil.example", "List-Post: <mailto:x@evil.example>",
        "List-Unsubscribe: <https://evil.example/u>",
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
    ]

    @Test(arguments: leading) func field_notCovered_isNotHonoured(_ field: String) {
        let name = field.prefix { $0 != ":" }
        #expect(left(of: [field], signed: "from:to:subject") == [])
        #expect(left(of: [field], signed: "from:to:\(name)") == [String(name)])
        #expect(left(of: [field], signed: "from:to", spf: .pass) == [String(name)])
        // The signature covers the lower one.
        #expect(left(of: ["Cc: b@app.example", field], signed: "from:to").count <= 1)
    }

    /// Neither the time nor the log depends on what a stranger calls fields.
    @Test func field_manyNamesWithLinks_areRemovedWithoutTheirNames() {
        let fields = (0..<900).map { "List-x\($0): <https://evil.example/>" }
        #expect(left(of: fields, signed: "from:to").isEmpty)
    }

    @Test func field_addedAboveTheSignedOne_isNotHonoured() {
        let two = ["Cc: x@evil.example", "Cc: y@other.example"]
        #expect(left(of: two, signed: "from:cc") == [])
        #expect(left(of: two, signed: "from:cc:cc") == ["Cc", "Cc"])
        #expect(left(of: ["Cc: c@app.example"], signed: "from") == ["Cc"], "the team's own")
    }

    // MARK: Reply-To next to a signature

    private func replyTo(
        _ value: String, signed fields: String, spf: SPFResult = .none,
        domain: String = "app.example"
    ) -> [String] {
        let evidence = AuthenticationEvidence(
            spf: [SPFFinding(result: spf, identity: .mailFrom, domain: "app.example", reason: "")],
            dkim: [
                DKIMFinding(
                    result: .pass, domain: "app.example", selector: "s", algorithm: "rsa-sha256",
                    coversWholeBody: true,
                    reason: "",
                    signaturePrefix: "AbCdEfGh")
            ])
        let fixture = Fixture(evidence: evidence)
        let message = """
            DKIM-Signature: v=1; a=rsa-sha256; d=\(domain); s=s; h=\(fields);\r
             bh=x; b=AbC\r
             dEfGhIjKl\r
            DKIM-Signature: v=1; a=rsa-sha256; d=app.example; s=s; h=from:reply-to; bh=x; b=Forged\r
            From: b@app.example\r
            To: annarelay2@relay.example\r
            Reply-To: \(value)\r
            Subject: x\r
            \r
            Hello\r

            """
        let decision = fixture.play(
            from: "b@app.example", to: ["annarelay2@relay.example"], message: message
        ).decision
        #expect(decision.outcome == .relay)
        let old = Message.parse(Array(message.utf8))
        var new = ModifiedMessage(header: old.header, body: old.body, sender: "", recipients: [])
        new.apply(decision.modifications)
        let isNoted = decision.reasons.contains { $0.code == .fieldUnsigned }
        let found = HeaderSection(new.header).all("Reply-To").flatMap {
            AddressList.parse($0.rawValue).mailboxes
        }
        .map { String($0.addrSpec.localPart.prefix { $0 != "=" }) }
        #expect(isNoted == found.isEmpty)
        return found
    }

    @Test func replyTo_coveredBySignature_stays() {
        #expect(replyTo("x@evil.example", signed: "from:to:subject:Reply-To") == ["x"])
        #expect(replyTo("x@evil.example", signed: "From : To : Reply-To : Subject") == ["x"])
    }

    @Test func replyTo_notCoveredAndOutsideTheTeam_isNotHonoured() {
        #expect(replyTo("x@evil.example", signed: "from:to:subject") == [])
        #expect(
            replyTo("r@app.example, x@evil.example", signed: "from:to:subject:in-reply-to") == [])
        #expect(replyTo("=?utf-8?Q?x=40evil.example?=", signed: "from:to:subject") == [])
    }

    @Test func replyTo_notCovered_staysWhereItIsTheTeamsOrSPFProves() {
        #expect(replyTo("r@app.example", signed: "from:to:subject") == ["r"])
        #expect(replyTo("r@mail.app.example", signed: "from:to:subject") == ["r"])
        #expect(replyTo("x@evil.example", signed: "from:to:subject", spf: .pass) == ["x"])
    }

    @Test func replyTo_upstreamFilterRemovedTheSignature_stays() {
        #expect(replyTo("x@evil.example", signed: "from", domain: "other.example") == ["x"])
    }
}
