// Attestation: an authenticator's statement about itself (WebAuthn Level 3 section 6.5 and 8).

import MailCrypto

/// The value of an attestation.
package enum AttestationTrust: Sendable, Hashable {
    /// It proves nothing: the format is `none`, or one that is not verified here.
    case none
    /// Signed with the credential's own key.
    case ownKey
    /// Signed with a key of its maker. The maker's certificate was not compared with a root.
    case certified
    /// Signed with a key of its maker, and the certificate leads to a configured root.
    case rooted
}

/// The data for verifying a statement.
struct AttestationQuestion {
    let statement: CBORValue
    let authenticatorData: AuthenticatorData
    let credential: AuthenticatorData.Credential
    let authenticatorOctets: [UInt8]
    /// SHA-256 of the client data.
    let clientDataHash: [UInt8]

    /// The octets that most formats sign.
    var signed: [UInt8] { authenticatorOctets + clientDataHash }

    func refused(_ reason: String) -> WebAuthnError { WebAuthnError(.attestation, reason) }

    /// Octets of the statement.
    func bytes(_ name: String) throws(WebAuthnError) -> [UInt8] {
        guard let bytes = statement[name]?.bytes else { throw refused("\(name) is missing") }
        return bytes
    }

    /// `x5c`: the signing certificate, then those that lead to a root.
    func certificates() throws(WebAuthnError) -> [Certificate] {
        guard let list = statement["x5c"]?.array, (1...8).contains(list.count) else {
            throw refused("x5c must have one to eight certificates")
        }
        var certificates: [Certificate] = []
        for item in list {
            guard let der = item.bytes else {
                throw refused("x5c has an item that is not a certificate")
            }
            do throws(CryptoError) { certificates.append(try Certificate(der: der)) } catch {
                throw refused("x5c: \(error.message)")
            }
        }
        return certificates
    }

    /// `alg` and `sig`, made with this key over `signed`.
    func checkSignature(by key: AnyPublicKey) throws(WebAuthnError) {
        guard let number = statement["alg"]?.integer,
            let algorithm = COSEKey.Algorithm(rawValue: number)
        else {
            throw refused("it is signed by an algorithm that is not accepted")
        }
        guard key.verify(algorithm.scheme, signature: try bytes("sig"), message: signed) else {
            throw refused("its signature is wrong")
        }
    }
}

/// Formats whose statements are verified.
enum AttestationFormat: String {
    case none
    case packed
    case apple
    case fidoU2F = "fido-u2f"
    case androidKey = "android-key"

    /// Registered formats (RFC 8809) that count as no statement. Authenticators send them only if
    /// an attestation is requested, and an unverified statement changes nothing about the
    /// credential.
    static let unverified: Set<String> = ["tpm", "android-safetynet", "compound"]

    /// Verifies a statement. Returns the certificates for finding a root, the signing one first.
    func verify(_ question: AttestationQuestion) throws(WebAuthnError) -> [Certificate] {
        switch self {
        case .none:
            guard question.statement.pairs?.isEmpty == true else {
                throw question.refused("the format none has a statement")
            }
            return []
        case .packed: return try PackedAttestation.verify(question)
        case .apple: return try AppleAttestation.verify(question)
        case .fidoU2F: return try U2FAttestation.verify(question)
        case .androidKey: return try AndroidKeyAttestation.verify(question)
        }
    }
}

/// An attestation object: a browser's data about a new credential (section 6.5.4).
struct AttestationObject {
    let format: String
    let statement: CBORValue
    let authenticatorOctets: [UInt8]

    /// The most octets of the whole object.
    private static let longest = 131_072

    init(_ octets: [UInt8]) throws(WebAuthnError) {
        guard octets.count <= Self.longest else {
            throw WebAuthnError(.attestation, "it is longer than \(Self.longest) octets")
        }
        let value: CBORValue
        do throws(CBORError) { value = try CBORReader.value(of: octets) } catch {
            throw WebAuthnError(.attestation, "\(error)")
        }
        guard value.pairs?.count == 3, let format = value["fmt"]?.text,
            let statement = value["attStmt"], statement.pairs != nil,
            let octets = value["authData"]?.bytes
        else { throw WebAuthnError(.attestation, "it is not a map of fmt, attStmt and authData") }
        (self.format, self.statement, authenticatorOctets) = (format, statement, octets)
    }
}
