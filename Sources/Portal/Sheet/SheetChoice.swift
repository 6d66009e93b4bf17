// The user's choices on the sheet, from the form. Pure.

import Accounts
import HTTP
import SignIn

struct SheetChoice: Hashable {
    /// True unless the user chose otherwise.
    let hidesEmail: Bool
    /// `Inbox.number`; nil if the user had no choice.
    let inbox: Int64?
    /// As entered, without white space around; nil if empty.
    let firstName: String?
    let lastName: String?

    /// The most octets of each part of a name.
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

    /// An error for the user; nil for none.
    var problem: String? {
        for name in [firstName, lastName].compactMap({ $0 }) {
            guard name.utf8.count <= Self.longestName, NameText.isPlain(name) else {
                return "The name is too long, or has characters that no name has."
            }
        }
        return nil
    }

    /// A stored name in the two parts that apps get: its last word becomes the last name.
    static func parts(of name: String?) -> (first: String?, last: String?) {
        guard let words = name?.split(separator: " "), words.count > 1 else { return (name, nil) }
        return (words.dropLast().joined(separator: " "), words.last.map(String.init))
    }

    /// - Parameters:
    ///   - storedName: as from `parts(of:)`.
    ///   - standingInbox: the inbox that mail goes to by default. Leaving it selected is not a choice for this app alone: mail
    ///     follows when the user changes the default.
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
