// Notifies users by mail, at most once a week, that mail to them was refused for a
// reason that is new to them.

import Accounts
import Database
import Hummingbird
import Languages
import Logging
import Mail
import PersonalData
import RelayCore
import SignIn

extension PortalPage {
    func setRefusalNotices(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        guard let state = request.form["state"]?.text, ["on", "off"].contains(state) else {
            throw PortalRefusal.notFound
        }
        let change = Self.change(session, now())
        try await pool.run {
            try store.persons.setWantsRefusals(user: session.userID, state == "on", change)
        }
        return request.redirect(
            "/me/inboxes", told: state == "on" ? .refusalsTold : .refusalsNotTold)
    }

    /// Messages that are taken from the store at once. If the mail server accepts none, only the
    /// first one delays housekeeping.
    private static let batch = 20
    /// Users searched at a time: each search reads the data of a whole week.
    private static let users = 10_000

    /// Sends the messages that are due. Blocks until the mail server has them. If the server
    /// refuses one, that message and all later ones are due again.
    package func tellOfRefusals() throws(StoreFailure) {
        while true {
            let users = try store.persons.usersToTell(now: now(), limit: Self.users)
            var rest = users[...]
            while !rest.isEmpty {
                guard try tell(Array(rest.prefix(Self.batch))) else { return }
                rest = rest.dropFirst(Self.batch)
            }
            guard users.count == Self.users else { return }
        }
    }

    /// Returns whether all due messages were sent.
    private func tell(_ users: [Int64]) throws(StoreFailure) -> Bool {
        let time = now()
        let notices = try store.persons.takeRefusalNotices(of: users, now: time)
        for (index, notice) in notices.enumerated() {
            do {
                let language = try mailer.language(of: notice.userID)
                try mailer.tell(.refusals, to: notice.inbox, in: language, now: time) { values in
                    // Contains no text of a sender: a refused sender
                    // must not reach the user this way.
                    values.reasons = UserRefusal.allCases.filter(notice.kinds.contains).map {
                        Self.reason($0, in: language)
                    }
                }
            } catch {
                logger.warning(
                    "no message about refused mail was sent", metadata: ["detail": "\(error)"])
                for rest in notices[index...] { try store.persons.giveBack(rest, now: time) }
                return false
            }
        }
        return true
    }

    /// Why mail was refused, in plain words.
    /// - Parameter team: the team whose address it was sent to; nil if it may be any of several.
    static func reason(_ kind: UserRefusal, team: String? = nil, in language: Catalogue) -> String {
        switch kind {
        case .forwardingOff: language.text("Forwarding was off")
        case .stopped: language.text("You had stopped using the apps")
        case .inbox: language.text("Your inbox was not confirmed, or it rejected mail")
        case .limit: language.text("The daily limit of this address was reached")
        case .stranger:
            team.map { language.text("The sender is not known to belong to {team}", ["team": $0]) }
                ?? language.text("The sender is not known to belong to those who have the address")
        case .unproved: language.text("The sender could not prove who it is")
        case .blocked: language.text("You had blocked the sender")
        case .content: language.text("The message could not be passed on safely")
        case .replaced: language.text("It went to an earlier address that no longer works")
        case .waiting:
            language.text("The sender has to wait, because of complaints about its mail")
        case .frozen: language.text("The operator had frozen the mail")
        }
    }
}
