// What TLS has to offer at least, the same wherever we speak it.

import NIOSSL

extension TLSConfiguration {
    /// TLS 1.3, and of TLS 1.2 what is forward secret and authenticated as a whole (RFC 9325 section 4.2): no key exchange by
    /// static RSA, no CBC. A peer that has nothing of these does not get through the handshake.
    package mutating func requireForwardSecrecy() {
        minimumTLSVersion = .tlsv12
        cipherSuiteValues = [
            .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ]
    }
}
