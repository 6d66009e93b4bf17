// The requests of apps to the authorization endpoint, and its answers.

import Support

#if canImport(IdentityParsing)
@testable import IdentityParsing
#else
@testable import SignIn
#endif

enum SignInFuzzing {
    private static let uri = "https://app.example/signed-in?a=1"

    /// A query or a form. For any content, an answer goes to the registered address, and a page
    /// contains no markup of the app's.
    static let authorize: FuzzTarget = { input in
        guard let parameters = AuthorizationParameters(input) else { return }
        let client = AuthorizationClient(
            clientID: parameters.clientID ?? "", redirectURIs: [uri],
            isPublic: input.count.isMultiple(of: 2))
        if let ended = try? EndSessionRequest(parameters, hint: nil, redirectURIs: [uri]),
            let destination = ended.destination
        {
            requireRegistered(destination)
        }
        switch AuthenticationRequestReader(issuer: "https://id.example").read(
            parameters, client: client)
        {
        case .page: break
        case .error(let error, let target): check(target) { AuthorizationResponse($0, error) }
        case .accepted(let request):
            require(
                request.challenge.map { $0.count == 32 } ?? !client.isPublic,
                "a public client has a challenge")
            require(
                !request.prompts.contains(.none) || request.prompts.count == 1,
                "prompt=none is alone")
            require(request.responseType == .code || request.nonce != nil, "a token has a nonce")
            require(
                request.responseType == .code || request.target.mode != .query,
                "no token is in a query")
            check(request.target) {
                AuthorizationResponse($0, code: "c", identityToken: nil, user: $0.state)
            }
        }
    }

    private static func requireRegistered(_ address: String) {
        require(address.hasPrefix(uri), "an answer goes to the registered address")
        require(
            address.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "an address is visible ASCII")
    }

    private static func check(
        _ target: AuthorizationResponseTarget,
        _ answer: (AuthorizationResponseTarget) -> AuthorizationResponse
    ) {
        let harmless = AuthorizationResponseTarget(
            redirectURI: target.redirectURI, mode: target.mode,
            state: target.state.map { _ in "x" }, issuer: target.issuer)
        switch (answer(target).rendered(), answer(harmless).rendered()) {
        case (.redirect(let address), .redirect): requireRegistered(address)
        case (.page(let page), .page(let other)):
            for mark in "<>\"'".utf8 {
                let counts = [page, other].map { page in page.html.utf8.count { $0 == mark } }
                require(counts[0] == counts[1], "what an app sends is text")
            }
        default: require(false, "one response mode gives one kind of answer")
        }
    }
}
