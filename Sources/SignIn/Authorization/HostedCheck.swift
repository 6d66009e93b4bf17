// Checks that decisions require and that the built-in page carries out: what can be checked there,
// how it was done, and how much that proves.

import Accounts
import Database
import Support

/// A challenge of a decision that the page can carry out. The raw value is its kind in policies.
package enum HostedChallenge: String, Sendable, Hashable, CaseIterable, Codable {
    case humanCheck = "human_check"
    case emailCode = "email_code"
    case reauthenticate

    /// Whether the page needs a user with an inbox for it.
    package var needsUser: Bool { self != .humanCheck }
}

/// How much a passed check proves.
package enum CheckStrength: String, Sendable, Hashable, CaseIterable {
    /// That someone paid a price, which a program can pay too.
    case low
    /// One factor.
    case normal
    /// Two factors, or a passkey.
    case high
}

/// How the page carried out a check.
package enum CheckMethod: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// The browser computed for some seconds.
    case proofOfWork = "proof_of_work"
    /// The user entered a code that was mailed to the inbox of the account.
    case mailedCode = "mailed_code"
    /// The user signed in again by two factors.
    case twoFactors = "two_factors"
    /// The user signed in again by a passkey.
    case passkey
    /// The user signed in again at the operator's OpenID provider.
    case provider

    /// - Parameter session: a sign-in that followed the request for the check.
    package init(_ session: PageSession) {
        switch (session.method, session.level) {
        case (.passkey, _): self = .passkey
        case (.upstream, .any): self = .provider
        case (_, .twoFactor), (_, .passkey): self = .twoFactors
        case (.mail, .any): self = .mailedCode
        }
    }

    package var strength: CheckStrength {
        switch self {
        case .proofOfWork: .low
        case .mailedCode, .provider: .normal
        case .twoFactors, .passkey: .high
        }
    }

    /// `amr` and `acr` of the result. RFC 8176 has no word for a proof of work, and one for a
    /// person (`user`), which it does not prove.
    package var authentication: AuthenticationMethod {
        switch self {
        case .proofOfWork: AuthenticationMethod(references: ["pow"])
        case .mailedCode: AuthenticationMethod(references: ["otp"])
        case .twoFactors:
            AuthenticationMethod(
                references: ["mfa", "otp"], contextClass: AuthenticationClass.twoFactor.rawValue)
        case .passkey:
            AuthenticationMethod(
                references: ["mfa", "user"], contextClass: AuthenticationClass.passkey.rawValue)
        case .provider: AuthenticationMethod()
        }
    }
}

/// A check that waits for the page.
package struct HostedCheck: Sendable, Hashable, Codable {
    /// `rd_…`
    package let decisionID: String
    /// What the user is about to do, as the policy names it: `sign_in`, for example.
    package let event: String
    /// Each of them is enough; the weakest first, and never empty.
    package let challenges: [HostedChallenge]
    /// Of a proof of work, in `ProofOfWork.unit`.
    package let effort: Int

    package init(decisionID: String, event: String, challenges: [HostedChallenge], effort: Int) {
        self.decisionID = decisionID
        self.event = event
        self.challenges = challenges
        self.effort = effort
    }
}

/// A passed check, as its app gets it: a signed token of a type of its own.
///
/// It has no `sub`, and so is no identity token for any library; RFC 8417 section 4.6 advises the
/// same for security event tokens. `sub_id` (RFC 9493) names the account.
package struct CheckResult: Sendable, Hashable {
    /// `typ` of the header.
    package static let type = "check-result+jwt"
    /// Seconds.
    package static let lifetime: Int64 = 300

    package let decisionID: String
    package let clientID: String
    package let challenge: HostedChallenge
    package let method: CheckMethod
    /// Issuer and subject of the account; nil if the decision named none.
    package let subject: CheckedAccount?

    package init(
        decisionID: String, clientID: String, challenge: HostedChallenge, method: CheckMethod,
        subject: CheckedAccount?
    ) {
        self.decisionID = decisionID
        self.clientID = clientID
        self.challenge = challenge
        self.method = method
        self.subject = subject
    }

    /// The claims in a fixed order.
    /// - Parameter now: when the check was passed, in seconds since 1970.
    package func claims(issuer: String, now: Int64) -> JSONObject {
        var claims: JSONObject = [
            "iss": .string(issuer), "aud": .string(clientID), "exp": .integer(now + Self.lifetime),
            "iat": .integer(now), "jti": .string("check:\(decisionID)"),
            "decision_id": .string(decisionID), "outcome": .string("passed"),
            "challenge": .string(challenge.rawValue), "method": .string(method.rawValue),
            "strength": .string(method.strength.rawValue), "auth_time": .integer(now),
        ]
        let authentication = method.authentication
        if !authentication.references.isEmpty {
            claims["amr"] = .array(authentication.references.map(JSONValue.string))
        }
        claims["acr"] = authentication.contextClass.map(JSONValue.string)
        if let subject {
            claims["sub_id"] = .object([
                "format": .string("iss_sub"), "iss": .string(subject.issuer ?? issuer),
                "sub": .string(subject.subject),
            ])
        }
        return claims
    }
}

/// The account of a check, as its team knows it.
package struct CheckedAccount: Sendable, Hashable {
    /// Nil: this installation.
    package let issuer: String?
    package let subject: String

    package init(issuer: String?, subject: String) {
        self.issuer = issuer
        self.subject = subject
    }
}

extension TokenMaker {
    /// The token of a passed check, signed as the app's identity tokens are.
    package func token(_ result: CheckResult) throws(StoreFailure) -> String {
        do {
            return try key.sign(result.claims(issuer: issuer, now: now), type: CheckResult.type)
        } catch {
            throw .temporary(.resources, "the result of a check cannot be signed: \(error)")
        }
    }
}
