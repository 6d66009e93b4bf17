// `postern verify passkey`: a request about one ceremony as JSON, and its response.

import MailCrypto
import Support

/// One line: a ceremony with all data for verifying it. Octets are hexadecimal.
package struct PasskeyQuestion: Sendable {
    /// Longest accepted line, in octets: an attestation with its certificates,
    /// in hexadecimal, and roots.
    package static let maximumLength = 1_048_576

    private enum Step: Sendable {
        case create(attestationObject: [UInt8], roots: [Certificate])
        case get(
            authenticatorData: [UInt8], signature: [UInt8], publicKey: [UInt8], signCount: UInt32)
    }

    private let id: JSONValue
    private let relyingParty: RelyingParty
    private let challenge: [UInt8]
    private let clientData: [UInt8]
    private let step: Step
    private let validity: Certificate.Validity

    /// Why a line is not a valid request.
    private struct Unreadable: Error { let reason: String }

    /// The response to a line: `{id, valid, …}`. For an invalid request, `valid` is false and
    /// `error` begins with `question`.
    package static func answer(_ line: [UInt8]) -> JSONObject {
        let object: JSONObject
        do throws(JSONError) {
            object = try StrictJSON.parseObject(line, limit: maximumLength)
        } catch {
            return ["id": .null, "valid": .bool(false), "error": .string("question: \(error)")]
        }
        let id = object["id"] ?? .null
        do throws(Unreadable) {
            return try PasskeyQuestion(object, id).answer
        } catch {
            return ["id": id, "valid": .bool(false), "error": .string("question: \(error.reason)")]
        }
    }

    private var answer: JSONObject {
        var answer: JSONObject = ["id": id, "valid": .bool(true)]
        do throws(WebAuthnError) {
            let data: AuthenticatorData
            switch step {
            case .create(let attestationObject, let roots):
                let found = try relyingParty.register(
                    clientData: clientData, attestationObject: attestationObject,
                    challenge: challenge, roots: roots,
                    validity: validity)
                answer["fmt"] = .string(found.format)
                answer["aaguid"] = .string(Hex.encode(found.credential.aaguid))
                answer["credential_id"] = .string(Hex.encode(found.credential.id))
                answer["credential_public_key"] = .string(
                    Hex.encode(found.credential.publicKeyOctets))
                answer["attestation"] = .string(found.trust.word)
                data = found.authenticatorData
            case .get(let octets, let signature, let publicKey, let signCount):
                data = try relyingParty.authenticate(
                    clientData: clientData, authenticatorData: octets, signature: signature,
                    challenge: challenge,
                    known: RelyingParty.KnownCredential(
                        publicKey: try COSEKey(octets: publicKey), signCount: signCount))
            }
            answer["sign_count"] = .integer(Int64(data.signCount))
            answer["user_verified"] = .bool(data.flags.contains(.userVerified))
            answer["backup_eligible"] = .bool(data.flags.contains(.backupEligible))
            answer["backed_up"] = .bool(data.flags.contains(.backedUp))
        } catch {
            return ["id": id, "valid": .bool(false), "error": .string("\(error)")]
        }
        return answer
    }

    // MARK: Reading

    private init(_ object: JSONObject, _ id: JSONValue) throws(Unreadable) {
        self.id = id
        let isRequired: Bool
        switch object["user_verification"] {
        case .bool(let value)?: isRequired = value
        case .string("required")?: isRequired = true
        case nil, .null?, .string("preferred")?, .string("discouraged")?: isRequired = false
        default:
            throw Unreadable(
                reason: "user_verification is none of required, preferred, discouraged, true, false"
            )
        }
        guard let rpID = object["rp_id"]?.string else {
            throw Unreadable(reason: "rp_id is not a string")
        }
        // Frames are not checked unless requested: a request may be about a ceremony in a frame.
        var framing = ExpectedClient.Framing.anywhere
        if object["top_origins"] != nil { framing = .within(try Self.texts(object, "top_origins")) }
        relyingParty = RelyingParty(
            id: rpID,
            client: ExpectedClient(origins: try Self.texts(object, "origins"), framing: framing),
            requiresUserVerification: isRequired)
        challenge = try Self.octets(object, "challenge")
        clientData = try Self.octets(object, "client_data_json")
        switch object["now"] {
        case nil, .null?: validity = .anyTime
        case let now?:
            guard let seconds = now.number?.floor else {
                throw Unreadable(reason: "now is not a number of seconds")
            }
            validity = .at(seconds)
        }
        switch object["ceremony"]?.string {
        case "create":
            step = .create(
                attestationObject: try Self.octets(object, "attestation_object"),
                roots: try Self.roots(object))
        case "get":
            step = .get(
                authenticatorData: try Self.octets(object, "authenticator_data"),
                signature: try Self.octets(object, "signature"),
                publicKey: try Self.octets(object, "credential_public_key"),
                signCount: try Self.signCount(object))
        default: throw Unreadable(reason: "ceremony is neither create nor get")
        }
    }

    private static func octets(_ object: JSONObject, _ name: String) throws(Unreadable) -> [UInt8] {
        guard let text = object[name]?.string, let octets = Hex.decode(text.utf8) else {
            throw Unreadable(reason: "\(name) is not octets in hexadecimal")
        }
        return octets
    }

    private static func texts(_ object: JSONObject, _ name: String) throws(Unreadable) -> [String] {
        guard let items = object[name]?.array else {
            throw Unreadable(reason: "\(name) is not an array of strings")
        }
        var texts: [String] = []
        for item in items {
            guard let text = item.string else {
                throw Unreadable(reason: "\(name) is not an array of strings")
            }
            texts.append(text)
        }
        return texts
    }

    private static func signCount(_ object: JSONObject) throws(Unreadable) -> UInt32 {
        switch object["sign_count"] {
        case nil, .null?: return 0
        case let value?:
            guard let count = value.number?.integer.flatMap(UInt32.init(exactly:)) else {
                throw Unreadable(reason: "sign_count is not a whole number of 32 bits")
            }
            return count
        }
    }

    private static func roots(_ object: JSONObject) throws(Unreadable) -> [Certificate] {
        if object["attestation_roots"] == nil || object["attestation_roots"] == .null { return [] }
        var roots: [Certificate] = []
        for text in try texts(object, "attestation_roots") {
            guard let der = Hex.decode(text.utf8), let root = try? Certificate(der: der) else {
                throw Unreadable(
                    reason:
                        "attestation_roots has an item that is not a DER certificate in hexadecimal"
                )
            }
            roots.append(root)
        }
        return roots
    }
}

extension AttestationTrust {
    /// The word for responses.
    fileprivate var word: String {
        switch self {
        case .none: "none"
        case .ownKey: "self"
        case .certified: "certified"
        case .rooted: "rooted"
        }
    }
}
