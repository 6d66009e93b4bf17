// Connects the key store, which keeps text, with mail authentication, which signs.

import Database
import Accounts
import Foundation
import MailAuth
import MailCrypto

/// Generates, reads and publishes the relay's signing keys.
package enum DKIMKeyMaker {
    /// Allowed lengths of new RSA keys: some verifiers refuse 1024, and need not support more than 4096 (RFC 8301 section 3.2).
    package static let rsaBits = 2048...4096

    /// Generates a key and stores it.
    /// - Parameters:
    ///   - selector: nil for one made of algorithm and month, as in `rsa202611`.
    ///   - isActive: whether it signs at once, published or not.
    package static func generate(
        _ store: Store, domain: String, algorithm: DKIMKey.Algorithm, selector: String? = nil, bits: Int = 2048,
        isActive: Bool = false,
        _ change: Change
    ) throws -> DKIMKey {
        let privateKey: DKIMPrivateKey
        do {
            switch algorithm {
            case .rsa:
                guard rsaBits.contains(bits) else {
                    throw StoreFailure.refused(
                        .invalid, "an RSA key must have \(rsaBits.lowerBound) to \(rsaBits.upperBound) bits")
                }
                privateKey = DKIMPrivateKey(pem: try RSAPrivateKey.generate(bits: bits).pem())
            case .ed25519: privateKey = DKIMPrivateKey(pem: try Ed25519PrivateKey.generate().pem())
            }
        } catch let error as CryptoError {
            throw StoreFailure.temporary(.resources, "the key cannot be generated: \(error)")
        }
        let name: String
        if let selector {
            name = selector
        } else {
            name = try freeSelector(store, domain: domain, algorithm: algorithm, now: change.now)
        }
        return try store.dkimKeys.add(
            domain: domain, selector: name, algorithm: algorithm, bits: algorithm == .rsa ? bits : 256, privateKey: privateKey,
            isActive: isActive, change)
    }

    private static func freeSelector(_ store: Store, domain: String, algorithm: DKIMKey.Algorithm, now: Int64) throws -> String {
        let month = timestampMonth(now)
        let base = (algorithm == .rsa ? "rsa" : "ed") + month
        let taken = Set(try store.dkimKeys.keys().filter { $0.domain == HostName(domain)?.text }.map(\.selector))
        var name = base
        var number = 2
        while taken.contains(name) {
            name = "\(base)-\(number)"
            number += 1
        }
        return name
    }

    /// `202611`.
    private static func timestampMonth(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(
            .iso8601.year().month().dateSeparator(.omitted))
    }

    /// The key for libcrypto. Throws `unexpectedData` if it cannot be read.
    package static func parse(_ privateKey: DKIMPrivateKey, of key: DKIMKey) throws -> DKIMSigner.Key {
        do {
            return switch key.algorithm {
            case .rsa: .rsa(try RSAPrivateKey(pem: privateKey.pem))
            case .ed25519: .ed25519(try Ed25519PrivateKey(pem: privateKey.pem))
            }
        } catch {
            throw StoreFailure.permanent(.unexpectedData, "the key \(key.selector) of \(key.domain) cannot be read: \(error)")
        }
    }

    /// The DNS record that a key should have until it is retired.
    package static func publication(_ key: DKIMKey, in store: Store) throws -> DKIMKeyPublication {
        let parsed = try parse(store.dkimKeys.privateKey(key), of: key)
        do {
            return try DKIMKeyPublication(domain: key.domain, selector: key.selector, key: parsed)
        } catch {
            throw StoreFailure.permanent(
                .unexpectedData, "the key \(key.selector) of \(key.domain) cannot be published: \(error)")
        }
    }
}
