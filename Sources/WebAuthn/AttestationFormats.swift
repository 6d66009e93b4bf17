// Attestation statements, each verified as its section of WebAuthn Level 3 requires.

import MailCrypto

/// Section 8.2.
enum PackedAttestation {
    /// The extension in which a certificate names the model, id-fido-gen-ce-aaguid.
    private static let model = "1.3.6.1.4.1.45724.1.1.4"

    static func verify(_ question: AttestationQuestion) throws(WebAuthnError) -> [Certificate] {
        guard question.statement["ecdaaKeyId"] == nil else {
            throw question.refused("ECDAA is not accepted")
        }
        guard question.statement["x5c"] != nil else {
            let key = question.credential.publicKey
            guard question.statement["alg"]?.integer == key.algorithm.rawValue else {
                throw question.refused(
                    "it signs for itself by another algorithm than the credential's")
            }
            try question.checkSignature(by: key.key)
            return []
        }
        let certificates = try question.certificates()
        try question.checkSignature(by: certificates[0].publicKey)
        try check(certificates[0], question)
        return certificates
    }

    /// Section 8.2.1.
    private static func check(
        _ certificate: Certificate, _ question: AttestationQuestion
    ) throws(WebAuthnError) {
        guard certificate.version == 3 else {
            throw question.refused("the certificate is not of version 3")
        }
        guard certificate.subject(.organizationalUnit) == ["Authenticator Attestation"],
            certificate.subject(.country).contains(where: { $0.utf8.count == 2 }),
            certificate.subject(.organization).contains(where: { !$0.isEmpty }),
            certificate.subject(.commonName).contains(where: { !$0.isEmpty })
        else { throw question.refused("the certificate's subject is not that of an authenticator") }
        guard certificate.isAuthority == false else {
            throw question.refused("the certificate may issue other certificates")
        }
        guard let (octets, isCritical) = certificate.extensionValue(model) else { return }
        var reader = DERReader(octets[...])
        guard !isCritical, let aaguid = reader.read(.octetString), reader.isAtEnd,
            aaguid.bytes.elementsEqual(question.credential.aaguid)
        else { throw question.refused("the certificate is of another model") }
    }
}

/// Section 8.8: anonymous, by a certificate made for this ceremony.
enum AppleAttestation {
    /// The extension that holds the nonce.
    private static let nonce = "1.2.840.113635.100.8.2"

    static func verify(_ question: AttestationQuestion) throws(WebAuthnError) -> [Certificate] {
        let certificates = try question.certificates()
        guard let (octets, _) = certificates[0].extensionValue(nonce) else {
            throw question.refused("the certificate holds no nonce")
        }
        var outer = DERReader(octets[...])
        guard var sequence = outer.read(.sequence), outer.isAtEnd,
            var tagged = sequence.read(.explicit(1)), sequence.isAtEnd,
            let found = tagged.read(.octetString), tagged.isAtEnd,
            found.bytes.elementsEqual(SHA256.hash(question.signed))
        else { throw question.refused("the certificate was made for another ceremony") }
        guard certificates[0].publicKey.isSame(as: question.credential.publicKey.key) else {
            throw question.refused("the certificate is for another key")
        }
        return certificates
    }
}

/// Section 8.6: older security keys.
enum U2FAttestation {
    static func verify(_ question: AttestationQuestion) throws(WebAuthnError) -> [Certificate] {
        let certificates = try question.certificates()
        guard certificates.count == 1, certificates[0].publicKey.kind == .p256 else {
            throw question.refused("it must have one certificate, for a key on P-256")
        }
        guard question.credential.publicKey.algorithm == .es256,
            let info = try? question.credential.publicKey.key.publicKeyInfo()
        else { throw question.refused("the credential's key is not on P-256") }
        // A SubjectPublicKeyInfo on P-256 ends with the uncompressed point: 65 octets.
        let message =
            [0] + question.authenticatorData.rpIDHash + question.clientDataHash
            + question.credential.id + info.suffix(65)
        guard
            certificates[0].publicKey.verify(
                .ecdsaSHA256, signature: try question.bytes("sig"), message: message)
        else {
            throw question.refused("its signature is wrong")
        }
        return certificates
    }
}

/// Section 8.4.
enum AndroidKeyAttestation {
    /// The extension that describes the key.
    private static let description = "1.3.6.1.4.1.11129.2.1.17"
    /// Tags of an authorization list: the purpose of the key, its permitted users, and its origin.
    private static let (purpose, allApplications, origin): (UInt32, UInt32, UInt32) = (1, 600, 702)

    static func verify(_ question: AttestationQuestion) throws(WebAuthnError) -> [Certificate] {
        let certificates = try question.certificates()
        try question.checkSignature(by: certificates[0].publicKey)
        guard certificates[0].publicKey.isSame(as: question.credential.publicKey.key) else {
            throw question.refused("the certificate is for another key")
        }
        guard let (octets, _) = certificates[0].extensionValue(description) else {
            throw question.refused("the certificate does not describe its key")
        }
        var outer = DERReader(octets[...])
        // Versions and security levels come before the challenge, an
        // identifier of the device after it.
        guard var key = outer.read(.sequence), outer.isAtEnd, key.read(.integer) != nil,
            key.read(.enumerated) != nil,
            key.read(.integer) != nil, key.read(.enumerated) != nil,
            let challenge = key.read(.octetString),
            key.read(.octetString) != nil, let software = key.read(.sequence),
            let hardware = key.read(.sequence)
        else { throw question.refused("the description of the key cannot be read") }
        guard challenge.bytes.elementsEqual(question.clientDataHash) else {
            throw question.refused("the certificate was made for another ceremony")
        }
        let lists = [members(software), members(hardware)]
        guard lists.allSatisfy({ $0[allApplications] == nil }) else {
            throw question.refused("the key is for all apps, and not for this relying party")
        }
        // The origin KM_ORIGIN_GENERATED is 0, the purpose KM_PURPOSE_SIGN 2.
        let origins = lists.compactMap { list in
            list[origin].flatMap { content in content.peek(.integer).map { Array($0.bytes) } }
        }
        let purposes = lists.compactMap { list in
            list[purpose].flatMap { content in content.peek(.set).map(numbers) }
        }
        guard origins.allSatisfy({ $0 == [0] }), purposes.allSatisfy({ $0.contains([2]) }) else {
            throw question.refused("the key was not made in the device, or not for signing")
        }
        return certificates
    }

    private static func members(_ list: DERReader) -> [UInt32: DERReader] {
        var (list, members): (DERReader, [UInt32: DERReader]) = (list, [:])
        while let (tag, content) = list.readAny() {
            if tag == .explicit(tag.number) { members[tag.number] = content }
        }
        return members
    }

    private static func numbers(_ set: DERReader) -> [[UInt8]] {
        var (set, numbers): (DERReader, [[UInt8]]) = (set, [])
        while let number = set.read(.integer) { numbers.append(Array(number.bytes)) }
        return numbers
    }
}
