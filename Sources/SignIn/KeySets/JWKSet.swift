// The keys of an issuer, from a JWK Set (RFC 7517 section 5).

import MailCrypto
import Support

/// A document that is not a key set.
package struct KeySetError: Error, Sendable, Hashable, CustomStringConvertible {
    package let reason: String
    package init(_ reason: String) { self.reason = reason }
    package var description: String { reason }
}

/// Public keys by `kid` and algorithm. An unusable key is kept with the reason, so that a token
/// naming it gets a precise error.
package struct JWKSet: Sendable {
    /// Longest document read, in octets: large issuers publish some 20 KiB.
    package static let maximumLength = 262_144
    /// The most keys in a document: each needs a check of its point or modulus.
    package static let maximumKeys = 100
    /// Length of an RSA modulus in bits: a shorter one is too weak (RFC 7518 section 3.3), a
    /// longer one only costs time.
    package static let rsaBits = 2048...8192

    /// A key of the document that cannot verify tokens.
    package struct Unusable: Sendable, Hashable {
        package let keyID: String?
        /// The reason, as in "an RSA key of 1024 bits".
        package let reason: String
    }

    package private(set) var keys: [VerificationKey] = []
    package private(set) var unusable: [Unusable] = []

    /// A set of these keys, for example those that a team registered.
    package init(_ keys: [VerificationKey] = []) {
        self.keys = keys
        setAsideAmbiguous()
    }

    /// What is known about a key id.
    package enum Lookup: Sendable {
        case key(VerificationKey)
        /// The set has a key with this id, but it cannot be used with this algorithm.
        case unusable(String)
        /// No key has this id.
        case unknown
    }

    /// The key with this id for this algorithm; without an id, the only key of the set (OpenID
    /// Connect Core section 10.1).
    package func find(_ keyID: String?, _ algorithm: SignatureAlgorithm) -> Lookup {
        guard let keyID else {
            guard keys.count == 1, unusable.isEmpty, keys[0].algorithm == algorithm else {
                return .unknown
            }
            return .key(keys[0])
        }
        let candidates = keys.filter { $0.keyID.hasSameOctets(as: keyID) }
        if let key = candidates.first(where: { $0.algorithm == algorithm }) { return .key(key) }
        if let other = candidates.first {
            return .unusable("a key for \(other.algorithm.rawValue)")
        }
        if let key = unusable.first(where: { $0.keyID?.hasSameOctets(as: keyID) == true }) {
            return .unusable(key.reason)
        }
        return .unknown
    }

    /// Reads a JWK Set. Unusable keys are set aside (RFC 7517 section 5), as are different keys
    /// with the same id and algorithm. A malformed document is refused.
    /// - Parameter allowingPrivateKeys: whether a key may be used even if its private part is
    ///   given with it. Only for documents that a person enters: a key published with its
    ///   private part proves nothing.
    package static func parse(
        _ octets: [UInt8], allowingPrivateKeys: Bool = false
    ) throws(KeySetError) -> JWKSet {
        let document: JSONObject
        do {
            // RFC 8259 section 8.1: a reader may ignore the mark that some editors write.
            let text =
                octets.starts(with: PlainText.byteOrderMark) ? Array(octets.dropFirst(3)) : octets
            document = try StrictJSON.parseObject(text, limit: maximumLength)
        } catch {
            throw KeySetError("the key set is not valid JSON: \(error)")
        }
        guard case .array(let elements)? = document["keys"] else {
            throw KeySetError("the key set has no list of keys")
        }
        guard elements.count <= maximumKeys else {
            throw KeySetError("the key set has more than \(maximumKeys) keys")
        }
        var set = JWKSet()
        for element in elements {
            guard case .object(let jwk) = element else {
                throw KeySetError("a key of the key set is not an object")
            }
            switch JWKReader(jwk: jwk, allowsPrivateParts: allowingPrivateKeys).read() {
            case .success(let key): set.keys.append(key)
            case .failure(let defect):
                set.unusable.append(Unusable(keyID: jwk["kid"]?.string, reason: defect.reason))
            }
        }
        set.setAsideAmbiguous()
        return set
    }

    /// One key. Throws if it cannot be used.
    static func key(_ jwk: JSONObject) throws(KeySetError) -> VerificationKey {
        switch JWKReader(jwk: jwk, allowsPrivateParts: false).read() {
        case .success(let key): return key
        case .failure(let defect): throw KeySetError(defect.reason)
        }
    }

    /// Sets aside different keys with the same id and algorithm: picking one would be a guess. The
    /// same key twice is one key.
    private mutating func setAsideAmbiguous() {
        struct Name: Hashable {
            let keyID: [UInt8]
            let algorithm: SignatureAlgorithm
        }
        var kept: [VerificationKey] = []
        for (_, group) in Dictionary(
            grouping: keys.enumerated(),
            by: { entry in
                Name(keyID: Array(entry.element.keyID.utf8), algorithm: entry.element.algorithm)
            }
        ).sorted(by: { $0.value[0].offset < $1.value[0].offset }) {
            let first = group[0].element
            if group.allSatisfy({ $0.element.identity == first.identity }) {
                kept.append(first)
            } else {
                unusable.append(
                    Unusable(keyID: first.keyID, reason: "one of several keys with this kid"))
            }
        }
        keys = kept
    }
}

/// Reads one JWK (RFC 7517 section 4, RFC 7518 section 6).
private struct JWKReader {
    struct Defect: Error {
        let reason: String
        init(_ reason: String) { self.reason = reason }
    }

    let jwk: JSONObject
    let allowsPrivateParts: Bool

    func read() -> Result<VerificationKey, Defect> {
        do throws(Defect) {
            return .success(try key())
        } catch {
            return .failure(error)
        }
    }

    private func key() throws(Defect) -> VerificationKey {
        guard case .string(let keyID)? = jwk["kid"], (1...256).contains(keyID.utf8.count) else {
            throw Defect("a key without kid")
        }
        guard keyID.hasNoControls else { throw Defect("a key whose kid has control characters") }
        try checkPurpose()
        if !allowsPrivateParts, ["d", "p", "q", "k"].contains(where: { jwk[$0] != nil }) {
            throw Defect("a key published with its private part")
        }
        switch jwk["kty"]?.string {
        case "RSA":
            try checkAlgorithm(.rs256)
            return try rsa(keyID)
        case "EC":
            try checkAlgorithm(.es256)
            guard jwk["crv"]?.string == "P-256" else {
                throw Defect("a key on another curve than P-256")
            }
            guard let x = octets("x"), let y = octets("y"), x.count == 32, y.count == 32 else {
                throw Defect("a key whose coordinates are not 32 octets each in base64url")
            }
            guard let key = try? P256PublicKey(x: x, y: y) else {
                throw Defect("a key that is not a point of P-256")
            }
            return VerificationKey(keyID: keyID, key)
        default: throw Defect("a key that is neither RSA nor EC")
        }
    }

    private func rsa(_ keyID: String) throws(Defect) -> VerificationKey {
        guard let modulus = octets("n"), let exponent = octets("e"), let first = modulus.first,
            first != 0,
            let leading = exponent.first, leading != 0
        else { throw Defect("an RSA key whose numbers are not base64url without leading zeros") }
        let bits = modulus.count * 8 - first.leadingZeroBitCount
        guard JWKSet.rsaBits.contains(bits) else { throw Defect("an RSA key of \(bits) bits") }
        // With an exponent of 1, every text would be its own signature;
        // beyond 32 bits it only costs time.
        guard exponent.count <= 4, exponent.last.map({ $0 & 1 == 1 }) == true, exponent != [1]
        else {
            throw Defect("an RSA key with an unsupported exponent")
        }
        guard !ROCA.marks(modulus: modulus) else {
            throw Defect("an RSA key with the weakness of CVE-2017-15361 (ROCA)")
        }
        guard modulus.last.map({ $0 & 1 == 1 }) == true,
            let key = VerificationKey(keyID: keyID, modulus: modulus, exponent: exponent)
        else { throw Defect("an RSA key that is not valid") }
        return key
    }

    /// Checks that `use` and `key_ops`, if present, allow verifying (RFC
    /// 7517 sections 4.2 and 4.3).
    private func checkPurpose() throws(Defect) {
        if let use = jwk["use"], use.string != "sig" {
            throw Defect("a key that is not for signatures")
        }
        guard let operations = jwk["key_ops"] else { return }
        let names = operations.array?.compactMap(\.string) ?? []
        guard names.count == operations.array?.count, names.contains("verify"),
            Set(names).count == names.count
        else {
            throw Defect("a key that is not for verification")
        }
    }

    private func checkAlgorithm(_ algorithm: SignatureAlgorithm) throws(Defect) {
        guard let named = jwk["alg"] else { return }
        guard named.string == algorithm.rawValue else {
            throw Defect("a key for an algorithm other than \(algorithm.rawValue)")
        }
    }

    private func octets(_ name: String) -> [UInt8]? {
        jwk[name]?.string.flatMap { Base64URL.decode($0.utf8) }
    }
}
