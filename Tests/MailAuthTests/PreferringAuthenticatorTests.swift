// If a trusted filter did not report DMARC, it is evaluated here.

import InternetMessage
import TestSupport
import Testing

@testable import MailAuth

@Suite(.blocking) struct PreferringAuthenticatorTests {
    private func dmarc(
        _ results: String, record: String = "v=DMARC1; p=reject; adkim=s; aspf=s",
        failing: Bool = false
    ) -> String {
        let zone = ZoneResolver([
            "_dmarc.app.example": failing
                ? .init(failure: .timeout) : .init(records: [.txt: [.txt(Array(record.utf8))]])
        ])
        let authenticator = PreferringAuthenticator(
            upstream: UpstreamResultsAuthenticator(trustedIDs: ["mx.example"]),
            otherwise: NativeAuthenticator { zone })
        let message = Message.parse(
            Array(
                "Authentication-Results: mx.example; \(results)\r\nFrom: a@app.example\r\n\r\nx\r\n"
                    .utf8))
        let finding = authenticator.begin(
            client: SMTPClientIdentity(address: "192.0.2.1", helo: "h", mailFrom: "b@app.example"),
            header: message.header, now: 0
        ).finish().dmarc
        guard let finding else { return "nothing" }
        let strict = (finding.isStrictDKIM ? " dkim" : "") + (finding.isStrictSPF ? " spf" : "")
        return
            "\(finding.result.rawValue) \(finding.policy.isEmpty ? "-" : finding.policy)\(strict)"
    }

    @Test func dmarc_filterGaveNoDMARCResult_isEvaluatedHere() {
        #expect(
            dmarc("spf=none smtp.mailfrom=b@app.example; dkim=pass header.d=child.app.example")
                == "fail reject dkim spf")
        #expect(
            dmarc("spf=none smtp.mailfrom=b@app.example; dkim=pass header.d=app.example")
                == "pass reject dkim spf")
    }

    /// Another method, which the filter did not report, may have passed.
    @Test func dmarc_onlyOneMethodJudged_doesNotFail() {
        #expect(dmarc("spf=fail smtp.mailfrom=b@app.example") == "none reject dkim spf")
        #expect(dmarc("spf=pass smtp.mailfrom=b@app.example") == "pass reject dkim spf")
    }

    @Test func dmarc_failWithoutPolicy_takesPolicyFromRecord() {
        #expect(dmarc("dmarc=fail (p=reject) header.from=app.example") == "fail reject")
        #expect(
            dmarc("dmarc=fail header.from=app.example", record: "v=DMARC1; p=none") == "fail none")
        #expect(dmarc("dmarc=fail header.from=app.example", record: "v=spf1 -all") == "fail none")
        #expect(dmarc("dmarc=fail header.from=app.example", failing: true) == "fail -")
        #expect(
            dmarc("dmarc=fail header.from=app.example policy.dmarc=quarantine") == "fail quarantine"
        )
    }

    @Test func dmarc_filterGavePass_isKept() {
        #expect(
            dmarc("dmarc=pass header.from=app.example; dkim=pass header.d=child.app.example")
                == "pass -")
    }
}
