// What an app gets after its user signed in and consented, on either sign-in page.

import Accounts
import Database
import JSON

/// The user's name as they gave it for one app.
package struct GivenName: Sendable {
    let first: String?
    let last: String?

    package init(first: String?, last: String?) {
        self.first = first
        self.last = last
    }
}

/// A code, and the data sent with it. Prints nothing of it.
package struct AuthorizationAnswer: Sendable, CustomStringConvertible, CustomReflectable {
    package let code: String
    package let identityToken: String
    /// The `user` object, which an app gets once: the name if its scopes include it, and the same address as in the token.
    package let user: JSONObject?

    /// - Parameter name: as the user gave it now, which may be empty; nil if they gave none, and the stored one is used.
    package init(_ issued: IssuedCode, name: GivenName?, _ maker: TokenMaker) throws(StoreFailure) {
        code = issued.code
        identityToken = try maker.token(issued.subject, code: issued.code)
        var user: JSONObject = [:]
        if issued.deliversProfile {
            if issued.subject.scopes.contains("name"), let name = Self.name(issued.userName, name) {
                user["name"] = .object(name)
            }
            user.setEmail(issued.subject.email)
        }
        self.user = user.members.isEmpty ? nil : user
    }

    /// As the user gave it on the page; otherwise the stored name, whose last word becomes the last name.
    private static func name(_ stored: String?, _ given: GivenName?) -> JSONObject? {
        var name: JSONObject = [:]
        if let given {
            name["firstName"] = given.first.map(JSONValue.string)
            name["lastName"] = given.last.map(JSONValue.string)
        } else if let stored {
            let words = stored.split(separator: " ")
            name["firstName"] = .string(words.count > 1 ? words.dropLast().joined(separator: " ") : stored)
            if words.count > 1, let last = words.last { name["lastName"] = .string(String(last)) }
        }
        return name.members.isEmpty ? nil : name
    }

    package var description: String { "<answer>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension AuthorizationResponse {
    /// The response to the app. `user` is only sent by form or message: names and addresses must not enter the browser's
    /// history.
    package init(_ asked: AuthenticationRequest, _ answer: AuthorizationAnswer) {
        let isHidden = asked.target.mode == .formPost || asked.target.mode == .webMessage
        self.init(
            asked.target, code: answer.code, identityToken: asked.responseType == .codeIDToken ? answer.identityToken : nil,
            user: isHidden ? answer.user.map { JSONValue.object($0).text } : nil)
    }
}
