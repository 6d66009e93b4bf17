// The response to an app after its user signed in and consented, on either sign-in page.

import Accounts
import Database
import Support

/// A code, and the data sent with it. Prints nothing of it.
package struct AuthorizationAnswer: Sendable, CustomStringConvertible, CustomReflectable {
    package let code: String
    package let identityToken: String
    /// The `user` object, which an app gets once: the name if its scopes include it, and the same
    /// address as in the token.
    package let user: JSONObject?

    /// - Parameter name: as the user gave it now, which may be empty; nil if they gave none, and
    ///   the stored one is used.
    package init(_ issued: IssuedCode, name: PersonName?, _ maker: TokenMaker) throws(StoreFailure)
    {
        code = issued.code
        identityToken = try maker.token(issued.subject, code: issued.code)
        var user: JSONObject = [:]
        if issued.deliversProfile {
            if UserScope.haveName(issued.subject.scopes),
                let name = Self.name(name ?? PersonName(stored: issued.userName))
            {
                user["name"] = .object(name)
            }
            user.setEmail(issued.subject.email)
        }
        self.user = user.members.isEmpty ? nil : user
    }

    private static func name(_ name: PersonName) -> JSONObject? {
        var object: JSONObject = [:]
        object["firstName"] = name.given.map(JSONValue.string)
        object["lastName"] = name.family.map(JSONValue.string)
        return object.members.isEmpty ? nil : object
    }

    package var description: String { "<answer>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension AuthorizationResponse {
    /// The response to the app. `user` is only sent by form or message: names and addresses must
    /// not enter the browser's history.
    package init(_ asked: AuthenticationRequest, _ answer: AuthorizationAnswer) {
        let isHidden = asked.target.mode == .formPost || asked.target.mode == .webMessage
        self.init(
            asked.target, code: answer.code,
            identityToken: asked.responseType == .codeIDToken ? answer.identityToken : nil,
            user: isHidden ? answer.user.map { JSONValue.object($0).text } : nil)
    }
}
