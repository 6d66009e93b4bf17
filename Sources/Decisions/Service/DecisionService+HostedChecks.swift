// The link to the page that carries out a check, for apps that ask for it.

import Accounts
import Database
import RiskPolicy
import SignIn
import Support

extension DecisionService {
    /// Where the result of a check goes; nil if the app carries it out itself, or if the store is
    /// unavailable. Throws `DecisionError`.
    func target(
        of question: DecisionRequest, app: DecisionApp
    ) async throws -> AuthorizationResponseTarget? {
        guard let asked = question.challenge else { return nil }
        guard settings.hasPage, let issuer = settings.ownIssuer else {
            throw DecisionError.invalid(
                "/challenge", "this installation has no page that carries out checks")
        }
        guard asked.state.map(AuthenticationRequestReader.isState) ?? true else {
            throw DecisionError.invalid(
                "/challenge/state",
                "must be at most \(AuthenticationRequestReader.maximumState) octets without control characters"
            )
        }
        guard breaker.isClosed else { return nil }
        let client: AuthorizationClient?
        do {
            client = try await executor.run { [store] in
                try store.openIDClients.authorizationClient(app.clientID)
            }
        } catch let failure as StoreFailure where !failure.isRefusal {
            breaker.failed()
            return nil
        }
        guard let client, client.accepts(asked.redirectURI) else {
            throw DecisionError.invalid(
                "/challenge/redirect_uri", "is not a redirect URI that is registered for the app")
        }
        let target = AuthenticationRequestReader(issuer: issuer).target(
            redirectURI: asked.redirectURI, mode: asked.mode, state: asked.state, client: client)
        guard let target else {
            throw DecisionError.invalid(
                "/challenge/response_mode", "needs a redirect_uri of http or https")
        }
        return target
    }

    /// The link to the check of a decision, which waits for the page from now on; nil if none is
    /// required, or if the page cannot carry out any that is offered.
    func challengeURL(
        _ asking: DecisionContext, _ record: DecisionRecord, _ facts: SignalSource.Facts
    ) async throws -> String? {
        guard let target = asking.target, record.isAsked else { return nil }
        let isUser = facts.history.map { $0.userNumber != nil && !$0.isExternal } ?? false
        let challenges = record.challenges.compactMap(HostedChallenge.init(rawValue:)).filter {
            isUser || !$0.needsUser
        }
        guard !challenges.isEmpty else { return nil }
        let policy = asking.policy.policy
        let check = HostedCheck(
            decisionID: record.id, event: record.event, challenges: challenges,
            effort: policy.challenges.compactMap(\.effort).first ?? PolicyChallenge.standardEffort)
        let subject = isUser ? asking.token?.name ?? asking.question.sub : nil
        let handle = try await executor.run { [store] in
            try store.authorizations.add(
                check, clientID: asking.app.clientID, subject: subject, target: target,
                now: asking.time.seconds)
        }
        return "\(target.issuer)/auth/begin?request=\(handle)"
    }
}
