// The two ceremonies as a relying party checks them (WebAuthn Level 3 sections 7.1 and 7.2). Pure:
// the caller passes the data of the ceremony and of the known credential.

import MailCrypto

/// The relying party, and how strict it is.
package struct RelyingParty: Sendable {
    /// A domain: the host of the page, or a parent domain of it.
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
    ///   - challenge: the challenge that was issued, for one use.
    ///   - roots: certificates to which an attestation must lead; if empty, any attestation is
    ///     accepted.
    ///   - validity: the time at which the certificates are checked.
    package func register(
        clientData: [UInt8], attestationObject: [UInt8], challenge: [UInt8],
        roots: [Certificate] = [],
        validity: Certificate.Validity = .anyTime
    ) throws(WebAuthnError) -> Registration {
        try ClientData.check(clientData, .create, challenge: challenge, client)
        let object = try AttestationObject(attestationObject)
        let data = try AuthenticatorData(object.authenticatorOctets)
        try check(data)
        guard let credential = data.credential else {
            throw WebAuthnError(.authenticatorData, "it contains no new credential")
        }
        let trust = try trust(
            object,
            AttestationQuestion(
                statement: object.statement, authenticatorData: data, credential: credential,
                authenticatorOctets: object.authenticatorOctets,
                clientDataHash: SHA256.hash(clientData)), roots, validity)
        return Registration(
            format: object.format, trust: trust, credential: credential, authenticatorData: data)
    }

    private func trust(
        _ object: AttestationObject, _ question: AttestationQuestion, _ roots: [Certificate],
        _ validity: Certificate.Validity
    ) throws(WebAuthnError) -> AttestationTrust {
        guard let format = AttestationFormat(rawValue: object.format) else {
            guard AttestationFormat.unverified.contains(object.format) else {
                throw WebAuthnError(.attestation, "a format that does not exist")
            }
            guard roots.isEmpty else {
                throw WebAuthnError(.trust, "attestations of this format are not verified")
            }
            return .none
        }
        let certificates = try format.verify(question)
        guard let signer = certificates.first else { return format == .none ? .none : .ownKey }
        guard !roots.isEmpty else { return .certified }
        guard signer.leads(to: roots, by: Array(certificates.dropFirst()), validity) else {
            throw WebAuthnError(.trust, "the certificate leads to no accepted root")
        }
        return .rooted
    }

    /// A known credential.
    package struct KnownCredential: Sendable {
        package let publicKey: COSEKey
        package let signCount: UInt32
        /// Whether it may be on several devices. Each device may count by itself or not at all.
        package let isBackupEligible: Bool

        package init(publicKey: COSEKey, signCount: UInt32, isBackupEligible: Bool = false) {
            self.publicKey = publicKey
            self.signCount = signCount
            self.isBackupEligible = isBackupEligible
        }
    }

    /// Verifies a sign-in: `navigator.credentials.get`.
    /// - Returns: the authenticator's current data, to be stored.
    /// - Throws: `signCount` if the authenticator's count did not rise: it may have been copied.
    package func authenticate(
        clientData: [UInt8], authenticatorData octets: [UInt8], signature: [UInt8],
        challenge: [UInt8], known: KnownCredential
    ) throws(WebAuthnError) -> AuthenticatorData {
        try ClientData.check(clientData, .get, challenge: challenge, client)
        let data = try AuthenticatorData(octets)
        try check(data)
        guard
            known.publicKey.verify(signature: signature, message: octets + SHA256.hash(clientData))
        else {
            throw WebAuthnError(.signature, "it was not made with the credential's key")
        }
        // Authenticators without a counter always report 0. The count of a synced passkey shows
        // nothing (Level 3 section 7.2, step 22): the next device may begin at 0.
        let isCounted = !known.isBackupEligible && (data.signCount > 0 || known.signCount > 0)
        guard !isCounted || data.signCount > known.signCount else {
            throw WebAuthnError(
                .signCount, "it did not rise: the authenticator may have been copied")
        }
        return data
    }

    private func check(_ data: AuthenticatorData) throws(WebAuthnError) {
        guard constantTimeEqual(data.rpIDHash, SHA256.hash(Array(id.utf8))) else {
            throw WebAuthnError(.relyingParty, "the credential is for another relying party")
        }
        guard data.flags.contains(.userPresent) else {
            throw WebAuthnError(.userPresence, "no one touched the authenticator")
        }
        guard !requiresUserVerification || data.flags.contains(.userVerified) else {
            throw WebAuthnError(.userVerification, "the authenticator did not verify the user")
        }
        guard !data.flags.contains(.backedUp) || data.flags.contains(.backupEligible) else {
            throw WebAuthnError(.backup, "it is backed up, although it is not eligible for backup")
        }
    }
}
