// Connects the key store, which keeps text, with mail authentication, which signs.

import Accounts
import Database
import Foundation
import MailAuth
import MailCrypto

/// Generates, reads and publishes the relay's signing keys.
package enum DKIMKeyMaker {
    /// Generates a key and stores it.
    /// - Parameters:
    ///   - bits: if nil, the minimum of the algorithm.
    ///   - selector: if nil, made of algorithm and month, as in `rsa202611`.
    ///   - isActive: whether it signs at once, even if it is not yet published.
    package static func generate(
        _ store: Store, domain: String, algorithm: DKIMAlgorithm, selector: String? = nil,
        bits: Int? = nil,
        isActive: Bool = false,
        _ change: Change
    ) throws -> DKIMKey {
        let allowed = algorithm.newKeyBits
        let bits = bits ?? allowed.lowerBound
        guard allowed.contains(bits) else {
            throw StoreFailure.refused(
                .invalid,
                "a key of \(algorithm.rawValue) must have \(allowed.lowerBound) to \(allowed.upperBound) bits"
            )
        }
        let privateKey: DKIMPrivateKey
        do {
            privateKey = DKIMPrivateKey(
                pem: try DKIMSigningKey.generate(algorithm, bits: bits).pem())
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
            domain: domain, selector: name, algorithm: algorithm, bits: bits,
            privateKey: privateKey,
            isActive: isActive, change)
    }

    private static func freeSelector(
        _ store: Store, domain: String, algorithm: DKIMAlgorithm, now: Int64
    ) throws -> String {
        let month = timestampMonth(now)
        let base = algorithm.selectorStart + month
        let taken = Set(
            try store.dkimKeys.keys().filter { $0.domain == HostName(domain)?.text }.map(\.selector)
        )
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
    package static func parse(
        _ privateKey: DKIMPrivateKey, of key: DKIMKey
    ) throws -> DKIMSigningKey {
        do {
            return try DKIMSigningKey(key.algorithm, pem: privateKey.pem)
        } catch {
            throw StoreFailure.permanent(
                .unexpectedData, "the key \(key.selector) of \(key.domain) cannot be read: \(error)"
            )
        }
    }

    /// The DNS record of a key, which must stay until the key is retired.
    package static func publication(_ key: DKIMKey, in store: Store) throws -> DKIMKeyPublication {
        let parsed = try parse(store.dkimKeys.privateKey(key), of: key)
        do {
            return try DKIMKeyPublication(domain: key.domain, selector: key.selector, key: parsed)
        } catch {
            throw StoreFailure.permanent(
                .unexpectedData,
                "the key \(key.selector) of \(key.domain) cannot be published: \(error)")
        }
    }
}
