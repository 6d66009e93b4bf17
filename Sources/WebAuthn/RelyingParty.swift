// The two ceremonies as a relying party checks them (WebAuthn Level 3 sections 7.1 and 7.2). Pure: what was given and what is
// known of the credential is handed in.

import MailCrypto

/// Who asks, and how strictly.
package struct RelyingParty: Sendable {
    /// A domain: the host of the page, or one that it is below.
    package let id: String
    package let client: ExpectedClient
    /// Whether a PIN or a biometric is needed.
    package let requiresUserVerification: Bool

    package init(id: String, client: ExpectedClient, requiresUserVerification: Bool) {
        self.id = id
        self.client = client
        self.requiresUserVerification = requiresUserVerification
    }

    /// A new credential, verified.
    package struct Registration: Sendable {
        package let format: String
        package let trust: AttestationTrust
        package let credential: AuthenticatorData.Credential
        package let authenticatorData: AuthenticatorData
    }

    /// Verifies a registration: `navigator.credentials.create`.
    /// - Parameters:
    ///   - challenge: as it was given, once.
    ///   - roots: certificates that an attestation has to lead to; empty where any will do.
    ///   - validity: the time for which the certificates are judged.
    package func register(
        clientData: [UInt8], attestationObject: [UInt8], challenge: [UInt8], roots: [Certificate] = [],
        validity: Certificate.Validity = .anyTime
    ) throws(WebAuthnError) -> Registration {
        try ClientData.check(clientData, .create, challenge: challenge, client)
        let object = try AttestationObject(attestationObject)
        let data = try AuthenticatorData(object.authenticatorOctets)
        try check(data)
        guard let credential = data.credential else {
            throw WebAuthnError(.authenticatorData, "there is no new credential in it")
        }
        let trust = try trust(
            object,
            AttestationQuestion(
                statement: object.statement, authenticatorData: data, credential: credential,
                authenticatorOctets: object.authenticatorOctets, clientDataHash: SHA256.hash(clientData)), roots, validity)
        return Registration(format: object.format, trust: trust, credential: credential, authenticatorData: data)
    }

    private func trust(
        _ object: AttestationObject, _ question: AttestationQuestion, _ roots: [Certificate], _ validity: Certificate.Validity
    ) throws(WebAuthnError) -> AttestationTrust {
        guard let format = AttestationFormat(rawValue: object.format) else {
            guard AttestationFormat.unverified.contains(object.format) else {
                throw WebAuthnError(.attestation, "a format that does not exist")
            }
            guard roots.isEmpty else { throw WebAuthnError(.trust, "attestations of this format are not verified") }
            return .none
        }
        let certificates = try format.verify(question)
        guard let signer = certificates.first else { return format == .none ? .none : .ownKey }
        guard !roots.isEmpty else { return .certified }
        guard signer.leads(to: roots, by: Array(certificates.dropFirst()), validity) else {
            throw WebAuthnError(.trust, "the certificate leads to no root that is accepted")
        }
        return .rooted
    }

    /// A credential that is known.
    package struct KnownCredential: Sendable {
        package let publicKey: COSEKey
        package let signCount: UInt32

        package init(publicKey: COSEKey, signCount: UInt32) {
            self.publicKey = publicKey
            self.signCount = signCount
        }
    }

    /// Verifies a sign-in: `navigator.credentials.get`.
    /// - Returns: what the authenticator says now, to be kept.
    /// - Throws: `signCount` where the authenticator's count did not rise, which says that it may have been copied.
    package func authenticate(
        clientData: [UInt8], authenticatorData octets: [UInt8], signature: [UInt8], challenge: [UInt8], known: KnownCredential
    ) throws(WebAuthnError) -> AuthenticatorData {
        try ClientData.check(clientData, .get, challenge: challenge, client)
        let data = try AuthenticatorData(octets)
        try check(data)
        guard known.publicKey.verify(signature: signature, message: octets + SHA256.hash(clientData)) else {
            throw WebAuthnError(.signature, "it was not made with the credential's key")
        }
        // Authenticators that do not count say 0 for ever.
        guard data.signCount > known.signCount || (data.signCount == 0 && known.signCount == 0) else {
            throw WebAuthnError(.signCount, "it did not rise: the authenticator may have been copied")
        }
        return data
    }

    private func check(_ data: AuthenticatorData) throws(WebAuthnError) {
        guard constantTimeEqual(data.rpIDHash, SHA256.hash(Array(id.utf8))) else {
            throw WebAuthnError(.relyingParty, "the credential is for another relying party")
        }
        guard data.flags.contains(.userPresent) else { throw WebAuthnError(.userPresence, "no one touched the authenticator") }
        guard !requiresUserVerification || data.flags.contains(.userVerified) else {
            throw WebAuthnError(.userVerification, "the authenticator does not know who it was")
        }
        guard !data.flags.contains(.backedUp) || data.flags.contains(.backupEligible) else {
            throw WebAuthnError(.backup, "it is backed up and cannot be")
        }
    }
}
