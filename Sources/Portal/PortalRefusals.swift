// The mail to one address that was refused, with the reasons, and the senders that its user blocks.

import Accounts
import Database
import Hummingbird
import PersonalData
import SignIn

extension PortalPage {
    func block(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        guard account.address != nil else { throw PortalRefusal.notFound }
        do {
            try await pool.run {
                try store.persons.block(
                    user: session.userID, account: account.number, request.typed("sender"),
                    now: now())
            }
        } catch let refusal as StoreFailure where refusal.isRefusal {
            return try await showAccount(
                request, session, problem: (.block, request.sentence(refusal)),
                status: .unprocessableContent)
        }
        return request.redirect(
            "/me/addresses/\(account.number)", told: .blocked, of: account.number)
    }

    func unblock(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        try await pool.run {
            try store.persons.unblock(
                user: session.userID, account: account.number, request.typed("sender"))
        }
        return request.redirect(
            "/me/addresses/\(account.number)", told: .unblocked, of: account.number)
    }

    /// As shown on the account's page.
    func refusals(
        of account: UserExportAccount, _ words: PortalText
    ) async throws -> [AccountView.Refusal] {
        let time = now()
        return try await pool.run { try store.persons.refusals(account: account.number, now: time) }
            .map { refusal in
                AccountView.Refusal(
                    why: Self.reason(refusal.kind, team: account.team.name, in: words.language),
                    sender: refusal.domain.isEmpty
                        ? words.language.text("other senders") : refusal.domain,
                    week: words.number(refusal.week), month: words.number(refusal.month),
                    quarter: words.number(refusal.quarter))
            }
    }
}
