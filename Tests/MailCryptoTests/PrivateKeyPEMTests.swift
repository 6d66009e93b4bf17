// Private keys must be readable in optimised builds too: the BIO must not outlive the pointer that
// it uses.

import MailCrypto
import TestSupport
import Testing

@Suite(.blocking) struct PrivateKeyPEMTests {
    @Test func pem_privateKeyWritten_isReadBack() throws {
        for _ in 0..<20 {
            let key = try Ed25519PrivateKey.generate()
            #expect(try Ed25519PrivateKey(pem: try key.pem()).rawPublicKey() == key.rawPublicKey())
        }
        let rsa = try RSAPrivateKey.generate(bits: 2048)
        #expect(try RSAPrivateKey(pem: try rsa.pem()).publicKeyInfo() == rsa.publicKeyInfo())
    }
}
