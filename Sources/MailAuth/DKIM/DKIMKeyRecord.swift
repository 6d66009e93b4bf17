// Key records in the DNS (RFC 6376 section 3.6.1, RFC 8463 section 4).

import MailCrypto

struct DKIMKeyRecord: Sendable {
    /// A record without a usable key for mail. `reason` is for the log.
    struct Unusable: Error, Hashable {
        let reason: String
        /// Whether it is a key record of this kind; other records at the name mean nothing.
        let isKeyRecord: Bool
    }

    let algorithm: DKIMAlgorithm
    /// `p=`, decoded: SubjectPublicKeyInfo or RSAPublicKey for RSA, 32 raw octets for Ed25519.
    let keyData: [UInt8]
    /// Whether SHA-256 is among the hashes of `h=`; true without that tag.
    let allowsSHA256: Bool
    /// `t=y`: the domain is only testing (see `DKIMVerifier`).
    let isTesting: Bool
    /// `t=s`: the domain of `i=` must be `d=` itself.
    let requiresSameDomain: Bool
    /// The key itself; nil if the data is not a valid key of that type.
    let publicKey: DKIMPublicKey?

    /// Recently read records. A team's mail uses one key. The first use of a key also computes data
    /// that libcrypto keeps with it for later uses.
    static let parsed = ParsedRecords<Result<DKIMKeyRecord, Unusable>> { text in
        do throws(Unusable) { return .success(try DKIMKeyRecord(text)) } catch {
            return .failure(error)
        }
    }

    init(_ record: [UInt8]) throws(Unusable) {
        let tags: DKIMTagList
        do { tags = try DKIMTagList(record[...]) } catch {
            throw Unusable(
                reason: "the key record is malformed: \(error.reason)", isKeyRecord: false)
        }
        if let version = tags["v"] {
            guard tags.begins(with: "v"), DKIMSyntax.equals(version.value, "DKIM1") else {
                throw Unusable(reason: "the record is not a DKIM1 key record", isKeyRecord: false)
            }
        }
        guard let data = tags["p"]?.value else {
            throw Unusable(reason: "the key record has no key", isKeyRecord: false)
        }
        func unusable(_ reason: String) -> Unusable { Unusable(reason: reason, isKeyRecord: true) }
        guard !data.isEmpty else { throw unusable("the key is revoked") }
        let type = tags["k"]?.value
        let known =
            type.map { type in DKIMAlgorithm.allCases.first { type.elementsEqual($0.rawValue.utf8) }
            } ?? .rsa
        guard let known else { throw unusable("the type of the key is unknown") }
        algorithm = known
        guard let key = DKIMBase64.decode(data) else {
            throw unusable("the key is not valid base64")
        }
        keyData = key
        if let services = tags["s"]?.value,
            !DKIMSyntax.colonList(services).contains(where: {
                DKIMSyntax.equals($0, "*") || DKIMSyntax.equals($0, "email")
            })
        {
            throw unusable("the key is not for mail")
        }
        allowsSHA256 =
            tags["h"].map {
                DKIMSyntax.colonList($0.value).contains { DKIMSyntax.equals($0, "sha256") }
            } ?? true
        let flags = tags["t"].map { DKIMSyntax.colonList($0.value) } ?? []
        isTesting = flags.contains { DKIMSyntax.equals($0, "y") }
        requiresSameDomain = flags.contains { DKIMSyntax.equals($0, "s") }
        publicKey = DKIMPublicKey(algorithm, data: key)
    }
}
