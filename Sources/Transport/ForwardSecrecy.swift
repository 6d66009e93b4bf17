// The minimum requirements for TLS, the same for all connections.

import NIOSSL

extension TLSConfiguration {
    /// TLS 1.3, and the cipher suites of TLS 1.2 with forward secrecy and authenticated encryption
    /// (RFC 9325 section 4.2): no key exchange by static RSA, no CBC. The handshake fails for a
    /// peer that supports none of these.
    package mutating func requireForwardSecrecy() {
        minimumTLSVersion = .tlsv12
        cipherSuiteValues = [
            .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ]
    }
}
