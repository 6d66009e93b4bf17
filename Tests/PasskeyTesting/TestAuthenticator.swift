// An authenticator of ours: makes a credential and signs with it, correctly or with one fault.

import MailCrypto
import Support
import WebAuthn

/// Writes CBOR in its shortest form.
package enum CBORWriter {
    /// The octets of a value.
    package static func octets(_ value: CBORValue) -> [UInt8] {
        switch value {
        case .unsigned(let number): head(0, number)
        case .negative(let number): head(1, number)
        case .bytes(let octets): head(2, UInt64(octets.count)) + octets
        case .text(let text): head(3, UInt64(text.utf8.count)) + Array(text.utf8)
        case .array(let items): head(4, UInt64(items.count)) + items.flatMap(octets)
        case .map(let pairs):
            head(5, UInt64(pairs.count)) + pairs.flatMap { octets($0.key) + octets($0.value) }
        case .bool(let flag): [flag ? 0xF5 : 0xF4]
        default: [0xF6]
        }
    }

    private static func head(_ major: UInt8, _ number: UInt64) -> [UInt8] {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
        switch number {
        case ..<24: return [major << 5 | UInt8(number)]
        case ..<0x100: return [major << 5 | 24] + bytes.suffix(1)
        case ..<0x10000: return [major << 5 | 25] + bytes.suffix(2)
        case ..<0x1_0000_0000: return [major << 5 | 26] + bytes.suffix(4)
        default: return [major << 5 | 27] + bytes
        }
    }
}

extension CBORValue: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral {
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(stringLiteral value: String) { self = .text(value) }

    /// A map of these members.
    package static func members(_ members: KeyValuePairs<CBORValue, CBORValue>) -> CBORValue {
        .map(members.map { Pair(key: $0.key, value: $0.value) })
    }
}

/// All parts of a ceremony; each may be changed before it is signed.
package struct TestAuthenticator {
    package let key: P256PrivateKey
    package var rpID = "id.example"
    package var flags: AuthenticatorData.Flags = [
        .userPresent, .userVerified, .backupEligible, .backedUp,
    ]
    package var signCount: UInt32 = 0
    package var credentialID: [UInt8] = Array(1...32)
    package var clientData: String
    package var coseKey: CBORValue
    package var statementFormat = "none"
    /// Attests it, in the format `apple`.
    package var authority: TestDevice.Authority?
    /// Octets after the authenticator data.
    package var trailing: [UInt8] = []

    package static let challenge: [UInt8] = Array(repeating: 7, count: 32)

    package init(_ ceremony: Ceremony) throws {
        key = try P256PrivateKey.generate()
        coseKey = .members([
            1: 2, 3: -7, -1: 1, -2: .bytes(key.publicKey.x), -3: .bytes(key.publicKey.y),
        ])
        clientData = Self.clientData(ceremony)
    }

    package static func clientData(
        _ ceremony: Ceremony, challenge: [UInt8] = challenge, origin: String = "https://id.example",
        more: String = ""
    ) -> String {
        #"{"type":"\#(ceremony.rawValue)","challenge":"\#(Base64URL.encode(challenge))","origin":"\#(origin)"\#(more)}"#
    }

    package func authenticatorData(withCredential: Bool) -> [UInt8] {
        var flags = flags
        if withCredential { flags.insert(.attestedCredential) }
        let count = (0..<4).map { UInt8(truncatingIfNeeded: signCount >> UInt32(24 - 8 * $0)) }
        let head = SHA256.hash(Array(rpID.utf8)) + [flags.rawValue] + count
        guard withCredential else { return head + trailing }
        let length = [UInt8(credentialID.count >> 8), UInt8(credentialID.count & 0xFF)]
        return head + Array(repeating: 0, count: 16) + length + credentialID
            + CBORWriter.octets(coseKey) + trailing
    }

    /// The attestation object of a registration, in the format `none`, or
    /// `packed` by the key itself.
    package func attestationObject() throws -> [UInt8] {
        let data = authenticatorData(withCredential: true)
        var statement = CBORValue.members([:])
        if statementFormat == "packed" {
            statement = .members([
                "alg": -7, "sig": .bytes(try sign(data + SHA256.hash(Array(clientData.utf8)))),
            ])
        }
        if statementFormat == "apple", let authority {
            let nonce = SHA256.hash(data + SHA256.hash(Array(clientData.utf8)))
            statement = .members([
                "x5c": .array([.bytes(try authority.certificate(of: key.publicKey, nonce: nonce))])
            ])
        }
        return CBORWriter.octets(
            .members([
                "fmt": .text(statementFormat), "attStmt": statement, "authData": .bytes(data),
            ]))
    }

    /// The signature of a sign-in.
    package func signature() throws -> [UInt8] {
        try sign(authenticatorData(withCredential: false) + SHA256.hash(Array(clientData.utf8)))
    }

    private func sign(_ message: [UInt8]) throws -> [UInt8] { try key.signatureDER(message) }

    package var relyingParty: RelyingParty {
        RelyingParty(
            id: "id.example", client: ExpectedClient(origins: ["https://id.example"]),
            requiresUserVerification: true)
    }

    package func register() throws -> RelyingParty.Registration {
        try relyingParty.register(
            clientData: Array(clientData.utf8), attestationObject: try attestationObject(),
            challenge: Self.challenge)
    }

    package func authenticate(
        known: UInt32 = 0, isBackupEligible: Bool = false
    ) throws -> AuthenticatorData {
        let publicKey = try COSEKey(octets: CBORWriter.octets(coseKey))
        return try relyingParty.authenticate(
            clientData: Array(clientData.utf8),
            authenticatorData: authenticatorData(withCredential: false),
            signature: try signature(), challenge: Self.challenge,
            known: RelyingParty.KnownCredential(
                publicKey: publicKey, signCount: known, isBackupEligible: isBackupEligible))
    }
}
