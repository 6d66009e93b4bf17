// Codes of authenticator apps.

import MailCrypto
import SignIn
import Support
import Testing

struct OneTimePasswordTests {
    private let secret = Array("12345678901234567890".utf8)

    /// The last six of the eight digits of RFC 6238 appendix B, SHA-1.
    @Test(
        arguments: [
            (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"), (20_000_000_000, "353130"),
        ] as [(Int64, String)])
    func code_timesOfTheRFC_isAsThere(time: Int64, code: String) {
        #expect(OneTimePassword.code(secret, step: OneTimePassword.step(at: time)) == code)
        #expect(OneTimePassword.step(of: code, secret, at: time) == OneTimePassword.step(at: time))
    }

    /// RFC 4226 appendix D: the same codes, by counter.
    @Test func code_countersOfTheRFC_isAsThere() {
        let codes = (0..<10).map { OneTimePassword.code(secret, step: $0) }
        #expect(
            codes == [
                "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583",
                "399871", "520489",
            ])
    }

    @Test func step_phoneSlowOrFast_isAcceptedForOneStepOnly() {
        let now: Int64 = 1_234_567_890
        let step = OneTimePassword.step(at: now)
        for (offset, isRight) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)]
            as [(Int64, Bool)]
        {
            let code = OneTimePassword.code(secret, step: step + offset)
            #expect(
                OneTimePassword.step(of: code, secret, at: now) == (isRight ? step + offset : nil),
                "\(offset)")
        }
    }

    @Test func setUpURI_serviceAndInboxWithMarks_areEscaped() {
        let uri = OneTimePassword.setUpURI(
            secret, service: "Fig & Co", account: "anna+é@home.example")
        #expect(
            uri == "otpauth://totp/Fig%20%26%20Co:anna%2B%C3%A9%40home.example"
                + "?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Fig%20%26%20Co")
    }
}
