// Verification of all DKIM signatures of one message (RFC 6376 section 6, RFC 8301, RFC 8463),
// results as in RFC 8601.

import InternetMessage
import MailCrypto
import Support

/// Limits on the cost of verification, and the result beyond each limit.
package struct DKIMLimits: Sendable, Hashable {
    /// Maximum signatures that are evaluated, from the top; those below are reported as `policy`.
    /// Real mail has up to about five, and each costs a DNS query and a public-key operation.
    package var signatures = 10
    /// Names queried in the DNS; beyond, `permerror`. A name that several
    /// signatures share is queried once.
    package var lookups = 10
    /// Usable keys tried at one name; others are ignored. RFC 6376 section 3.6.2.2 expects one.
    package var keysPerName = 3
    /// RSA keys outside these lengths prove nothing (`policy`). RFC 8301 section 3.2 requires at
    /// least 1024, and does not require verifiers to support more than 4096.
    package var rsaBits = 1024...4096
    /// Seconds that `t=` may be in the future; beyond, `policy`. A signer that states its local
    /// time as UTC is wrong by up to 14 hours.
    package var clockLeeway: Int64 = 14 * 3600

    package init() {}
}

/// Verifies the signatures of one message while its body arrives. For one thread at a time.
///
/// Results:
/// - `pass` for a valid signature;
/// - `fail` if the body or a signed field was changed;
/// - `policy` for a signature that may be valid but is not proof: rsa-sha1, a key that is too short
///   or too long, expired, made in the future, an unsigned From field, a key in test mode, or
///   beyond the limits;
/// - `permerror` for malformed signatures and for keys that are missing, revoked or unusable;
/// - `temperror` if the DNS gave no answer.
///
/// A key with `t=y` gives at best `policy`, with `isTesting` set. RFC 6376 section 3.6.1 forbids
/// treating such mail differently from unsigned mail.
package final class DKIMVerifier {
    private enum Candidate {
        /// Refused without checking body or key.
        case settled(DKIMFinding)
        case pending(DKIMSignature, headerDigest: [UInt8])
    }

    private let limits: DKIMLimits
    private let candidates: [Candidate]
    private let bodyHashes: DKIMBodyHashes

    /// - Parameters:
    ///   - header: the whole header section, as received.
    ///   - now: seconds since 1970.
    package init(header: HeaderSection, now: Int64, limits: DKIMLimits = DKIMLimits()) {
        self.limits = limits
        var candidates = [Candidate]()
        var requests = [DKIMBodyHashes.Request]()
        // Names are looked up only in signed mail.
        lazy var fields = DKIMSignedFields(header)
        for (index, field) in header.fields.enumerated() where field.isNamed("DKIM-Signature") {
            guard requests.count < limits.signatures else {
                candidates.append(
                    .settled(
                        Self.finding(
                            .policy, "not evaluated: more than \(limits.signatures) signatures")))
                continue
            }
            let signature: DKIMSignature
            do { signature = try DKIMSignature(field) } catch {
                candidates.append(.settled(Self.malformed(field, error)))
                continue
            }
            let unsigned = fields.count("from") > signature.signedNames.count("from")
            if let reason = Self.objection(
                to: signature, now: now, leeway: limits.clockLeeway, hasUnsignedFrom: unsigned)
            {
                candidates.append(.settled(Self.finding(.policy, reason, signature)))
                continue
            }
            requests.append(signature.bodyRequest)
            let digest = fields.digest(
                fields.signed(signature.signedNames, own: index),
                canonicalization: signature.headerCanonicalization,
                signatureField: field, signatureRange: signature.signatureRange)
            candidates.append(.pending(signature, headerDigest: digest))
        }
        self.candidates = candidates
        bodyHashes = DKIMBodyHashes(requests)
    }

    /// Queries the keys and checks the signed fields before there is a body. Returns one finding
    /// for each DKIM-Signature field, which is valid if the body is the signed one.
    func prepare(resolver: any DNSResolver) -> [DKIMFinding] {
        findings(resolver) { signature, digest, keys in
            Self.evaluate(
                signature, headerDigest: digest, coversWholeBody: true, keys: &keys, limits: limits)
        }
    }

    /// Takes the next octets of the body, line ends as CRLF, split anywhere.
    package func update(body: UnsafeRawBufferPointer) { bodyHashes.update(body) }

    /// Ends the body, queries the keys and evaluates. Returns one finding for each DKIM-Signature
    /// field, from the top. Call it once.
    package func finish(resolver: any DNSResolver) -> [DKIMFinding] {
        let digests = bodyHashes.finish()
        return findings(resolver) { signature, digest, keys in
            Self.evaluate(
                signature, headerDigest: digest, body: digests[signature.bodyRequest], keys: &keys,
                limits: limits)
        }
    }

    private func findings(
        _ resolver: any DNSResolver,
        _ evaluate: (DKIMSignature, [UInt8], inout DKIMKeyLookup) -> DKIMFinding
    ) -> [DKIMFinding] {
        var keys = DKIMKeyLookup(resolver: resolver, limits: limits)
        return candidates.map { candidate in
            switch candidate {
            case .settled(let finding): finding
            case .pending(let signature, let headerDigest): evaluate(signature, headerDigest, &keys)
            }
        }
    }

    /// The reason why a well-formed signature is not proof with any key.
    private static func objection(
        to signature: DKIMSignature, now: Int64, leeway: Int64, hasUnsignedFrom: Bool
    ) -> String? {
        // RFC 6376 section 8.15: a reader may see an added From next to the signed one.
        if hasUnsignedFrom { return "a From field is not signed" }
        if signature.algorithm == nil {
            return "\(DKIMSignature.weakAlgorithm) proves nothing (RFC 8301)"
        }
        if let expiration = signature.expiration, now > expiration {
            return "the signature expired"
        }
        let (latest, overflow) = now.addingReportingOverflow(leeway)
        if let timestamp = signature.timestamp, !overflow, timestamp > latest {
            return "the signature was made in the future"
        }
        return nil
    }

    private static func evaluate(
        _ signature: DKIMSignature, headerDigest: [UInt8], body: DKIMBodyHashes.Digest?,
        keys: inout DKIMKeyLookup,
        limits: DKIMLimits
    ) -> DKIMFinding {
        guard let body else { return finding(.permerror, "the body was not hashed", signature) }
        // The body comes first. If it was changed, no key can help, and no DNS query is needed.
        if let length = signature.bodyLength, length > body.bodyLength {
            return finding(.permerror, "l= is longer than the body", signature)
        }
        let whole = signature.bodyLength.map { $0 == body.bodyLength } ?? true
        guard body.sha256 == signature.bodyHash else {
            return finding(.fail, "the body hash does not match", signature, coversWholeBody: whole)
        }
        return evaluate(
            signature, headerDigest: headerDigest, coversWholeBody: whole, keys: &keys,
            limits: limits)
    }

    /// Checks the signature over the fields, which include the body hash.
    private static func evaluate(
        _ signature: DKIMSignature, headerDigest: [UInt8], coversWholeBody whole: Bool,
        keys: inout DKIMKeyLookup,
        limits: DKIMLimits
    ) -> DKIMFinding {
        let records: [DKIMKeyRecord]
        switch keys.records(signature.keyName) {
        case .found(let found): records = found
        case .failed(let result, let reason):
            return finding(result, reason, signature, coversWholeBody: whole)
        }
        var outcomes = [(result: DKIMResult, reason: String, isTesting: Bool)]()
        for record in records {
            let (result, reason) = check(signature, headerDigest, record, limits)
            if result == .pass, record.isTesting {
                outcomes.append((.policy, "valid, but the key is in test mode (t=y)", true))
            } else {
                outcomes.append((result, reason, record.isTesting))
            }
            if result == .pass, !record.isTesting { break }
        }
        // The best result of several keys counts: a pass, then a valid one in test mode, then the
        // first.
        let outcome =
            outcomes.first { $0.result == .pass } ?? outcomes.first { $0.result == .policy }
            ?? outcomes.first
            ?? (.permerror, "no key", false)
        return finding(
            outcome.result, outcome.reason, signature, coversWholeBody: whole,
            isTesting: outcome.isTesting)
    }

    private static func check(
        _ signature: DKIMSignature, _ headerDigest: [UInt8], _ record: DKIMKeyRecord,
        _ limits: DKIMLimits
    ) -> (DKIMResult, String) {
        guard record.allowsSHA256 else {
            return (.permerror, "the key does not allow SHA-256 (h=)")
        }
        guard signature.algorithm == record.algorithm else {
            return (.permerror, "the key is of another type than the signature")
        }
        if record.requiresSameDomain, signature.identityDomain != signature.domain {
            return (.permerror, "i= is below d=, which the key forbids (t=s)")
        }
        guard let key = record.publicKey else { return (.permerror, "the key cannot be read") }
        guard key.isStrong(limits) else {
            return (.policy, "a key of \(key.bits) bits proves nothing")
        }
        let isValid = key.verify(digest: headerDigest, signature: signature.signature)
        return isValid
            ? (.pass, "valid") : (.fail, "the signature does not match the signed fields")
    }

    /// Contains the domain and the selector that the field claims, if they can be read.
    private static func malformed(_ field: HeaderField, _ error: DKIMSyntaxError) -> DKIMFinding {
        let tags = try? DKIMTagList(field.rawValue)
        func domain(_ name: StaticString) -> String {
            (tags?[name]).flatMap { DKIMSyntax.domain($0.value) } ?? ""
        }
        return DKIMFinding(
            result: .permerror, domain: domain("d"), selector: domain("s"), algorithm: "",
            coversWholeBody: true,
            reason: "the signature is malformed: \(error.reason)", isMalformed: true)
    }

    private static func finding(
        _ result: DKIMResult, _ reason: String, _ signature: DKIMSignature? = nil,
        coversWholeBody: Bool? = nil,
        isTesting: Bool = false
    ) -> DKIMFinding {
        DKIMFinding(
            result: result, domain: signature?.domain ?? "", selector: signature?.selector ?? "",
            algorithm: signature.map { $0.algorithm?.name ?? DKIMSignature.weakAlgorithm } ?? "",
            coversWholeBody: coversWholeBody ?? (signature?.bodyLength == nil),
            reason: reason, identityDomain: signature?.identityDomain ?? "",
            signaturePrefix: signature.map {
                String(
                    decoding: Base64.encodeUnbroken(Array($0.signature.prefix(6))), as: UTF8.self)
            } ?? "",
            isTesting: isTesting)
    }
}

extension DKIMSignature {
    var bodyRequest: DKIMBodyHashes.Request {
        .init(canonicalization: bodyCanonicalization, length: bodyLength)
    }
}
