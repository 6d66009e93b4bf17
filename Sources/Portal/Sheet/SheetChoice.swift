// The user's choices on the consent page, from the form. Pure.

import Accounts
import Foundation
import HTTP
import SignIn
import Support

struct SheetChoice: Hashable {
    /// True, unless the user chose otherwise.
    let hidesEmail: Bool
    /// `Inbox.number`; nil if the user had no choice.
    let inbox: Int64?
    /// As entered, without white space around.
    let name: PersonName

    /// The most octets of each part of a name.
    private static let longestName = 400

    init(_ form: FormBody) {
        hidesEmail = form["email"] != "share"
        inbox = form["inbox"].flatMap(\.integer)
        func typed(_ field: WireText) -> String? {
            form[field]?.text.trimmingCharacters(in: .whitespaces)
        }
        name = PersonName(given: typed("first_name"), family: typed("last_name"))
    }

    /// The problem of the user's input.
    enum Problem: Hashable {
        case tooLong
        /// The position in the name, from 1, of a scalar that a name cannot contain.
        case character(at: Int)
    }

    /// Nil if nothing is wrong.
    var problem: Problem? {
        for name in [name.given, name.family].compactMap({ $0 }) {
            guard name.utf8.count <= Self.longestName else { return .tooLong }
            if let place = PersonText.place(in: name) { return .character(at: place) }
        }
        return nil
    }

    /// - Parameters:
    ///   - storedName: the user's, if there is one.
    ///   - standingInbox: the inbox that mail goes to by default. Leaving it selected is not a
    ///     choice for this app alone: mail follows when the user changes the default.
    func apply(
        to authorization: inout ProviderAuthorization, storedName: PersonName, standingInbox: Int64?
    ) {
        let scopes = authorization.scopes
        if scopes.contains(UserScope.email) {
            authorization.grant.emailKind = hidesEmail ? .privateRelay : .real
            authorization.grant.inbox = inbox == standingInbox ? nil : inbox.map(InboxName.number)
        }
        guard UserScope.haveName(scopes) else { return }
        authorization.grant.sharesName = true
        authorization.grant.name = name == storedName ? .stored : .typed(name)
    }
}
