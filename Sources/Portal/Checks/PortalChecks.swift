// The extra checks that the user had to pass, with the reasons in plain words; the user may object.

import Accounts
import Database
import Hummingbird
import Languages
import PersonalData
import SignIn
import Support

extension PortalPage {
    func object(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let (decision, words, change) = (
            request.typed("decision"), request.typed("words"), Self.change(session, now())
        )
        do {
            try await pool.run {
                try store.persons.object(
                    account: account.number, decision: decision, words: words, change)
            }
        } catch let refusal as StoreFailure where refusal.code == .refused(.invalid) {
            return try await showAccount(
                request, session, problem: (.objection(decision), request.sentence(refusal)),
                status: .unprocessableContent)
        }
        return request.redirect(
            "/me/addresses/\(account.number)", told: .objected, of: account.number)
    }

    func withdraw(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let account = try await account(request, session)
        let (decision, change) = (request.typed("decision"), Self.change(session, now()))
        try await pool.run {
            try store.persons.withdrawObjection(account: account.number, decision: decision, change)
        }
        return request.redirect(
            "/me/addresses/\(account.number)", told: .withdrawn, of: account.number)
    }

    /// The checks as shown on the account's page.
    /// - Parameter problem: the problem of the objection that the user just typed.
    func checks(
        of account: UserExportAccount, _ words: PortalText,
        problem: (decision: String, text: String, typed: String)? = nil
    ) async throws -> [AccountView.Check] {
        let checks = try await pool.run { try store.persons.checks(account: account.number) }
        let language = words.language
        return checks.map { check in
            let reasons = check.reasons.map { Self.reason($0, language) }
            return AccountView.Check(
                decision: check.decisionID, at: words.time(check.at),
                event: Self.event(check.event, language),
                asked: words.list(check.challenges.map { Self.challenge($0, language) }),
                end: Self.end(check.end, language),
                // Several codes may have the same text.
                why: reasons.enumerated().filter { !reasons[..<$0.offset].contains($0.element) }
                    .map(\.element),
                objected: check.objectedAt.map(words.date), words: check.objection,
                problem: problem.flatMap {
                    $0.decision.hasSameOctets(as: check.decisionID) ? $0.text : nil
                },
                typed: problem.flatMap {
                    $0.decision.hasSameOctets(as: check.decisionID) ? $0.typed : nil
                })
        }
    }

    private static func event(_ event: String, _ language: Catalogue) -> String {
        switch event {
        case "sign_up": language.text("When you signed up")
        case "sign_in": language.text("When you signed in")
        case "upgrade": language.text("When you linked an account")
        default: language.text("For a sensitive step")
        }
    }

    private static func challenge(_ kind: String, _ language: Catalogue) -> String {
        switch kind {
        case "email_code": language.text("a code by mail")
        case "human_check": language.text("a test that you are human")
        case "reauthenticate": language.text("signing in again")
        default: kind
        }
    }

    private static func end(_ end: AccountCheck.End, _ language: Catalogue) -> String {
        switch end {
        case .passed: language.text("Passed")
        case .failed: language.text("Failed")
        case .open: language.text("Not completed")
        }
    }

    /// The codes of Postern's default policy, and the evaluator's own;
    /// others belong to the operator.
    private static func reason(_ code: String, _ language: Catalogue) -> String {
        switch code {
        case "CONSENT_REVOKED": language.text("You had stopped using the app and came back.")
        case "SIGNUP_UNVERIFIED": language.text("The check at sign-up was never completed.")
        case "REPEATED_FAILED_CHECKS": language.text("Several checks had failed lately.")
        case "RECENT_TRANSFER": language.text("The app had moved to another company lately.")
        case "INBOX_SIGNUP_BURST", "INBOX_SIGNUP_VELOCITY":
            language.text("There were many sign-ups with your inbox in a short time.")
        case "REAL_USER_UNKNOWN": language.text("It was not known yet that you are a real person.")
        case "INBOX_RECYCLED":
            language.text("Your inbox had been used with accounts that were deleted.")
        case "APP_SIGNUP_SPIKE": language.text("The app had many more sign-ups than usual.")
        case "DORMANT_ACCOUNT": language.text("You had not used the app for a long time.")
        case "YOUNG_UNPROVEN_ACCOUNT": language.text("Your account was new.")
        case "INBOX_DISPOSABLE":
            language.text("Your inbox is at a service for throwaway addresses.")
        case "INBOX_DOMAIN_VELOCITY":
            language.text("Many sign-ups came with inboxes at the same domain.")
        case "NETWORK_VELOCITY":
            language.text("Many sign-ups came from your network in a short time.")
        case "INBOX_UNRELIABLE": language.text("Your inbox had refused mail.")
        case "STALE_TOKEN": language.text("It was not known that you had signed in recently.")
        case "HISTORY_UNAVAILABLE", "POLICY_ERROR":
            language.text("A check was not available, so we asked for an extra step.")
        case "POLICY_GUARANTEE": language.text("This check is always required in this case.")
        default: language.text("A rule of the operator: {code}", ["code": code])
        }
    }
}
