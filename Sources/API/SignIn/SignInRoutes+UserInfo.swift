// GET and POST /auth/userinfo (OpenID Connect Core section 5.3).

import HTTP
import HTTPTypes
import Hummingbird
import SignIn
import Support

extension SignInRoutes {
    /// The claims that the app may see about the user of an access token. The token is
    /// sent in the Authorization field or in a form (RFC 6750 section 2), not in both,
    /// and never in the address.
    func userInfo(_ request: Request, _ context: APIContext) async throws -> Response {
        let form = request.method == .post ? try await userInfoForm(request, context) : FormBody()
        let isByHeader = !request.headers[values: .authorization].isEmpty
        guard !isByHeader || form["access_token"] == nil else {
            throw AuthError.invalidRequest("the access token is sent in more than one way")
        }
        guard let token = isByHeader ? request.bearerToken : form["access_token"]?.text else {
            throw AuthError.missingToken(isByHeader: isByHeader)
        }
        let time = parts.now()
        guard
            let info = try await parts.run({
                try $0.provider.userInfo(accessToken: token, now: time)
            })
        else {
            throw AuthError.unknownToken()
        }
        let subject = info.subject
        var object: JSONObject = ["sub": .string(subject.sub)]
        object["name"] = (info.name?.full).map(JSONValue.string)
        object["given_name"] = (info.name?.given).map(JSONValue.string)
        object["family_name"] = (info.name?.family).map(JSONValue.string)
        object.setEmail(subject.email)
        switch subject.email {
        case .relay:
            object["email_verified"] = .bool(true)
            object["is_private_email"] = .bool(true)
        case .shared:
            object["email_verified"] = .bool(true)
            object["is_private_email"] = .bool(false)
        case nil: break
        }
        object["org_id"] = subject.orgID.map(JSONValue.string)
        object["transfer_sub"] = subject.transferSub.map(JSONValue.string)
        return .unstored(object)
    }

    /// A POST without a body has its token in the header.
    private func userInfoForm(_ request: Request, _ context: APIContext) async throws -> FormBody {
        guard request.headers[.contentType] != nil else { return FormBody() }
        return try await form(request, context)
    }
}
