// Authenticator data as App Attest writes it; it differs from that of WebAuthn in two flags.

/// Authenticator data of an attestation or an assertion.
struct AppAttestData {
    let value: AuthenticatorData

    /// For an attestation. Since iOS 27 a map of extensions follows the key. Some devices set its
    /// flag, but Apple's own sample does not.
    init(attestation octets: [UInt8]) throws(AppAttestError) {
        if let value = try? AuthenticatorData(octets) {
            self.value = value
        } else {
            value = try Self.read(octets, setting: .extensionData, clearing: [])
        }
        guard value.credential != nil else {
            throw AppAttestError(.authenticatorData, "no credential in it")
        }
    }

    /// For an assertion. Its flags say that a credential follows, but none does. It consists of
    /// hash, flags and counter, and since iOS 27 extensions.
    init(assertion octets: [UInt8]) throws(AppAttestError) {
        let hasExtensions = octets.count > AuthenticatorData.headLength
        value = try Self.read(
            octets, setting: hasExtensions ? .extensionData : [],
            clearing: [.attestedCredential, .extensionData])
    }

    private static func read(
        _ octets: [UInt8], setting: AuthenticatorData.Flags, clearing: AuthenticatorData.Flags
    ) throws(AppAttestError) -> AuthenticatorData {
        var octets = octets
        if octets.count >= AuthenticatorData.headLength {
            octets[32] =
                AuthenticatorData.Flags(rawValue: octets[32]).subtracting(clearing).union(setting)
                .rawValue
        }
        do throws(WebAuthnError) { return try AuthenticatorData(octets) } catch {
            throw AppAttestError(
                error.step == .publicKey ? .publicKey : .authenticatorData, error.reason)
        }
    }
}
