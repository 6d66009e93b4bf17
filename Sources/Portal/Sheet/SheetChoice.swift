// What a user chose on the sheet, as the form says it. Pure.

import Accounts
import HTTP
import SignIn

struct SheetChoice: Hashable {
    /// Unless the user said otherwise.
    let hidesEmail: Bool
    /// `Inbox.number`; nil where the user was not asked which.
    let inbox: Int64?
    /// As typed, without white space around; nil where nothing was.
    let firstName: String?
    let lastName: String?

    /// Octets of each part of a name.
    private static let longestName = 400

    init(_ form: FormBody) {
        hidesEmail = form["email"] != "share"
        inbox = form["inbox"].flatMap(Int64.init)
        func name(_ field: String) -> String? {
            form[field].map { $0.trimmingCharacters(in: .whitespaces) }.flatMap { $0.isEmpty ? nil : $0 }
        }
        firstName = name("first_name")
        lastName = name("last_name")
    }

    /// What is wrong with it, for the user; nil for nothing.
    var problem: String? {
        for name in [firstName, lastName].compactMap({ $0 }) {
            guard name.utf8.count <= Self.longestName, NameText.isPlain(name) else {
                return "The name is too long, or has characters that no name has."
            }
        }
        return nil
    }

    /// A stored name in the two parts that apps get: its last word is taken for the last name.
    static func parts(of name: String?) -> (first: String?, last: String?) {
        guard let words = name?.split(separator: " "), words.count > 1 else { return (name, nil) }
        return (words.dropLast().joined(separator: " "), words.last.map(String.init))
    }

    /// - Parameters:
    ///   - storedName: as `parts(of:)`.
    ///   - standingInbox: that mail goes to anyway. Whoever leaves it as it is has not chosen it for this app alone: mail follows
    ///     when they choose another one for all.
    func apply(
        to authorization: inout ProviderAuthorization, storedName: (first: String?, last: String?), standingInbox: Int64?
    ) {
        let scopes = authorization.scopes
        if scopes.contains("email") {
            authorization.grant.emailKind = hidesEmail ? .privateRelay : .real
            authorization.grant.inbox = inbox == standingInbox ? nil : inbox.map(InboxName.number)
        }
        authorization.grant.sharesName = scopes.contains("name") ? true : nil
        authorization.givesStoredName = (firstName, lastName) == storedName
    }
}
