// Turns parameters into a request that may be shown to the user, or into an error.
// Pure: no I/O, no clock.

import Accounts
import Support

/// Checks authorization requests in a fixed order, so that the first failure is
/// always the one reported.
package struct AuthenticationRequestReader: Sendable {
    /// Octets.
    package static let maximumState = 4_096
    /// Octets.
    package static let maximumLoginHint = 320
    /// Seconds: more than a year has no meaning.
    package static let maximumAge: Int64 = 31_536_000
    /// The most words of a list that are read.
    package static let maximumWords = 20

    /// The provider's `iss`.
    private let issuer: String

    package init(issuer: String) { self.issuer = issuer }

    /// The verdict.
    /// - Parameter client: the client that `parameters.clientID` names; nil if there is none.
    package func read(
        _ parameters: AuthorizationParameters, client: AuthorizationClient?
    ) -> AuthorizationVerdict {
        guard let clientID = parameters.clientID else { return .page(.clientMissing) }
        guard let client, client.clientID.hasSameOctets(as: clientID) else {
            return .page(.clientUnknown)
        }
        guard let redirectURI = parameters["redirect_uri"]?.text else {
            return .page(.redirectMissing)
        }
        guard client.accepts(redirectURI) else { return .page(.redirectUnregistered) }
        let form = ResponseForm(parameters, redirectURI: redirectURI)
        let state = parameters["state"].flatMap { Self.isState($0.text) ? $0.text : nil }
        let target = AuthorizationResponseTarget(
            redirectURI: redirectURI, mode: form.mode, state: state, issuer: issuer)
        do throws(AuthorizationError) {
            return .accepted(try request(parameters, client, form, target))
        } catch {
            return .error(error, target)
        }
    }

    /// Where the result of a check goes that a backend asks for.
    /// - Parameters:
    ///   - mode: `response_mode`; nil for a query.
    /// - Returns: nil if the redirect URI is not the client's, or has a wrong form.
    package func target(
        redirectURI: String, mode: AuthorizationResponseMode?, state: String?,
        client: AuthorizationClient
    ) -> AuthorizationResponseTarget? {
        guard client.accepts(redirectURI), state.map(Self.isState) ?? true,
            mode.map({ $0.isPossible(for: redirectURI) }) ?? true
        else { return nil }
        return AuthorizationResponseTarget(
            redirectURI: redirectURI, mode: mode ?? .query, state: state, issuer: issuer)
    }

    /// A form would not return a line break unchanged.
    package static func isState(_ text: String) -> Bool {
        text.utf8.count <= maximumState && text.hasNoControls
    }

    private func request(
        _ parameters: AuthorizationParameters, _ client: AuthorizationClient, _ form: ResponseForm,
        _ target: AuthorizationResponseTarget
    ) throws(AuthorizationError) -> AuthenticationRequest {
        guard parameters.repeated.isDisjoint(with: Self.known) else {
            throw AuthorizationError(.invalidRequest, "a parameter is given twice")
        }
        try refuseUnsupported(parameters)
        let responseType = try form.checked()
        if parameters["state"] != nil, target.state == nil {
            throw AuthorizationError(
                .invalidRequest,
                "state must be at most \(Self.maximumState) octets without control characters")
        }
        let scopes = parameters.words("scope")
        guard scopes.allSatisfy({ Self.isScopeToken($0) }) else {
            throw AuthorizationError(.invalidScope, "scope has a character that is not allowed")
        }
        let nonce = try text(parameters, "nonce", maximum: ExpectedNonce.maximumLength)
        if responseType == .codeIDToken, nonce == nil {
            throw AuthorizationError(
                .invalidRequest, "nonce is required with response_type=code id_token")
        }
        return AuthenticationRequest(
            clientID: client.clientID, target: target, responseType: responseType,
            scopes: Self.scopes(scopes), nonce: nonce,
            challenge: try challenge(parameters, isRequired: client.isPublic),
            prompts: try prompts(parameters),
            maximumAge: try maximumAge(parameters),
            loginHint: try text(parameters, "login_hint", maximum: Self.maximumLoginHint),
            identityTokenHint: try text(
                parameters, "id_token_hint", maximum: CompactJWS.maximumLength),
            uiLocales: Self.words(parameters, "ui_locales", where: Self.isLanguageTag).map(
                Self.languageTag),
            contextClasses: Self.words(parameters, "acr_values") { $0.octets.count <= 255 })
    }

    // MARK: Parts

    /// Parameters that must not be repeated; others are ignored even if repeated.
    private static let known: Set<WireText> = [
        "response_type", "response_mode", "scope", "state", "nonce", "code_challenge",
        "code_challenge_method", "prompt",
        "max_age", "login_hint", "id_token_hint", "ui_locales", "claims_locales", "acr_values",
        "claims", "display", "request",
        "request_uri", "registration",
    ]

    /// OpenID Connect Core section 6: a request object may contain anything, including a
    /// redirect_uri. Ignoring it would be worse than refusing it.
    private func refuseUnsupported(_ parameters: AuthorizationParameters) throws(AuthorizationError)
    {
        if parameters["request"] != nil {
            throw AuthorizationError(.requestNotSupported, "request objects are not supported")
        }
        if parameters["request_uri"] != nil {
            throw AuthorizationError(.requestURINotSupported, "request_uri is not supported")
        }
        if parameters["registration"] != nil {
            throw AuthorizationError(.registrationNotSupported, "registration is not supported")
        }
    }

    /// Those that are known; others are left out (RFC 6749 section 3.3).
    private static func scopes(_ asked: [WireText]) -> Set<String> {
        UserScope.all.filter { asked.contains(WireText($0)) }
    }

    /// RFC 6749 section 3.3: %x21 / %x23-5B / %x5D-7E.
    private static func isScopeToken(_ word: WireText) -> Bool {
        word.octets.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
    }

    /// The first words of a list that are of use.
    private static func words(
        _ parameters: AuthorizationParameters, _ name: WireText, where isKept: (WireText) -> Bool
    ) -> [String] {
        parameters.words(name).filter(isKept).prefix(maximumWords).map(\.text)
    }

    /// As BCP 47 writes it: some libraries send the name of a POSIX locale.
    private static func languageTag(_ word: String) -> String {
        String(
            decoding: word.utf8.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : $0 },
            as: UTF8.self)
    }

    private static func isLanguageTag(_ word: WireText) -> Bool {
        (1...35).contains(word.octets.count) && word.octets.first != 0x2D
            && word.octets.allSatisfy {
                $0.isASCIILetter || (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x5F
            }
    }

    private func text(
        _ parameters: AuthorizationParameters, _ name: WireText, maximum: Int
    ) throws(AuthorizationError) -> String? {
        guard let text = parameters[name]?.text else { return nil }
        guard text.utf8.count <= maximum, text.hasNoControls else {
            throw AuthorizationError(
                .invalidRequest,
                "\(name.text) must be at most \(maximum) octets without control characters")
        }
        return text
    }

    /// The 32 octets of an S256 challenge. Without a method the challenge is `plain` (RFC 7636
    /// section 4.3), which hides nothing.
    private func challenge(
        _ parameters: AuthorizationParameters, isRequired: Bool
    ) throws(AuthorizationError) -> [UInt8]? {
        guard let text = parameters["code_challenge"] else {
            guard !isRequired, parameters["code_challenge_method"] == nil else {
                throw AuthorizationError(.invalidRequest, "code_challenge is missing")
            }
            return nil
        }
        guard parameters["code_challenge_method"] == "S256" else {
            throw AuthorizationError(.invalidRequest, "code_challenge_method must be S256")
        }
        guard let octets = Base64URL.decode(text.octets), octets.count == 32 else {
            throw AuthorizationError(
                .invalidRequest, "code_challenge must be a SHA-256 in base64url")
        }
        return octets
    }

    private func prompts(
        _ parameters: AuthorizationParameters
    ) throws(AuthorizationError) -> Set<AuthorizationPrompt> {
        let words = Set(parameters.words("prompt"))
        // Applies even if the other value is unknown, since it may need the user.
        guard !words.contains("none") || words.count == 1 else {
            throw AuthorizationError(.invalidRequest, "prompt=none must be alone")
        }
        return Set(words.compactMap { AuthorizationPrompt(rawValue: $0.text) })
    }

    private func maximumAge(
        _ parameters: AuthorizationParameters
    ) throws(AuthorizationError) -> Int64? {
        guard let text = parameters["max_age"] else { return nil }
        guard text.octets.count <= 12, text.octets.allSatisfy({ (0x30...0x39).contains($0) }),
            let seconds = text.integer
        else {
            throw AuthorizationError(.invalidRequest, "max_age must be a number of seconds")
        }
        return min(seconds, Self.maximumAge)
    }
}

/// `response_type` and `response_mode`, which also determine how an error is sent.
private struct ResponseForm {
    private let type: Result<AuthorizationResponseType, AuthorizationError>
    private let askedMode: Result<AuthorizationResponseMode?, AuthorizationError>
    /// The requested mode if possible, otherwise the default of the response type.
    let mode: AuthorizationResponseMode

    init(_ parameters: AuthorizationParameters, redirectURI: String) {
        let words = parameters.words("response_type").sorted()
        if words.isEmpty {
            type = .failure(AuthorizationError(.invalidRequest, "response_type is missing"))
        } else if let known = AuthorizationResponseType(
            rawValue: words.map(\.text).joined(separator: " "))
        {
            // The order of the words does not matter; it is alphabetical here (OAuth 2.0
            // Multiple Response Types section 2).
            type = .success(known)
        } else {
            type = .failure(
                AuthorizationError(
                    .unsupportedResponseType, "response_type must be code or code id_token"))
        }
        // A token in a query would appear in histories and logs. An error in response to a token
        // request avoids the query too.
        let holdsToken = words.contains("id_token") || words.contains("token")
        askedMode = Self.mode(
            parameters["response_mode"], holdsToken: holdsToken, redirectURI: redirectURI)
        let standard: AuthorizationResponseMode = holdsToken ? .fragment : .query
        mode = (try? askedMode.get()) ?? standard
    }

    /// Throws the first error.
    func checked() throws(AuthorizationError) -> AuthorizationResponseType {
        let type = try type.get()
        _ = try askedMode.get()
        return type
    }

    private static func mode(
        _ text: WireText?, holdsToken: Bool, redirectURI: String
    ) -> Result<AuthorizationResponseMode?, AuthorizationError> {
        guard let text else { return .success(nil) }
        guard let mode = AuthorizationResponseMode(rawValue: text.text) else {
            return .failure(
                AuthorizationError(
                    .invalidRequest,
                    "response_mode must be query, fragment, form_post or web_message"))
        }
        switch mode {
        case .query where holdsToken:
            return .failure(
                AuthorizationError(
                    .invalidRequest, "response_mode=query is not allowed with an id_token"))
        case .formPost, .webMessage:
            guard mode.isPossible(for: redirectURI) else {
                return .failure(
                    AuthorizationError(
                        .invalidRequest, "this response_mode needs a redirect_uri of http or https")
                )
            }
            return .success(mode)
        default: return .success(mode)
        }
    }
}
