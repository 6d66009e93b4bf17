// The present content of the store, in the form of a declaration.

import Accounts
import Database
import Decisions
import Declaration
import Events
import SignIn

extension Store {
    /// Teams with everything that a declaration can contain, lists and
    /// policies; no secrets, keys or users.
    package func presentState() throws(StoreFailure) -> Declaration {
        let arrangement = try policies.arrangement()
        var bindings: [PolicyBindingTarget: String] = [:]
        for binding in arrangement.bindings { bindings[binding.target] = binding.name }
        var teams: [String: DeclaredTeam] = [:]
        for team in try self.teams.all() { teams[team.id] = try declared(team, bindings) }
        var policies: [String: DeclaredPolicy] = [:]
        for policy in arrangement.policies {
            policies[policy.name] = DeclaredPolicy(hash: policy.hash, isDefault: policy.isDefault)
        }
        return Declaration(teams: teams, lists: try declaredLists(team: nil), policies: policies)
    }

    private func declared(
        _ team: Team, _ bindings: [PolicyBindingTarget: String]
    ) throws(StoreFailure) -> DeclaredTeam {
        let redirects = try clients.redirects(team: team.id)
        // Streams belong to their receivers, so they are not declared.
        let endpoints = try self.endpoints.endpoints(team: team.id, isCounted: false).filter {
            $0.dialect != .sharedSignals
        }
        var apps: [String: DeclaredApp] = [:]
        for app in try self.apps.apps(team: team.id) {
            let settings = try openIDClients.settings(team: team.id, clientID: app.clientID)
            let decision = try self.apps.decisionApp(clientID: app.clientID)
            let endpoint =
                app.isPrimary ? endpoints.first { $0.groupNumber == app.group.number } : nil
            apps[app.clientID] = DeclaredApp(
                name: app.name.map { .some($0) } ?? .none,
                group: app.isPrimary ? nil : app.group.primaryClientID,
                isPublic: settings.isPublic, algorithm: settings.algorithm.rawValue,
                signInLevel: try signInLevels.level(team: team.id, clientID: app.clientID).rawValue,
                nonceForm: decision?.nonceForm.rawValue,
                isNonceRequired: decision?.isNonceRequired,
                redirectURIs: Set(redirects[app.clientID] ?? []),
                logoutURIs: Set(try openIDClients.logoutRedirects(clientID: app.clientID)),
                backchannelLogoutURI: settings.logoutURI.map { .some($0) } ?? .none,
                endpoint: endpoint.map { .some(DeclaredEndpoint($0)) } ?? .none,
                policy: bindings[.app(app.clientID)].map { .some($0) } ?? .none)
        }
        let groups = Set(try self.apps.apps(team: team.id).map(\.group.number))
        // Sources that the team proved itself belong to the team, and end with their proof.
        let claimed = Set(try sourceClaims.claims(team: team.id).map(\.value))
        let mailAlone = endpoints.first { $0.groupNumber.map { !groups.contains($0) } ?? false }
        return DeclaredTeam(
            name: team.name,
            sources: Set(
                try sources.sources(team: team.id).filter {
                    $0.envelopeDomain != nil || !claimed.contains($0.value)
                }
                .map { DeclaredSource($0.value, envelope: $0.envelopeDomain) }),
            signInLevel: try signInLevels.level(team: team.id).rawValue, apps: apps,
            lists: try declaredLists(team: team.id),
            endpoint: mailAlone.map { .some(DeclaredEndpoint($0)) } ?? .none,
            policy: bindings[.team(team.id)].map { .some($0) } ?? .none)
    }

    private func declaredLists(team: String?) throws(StoreFailure) -> [String: DeclaredList] {
        var lists: [String: DeclaredList] = [:]
        for list in try liveLists.lists(team: team) {
            lists[list.name] = DeclaredList(kind: list.kind.rawValue)
        }
        return lists
    }
}

extension DeclaredEndpoint {
    fileprivate init(_ endpoint: EventEndpoint) {
        self.init(
            url: endpoint.url.description, allowsHTTP: !endpoint.url.isSecure,
            allowsPrivate: endpoint.allowsPrivate,
            dialect: endpoint.dialect.rawValue)
    }
}
