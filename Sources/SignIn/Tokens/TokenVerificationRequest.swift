// `postern verify token`: a request about one token as JSON, and its response.

import Support

/// A request: `{id, token, jwks, iss, aud, nonce, now, claims}`, and as extras `algorithms`,
/// `nonce_form`, `leeway`.
package struct TokenVerificationRequest: Sendable {
    /// Longest accepted line, in octets: a token, a key set and some space for the rest.
    package static let maximumLength = 1_048_576

    /// As received.
    package var id: JSONValue
    package var token: String
    /// Nil for the keys of the configured issuer.
    package var keys: JSONValue?
    package var issuer: String?
    package var audience: String?
    package var nonce: String?
    /// Seconds since 1970.
    package var now: Int64
    /// Whether the claims are checked, or only format, algorithm, key and signature.
    package var checksClaims: Bool
    package var algorithms: Set<SignatureAlgorithm>?
    package var nonceForm: NonceForm?
    package var leeway: Int64?

    package init(id: JSONValue = .null, token: String, now: Int64) {
        self.id = id
        self.token = token
        self.now = now
        checksClaims = true
    }

    /// A line of --batch that cannot be read, with its id if that can be read.
    package struct Unreadable: Error, Sendable {
        package let id: JSONValue
        package let reason: String
    }

    /// Reads a line.
    /// - Parameter time: parses `now` as seconds since 1970; nil if the text is not a time.
    package init(line: [UInt8], now: Int64, time: (String) -> Int64?) throws(Unreadable) {
        let object: JSONObject
        do {
            let value = try StrictJSON.parse(
                line, limit: Self.maximumLength, replacingUnprintable: true)
            guard case .object(let members) = value else {
                throw JSONError(message: "not an object", offset: 0)
            }
            object = members
        } catch {
            throw Unreadable(id: .null, reason: "the line is not valid JSON: \(error)")
        }
        let id = object["id"] ?? .null
        self.init(id: id, token: "", now: now)
        guard case .string(let token)? = object["token"] else {
            throw Unreadable(id: id, reason: "token is not a string")
        }
        self.token = token
        func text(_ name: String) throws(Unreadable) -> String? {
            switch object[name] {
            case nil, .null?: return nil
            case .string(let text)?: return text
            default: throw Unreadable(id: id, reason: "\(name) is not a string")
            }
        }
        if let keys = object["jwks"], keys != .null { self.keys = keys }
        issuer = try text("iss")
        audience = try text("aud")
        nonce = try text("nonce")
        switch object["now"] {
        case nil, .null?: break
        case .number(let number)?:
            guard let seconds = number.floor else {
                throw Unreadable(id: id, reason: "now is not a time")
            }
            self.now = seconds
        case .string(let text)?:
            guard let seconds = time(text) else {
                throw Unreadable(id: id, reason: "now is not a time")
            }
            self.now = seconds
        default: throw Unreadable(id: id, reason: "now is not a time")
        }
        switch try text("claims") {
        case nil, "check"?: checksClaims = true
        case "skip"?: checksClaims = false
        default: throw Unreadable(id: id, reason: "claims is neither check nor skip")
        }
        if let form = try text("nonce_form") {
            guard let known = NonceForm(rawValue: form) else {
                throw Unreadable(id: id, reason: "nonce_form is neither raw nor sha256_hex")
            }
            nonceForm = known
        }
        if let leeway = object["leeway"], leeway != .null {
            guard let seconds = leeway.number?.integer,
                (0...IssuerConfiguration.maximumLeeway).contains(seconds)
            else {
                throw Unreadable(
                    id: id,
                    reason: "leeway is not 0 to \(IssuerConfiguration.maximumLeeway) seconds")
            }
            self.leeway = seconds
        }
        if let names = object["algorithms"], names != .null {
            let known = names.array?.compactMap { $0.string.flatMap(SignatureAlgorithm.init) } ?? []
            guard !known.isEmpty, known.count == names.array?.count else {
                throw Unreadable(id: id, reason: "algorithms is not a list of RS256 and ES256")
            }
            algorithms = Set(known)
        }
    }
}

/// The response.
package struct TokenVerificationResponse: Sendable {
    package enum Outcome: Sendable {
        /// The claims; nil if they were not checked and the payload is not a JSON object.
        case valid(JSONObject?)
        case rejected(TokenRejection)
        /// Nothing is known about the token.
        case unavailable(String)
    }

    package let id: JSONValue
    package let outcome: Outcome

    package init(id: JSONValue, outcome: Outcome) {
        self.id = id
        self.outcome = outcome
    }

    /// `{id, valid, claims | error}`. `withID`: false for a single request.
    package func json(withID: Bool = true) -> JSONValue {
        var object: JSONObject = [:]
        if withID { object["id"] = id }
        switch outcome {
        case .valid(let claims):
            object["valid"] = .bool(true)
            object["claims"] = claims.map(JSONValue.object) ?? .null
        case .rejected(let rejection):
            object["valid"] = .bool(false)
            object["error"] = .string(rejection.description)
        case .unavailable(let reason):
            object["valid"] = .bool(false)
            object["error"] = .string("unavailable: \(reason)")
        }
        return .object(object)
    }
}

/// Answers requests with the keys that they contain, or with those of configured issuers.
package struct TokenQuestions: Sendable {
    private let configured: TokenVerifier?

    /// - Parameters:
    ///   - issuers: nil if there is no installation.
    ///   - keys: the source of those issuers' keys.
    package init(issuers: (any IssuerDirectory)?, keys: (any VerificationKeySource)?) {
        if let issuers, let keys {
            configured = TokenVerifier(issuers: issuers, keys: keys)
        } else {
            configured = nil
        }
    }

    /// Answers one request.
    package func answer(_ question: TokenVerificationRequest) async -> TokenVerificationResponse {
        do {
            return TokenVerificationResponse(
                id: question.id, outcome: .valid(try await claims(question)))
        } catch let rejection as TokenRejection {
            return TokenVerificationResponse(id: question.id, outcome: .rejected(rejection))
        } catch {
            return TokenVerificationResponse(id: question.id, outcome: .unavailable("\(error)"))
        }
    }

    private func claims(_ question: TokenVerificationRequest) async throws -> JSONObject? {
        let token = try CompactJWS(question.token)
        let (issuer, keys) = try await trust(token, question)
        guard question.checksClaims else {
            try TokenChecks.signature(token, algorithms: issuer.algorithms, keys: keys)
            return try? StrictJSON.parseObject(token.payload, limit: CompactJWS.maximumLength)
        }
        guard let audience = question.audience else {
            throw TokenRejection(.audience, "no audience to expect: name one")
        }
        if let expected = question.issuer, !expected.hasSameOctets(as: issuer.issuer) {
            throw TokenRejection(.issuer, "the token is from another issuer")
        }
        let nonce = ExpectedNonce(question.nonce, form: question.nonceForm, isRequired: false)
        return try TokenChecks.verify(
            token, issuer: issuer, keys: keys, audience: audience, nonce: nonce, now: question.now
        ).all
    }

    /// The issuer that applies, and its keys.
    private func trust(
        _ token: CompactJWS, _ question: TokenVerificationRequest
    ) async throws -> (IssuerConfiguration, JWKSet) {
        guard let document = question.keys else {
            guard let configured else {
                throw TokenRejection(
                    .key, "no keys were given, and there is no installation with issuers")
            }
            let (issuer, keys) = try await configured.trust(token)
            return (Self.adjusted(issuer, question), keys)
        }
        guard question.issuer != nil || !question.checksClaims else {
            throw TokenRejection(.issuer, "no issuer to expect: name one")
        }
        let keys: JWKSet
        do {
            // A person may enter a key pair: the private part is ignored.
            keys = try JWKSet.parse(document.octets, allowingPrivateKeys: true)
        } catch {
            throw TokenRejection(.key, error.reason)
        }
        let issuer = IssuerConfiguration(
            name: "-", issuer: question.issuer ?? "", source: .inline(""))
        return (Self.adjusted(issuer, question), keys)
    }

    /// The issuer with the request's own settings.
    private static func adjusted(
        _ issuer: IssuerConfiguration, _ question: TokenVerificationRequest
    ) -> IssuerConfiguration {
        IssuerConfiguration(
            name: issuer.name, issuer: issuer.issuer, source: issuer.source,
            algorithms: question.algorithms ?? issuer.algorithms, nonceForm: issuer.nonceForm,
            leeway: question.leeway ?? issuer.leeway)
    }
}
