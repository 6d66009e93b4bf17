// The data that an authenticator signs about itself and the credential (WebAuthn
// Level 3 section 6.1).

/// Authenticator data, as read.
package struct AuthenticatorData: Sendable {
    /// Its flags. Bits 1 and 5 have no meaning yet.
    package struct Flags: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        /// UP: a person touched the authenticator.
        package static let userPresent = Flags(rawValue: 0x01)
        /// UV: it identified the user by a PIN or a biometric.
        package static let userVerified = Flags(rawValue: 0x04)
        /// BE: the credential may be on several devices.
        package static let backupEligible = Flags(rawValue: 0x08)
        /// BS: it is on several devices now.
        package static let backedUp = Flags(rawValue: 0x10)
        /// AT: a new credential follows.
        package static let attestedCredential = Flags(rawValue: 0x40)
        /// ED: extensions follow.
        package static let extensionData = Flags(rawValue: 0x80)
    }

    /// A newly made credential (section 6.5.1).
    package struct Credential: Sendable {
        /// 16 octets: the model of the authenticator; all zero if not given.
        package let aaguid: [UInt8]
        /// 1 to 1,023 octets.
        package let id: [UInt8]
        package let publicKey: COSEKey
        /// The key as received, for storing.
        package let publicKeyOctets: [UInt8]
    }

    /// SHA-256 of the relying party's id.
    package let rpIDHash: [UInt8]
    package let flags: Flags
    package let signCount: UInt32
    /// Nil without AT.
    package let credential: Credential?
    /// A map; nil without ED.
    package let extensions: CBORValue?

    /// Octets of hash, flags and count.
    package static let headLength = 37
    /// The most octets in total: an RSA key and a long id need far fewer.
    private static let longest = 65_536
    private static let aaguidLength = 16
    private static let longestCredentialID = 1023

    /// Reads all of it; an error if it is cut off, or octets remain.
    package init(_ octets: [UInt8]) throws(WebAuthnError) {
        func refused(_ reason: String) -> WebAuthnError {
            WebAuthnError(.authenticatorData, reason)
        }
        guard octets.count >= Self.headLength else {
            throw refused("it is shorter than \(Self.headLength) octets")
        }
        guard octets.count <= Self.longest else {
            throw refused("it is longer than \(Self.longest) octets")
        }
        rpIDHash = Array(octets[..<32])
        flags = Flags(rawValue: octets[32])
        signCount = octets[33..<37].reduce(0) { $0 << 8 | UInt32($1) }
        var rest = octets[Self.headLength...]
        if flags.contains(.attestedCredential) {
            guard rest.count >= Self.aaguidLength + 2 else {
                throw refused("the credential is incomplete")
            }
            let aaguid = Array(rest.prefix(Self.aaguidLength))
            rest = rest.dropFirst(Self.aaguidLength)
            let length = rest.prefix(2).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(2)
            guard (1...Self.longestCredentialID).contains(length) else {
                throw refused(
                    "the credential id has \(length) octets, not 1 to \(Self.longestCredentialID)")
            }
            guard rest.count > length else { throw refused("the credential is incomplete") }
            let id = Array(rest.prefix(length))
            rest = rest.dropFirst(length)
            let (value, behind) = try Self.item(rest, "the public key")
            credential = Credential(
                aaguid: aaguid, id: id, publicKey: try COSEKey(value),
                publicKeyOctets: Array(rest.prefix(rest.count - behind.count)))
            rest = behind
        } else {
            credential = nil
        }
        if flags.contains(.extensionData) {
            let (value, behind) = try Self.item(rest, "the extensions")
            guard value.pairs != nil else { throw refused("the extensions are not a map") }
            extensions = value
            rest = behind
        } else {
            extensions = nil
        }
        guard rest.isEmpty else { throw refused("\(rest.count) octets are left over") }
    }

    private static func item(
        _ octets: ArraySlice<UInt8>, _ what: String
    ) throws(WebAuthnError) -> (CBORValue, ArraySlice<UInt8>) {
        do throws(CBORError) {
            let (value, rest) = try CBORReader.firstValue(of: octets)
            return (value, rest)
        } catch {
            throw WebAuthnError(.authenticatorData, "\(what): \(error)")
        }
    }
}
