// Makes one change of a plan, with the repository that has the rules for it.

import Accounts
import CEL
import Database
import Decisions
import Declaration
import Events
import MailCrypto
import RiskPolicy
import SignIn
import Support

struct DeclarationStep {
    let run: DeclarationRun
    let declaration: Declaration
    /// The store within the run's single transaction.
    let store: Store
    let change: Change

    func take(_ planned: PlannedChange) throws(StoreFailure) {
        let isRemoval = planned.kind == .remove
        switch planned.item {
        case .list(let team, let name):
            if isRemoval { return try remove(list: name, of: team) }
            let lists = team == nil ? declaration.lists : declaration.teams?[team ?? ""]?.lists
            guard let text = lists?[name]?.kind, let kind = LiveListKind(rawValue: text) else {
                throw Self.lost
            }
            try store.liveLists.create(team: team, name: name, kind: kind, change)
        case .policy(let name): try activate(name)
        case .team(let id):
            if isRemoval { return try remove(team: id) }
            guard let team = declaration.teams?[id] else { throw Self.lost }
            let changed = Set(planned.fields.map(\.name))
            if planned.kind == .add || changed.contains(.name) {
                guard let name = team.name else { throw Self.lost }
                if planned.kind == .add {
                    _ = try store.teams.add(id: id, name: name, change)
                } else {
                    try store.teams.rename(id, name: name, change)
                }
            }
            if changed.contains(.signInLevel),
                let level = team.signInLevel.flatMap(SignInLevel.init(rawValue:))
            {
                try store.signInLevels.set(level, team: id, change)
            }
        case .source(let team, let source):
            if isRemoval {
                return try store.sources.remove(
                    team: team, source.source, onlyEnvelope: source.envelope ?? "", change)
            }
            let checked = try store.sources.checked(
                source.source, envelopeDomain: source.envelope, now: change.now)
            try store.sources.add(team: team, checked, change)
        case .app(let team, let id):
            if isRemoval { return try remove(app: id, of: team) }
            guard let app = declaration.teams?[team]?.apps?[id] else { throw Self.lost }
            if planned.kind == .add {
                _ = try store.addApp(
                    team: team, clientID: id, group: app.group, name: app.name.value,
                    algorithm: app.algorithm.flatMap(SignatureAlgorithm.init(rawValue:))
                        ?? ClientSettings.standardAlgorithm,
                    change)
            }
            try set(app, id, team, isNew: planned.kind == .add, Set(planned.fields.map(\.name)))
        case .redirectURI(let team, let app, let uri):
            if isRemoval {
                return try store.clients.removeRedirect(team: team, clientID: app, uri: uri, change)
            }
            try store.clients.addRedirect(team: team, clientID: app, uri: uri, change)
        case .logoutURI(let team, let app, let uri):
            if isRemoval {
                return try store.openIDClients.removeLogoutRedirect(
                    team: team, clientID: app, uri: uri, change)
            }
            _ = try store.openIDClients.addLogoutRedirect(
                team: team, clientID: app, uri: uri, change)
        case .endpoint(let team, let app):
            if isRemoval {
                return try store.endpoints.remove(
                    team: team, app: app, isOfMailAlone: app == nil, change)
            }
            let declared =
                app.map { declaration.teams?[team]?.apps?[$0]?.endpoint }
                ?? declaration.teams?[team]?.endpoint
            guard let endpoint = declared?.value else { throw Self.lost }
            _ = try store.endpoints.set(
                team: team, app: app, url: EndpointURL(endpoint.url),
                allowsHTTP: endpoint.allowsHTTP,
                allowsPrivate: endpoint.allowsPrivate,
                dialect: EventDialect(rawValue: endpoint.dialect), change)
        case .binding(let team, let app):
            let target: PolicyBindingTarget = app.map { .app($0) } ?? .team(team)
            if isRemoval {
                try store.policies.unbind(target, change)
                return
            }
            let declared =
                app.map { declaration.teams?[team]?.apps?[$0]?.policy }
                ?? declaration.teams?[team]?.policy
            guard let name = declared?.value else { throw Self.lost }
            try store.policies.bind(target, to: name, change)
        }
    }

    private static var lost: StoreFailure {
        .permanent(.unexpectedData, "a plan names what is not declared")
    }

    private func set(
        _ app: DeclaredApp, _ id: String, _ team: String, isNew: Bool,
        _ changed: Set<PlannedChange.Field.Name>
    ) throws(StoreFailure) {
        if !isNew, changed.contains(.name) {
            try store.apps.setAppearance(
                team: team, clientID: id, name: app.name.value ?? "", icon: nil, change)
        }
        if !changed.isDisjoint(with: [.isPublic, .algorithm, .backchannelLogoutURI]) {
            var settings = try store.openIDClients.settings(team: team, clientID: id)
            settings.isPublic = app.isPublic ?? settings.isPublic
            settings.algorithm =
                app.algorithm.flatMap(SignatureAlgorithm.init(rawValue:)) ?? settings.algorithm
            if app.backchannelLogoutURI != .unsaid {
                settings.logoutURI = app.backchannelLogoutURI.value
            }
            try store.setClient(settings, team: team, clientID: id, change)
        }
        if changed.contains(.signInLevel),
            let level = app.signInLevel.flatMap(SignInLevel.init(rawValue:))
        {
            try store.signInLevels.set(level, team: team, clientID: id, change)
        }
        if !changed.isDisjoint(with: [.nonceForm, .isNonceRequired]) {
            guard let known = try store.apps.decisionApp(clientID: id) else { throw Self.lost }
            try store.apps.setNonce(
                team: team, clientID: id,
                form: app.nonceForm.flatMap(AppNonceForm.init(rawValue:)) ?? known.nonceForm,
                isRequired: app.isNonceRequired ?? known.isNonceRequired, change)
        }
    }

    private func activate(_ name: String) throws(StoreFailure) {
        guard let declared = declaration.policies?[name] else { throw Self.lost }
        let policy: StoredPolicy
        if let read = run.policies[name] {
            policy = read
        } else {
            policy = try store.policies.policy(hash: declared.hash)
        }
        guard policy.name == name else {
            throw .refused(
                .invalid, "its file says 'policy: \(policy.name)': declare it by that name")
        }
        let lists = try store.liveLists.lists(team: nil)
        for list in run.listsOfPolicies[name] ?? [] where !list.isTeams {
            guard let found = lists.first(where: { $0.name == list.name }) else {
                throw .refused(
                    .unmet,
                    "it reads the list \(list.name), which does not exist: declare it under 'lists'"
                )
            }
            guard found.kind == list.kind else {
                throw .refused(
                    .unmet,
                    "it reads the list \(list.name) as \(list.kind.rawValue), which is of kind \(found.kind.rawValue)"
                )
            }
        }
        let isStatus = name == PolicyKind.statusName
        if isStatus, try !store.policies.arrangement().policies.contains(where: { $0.name == name })
        {
            // Then a rollback has an earlier status policy to return to.
            _ = try store.policies.activate(.builtInStatus, reach: .status, change)
        }
        _ = try store.policies.activate(
            policy, reach: isStatus ? .status : declared.isDefault ? .everyone : .bound, change)
    }

    /// Refuses a removal that also removes other objects, or reports these objects.
    /// - Parameter parts: how many objects of each kind; kinds without any are left out.
    private func take(
        _ what: String, _ parts: [(Int, one: String, many: String)]
    ) throws(StoreFailure) {
        let words = parts.filter { $0.0 > 0 }.map {
            "\(BoundedCount.text($0.0)) \($0.0 == 1 ? $0.one : $0.many)"
        }
        guard let last = words.last else { return }
        let text =
            words.count > 1 ? words.dropLast().joined(separator: ", ") + " and " + last : last
        let isOne = words.count == 1 && parts.contains { $0.0 == 1 }
        let sentence = "\(text) \(isOne ? "goes" : "go") with it"
        guard run.takesDependents else { throw .refused(.unmet, "\(sentence): repeat with --yes") }
        run.tells("\(what): \(sentence)")
    }

    private func remove(team id: String) throws(StoreFailure) {
        let takes = try store.teams.dependents(id)
        try take(
            "team \(id)",
            [
                (takes.accounts, "account", "accounts"),
                (takes.addresses, "relay address", "relay addresses"),
            ])
        try store.teams.remove(id, change)
    }

    private func remove(list name: String, of team: String?) throws(StoreFailure) {
        let entries = try store.liveLists.list(team: team, name: name).entries
        try take("list \(name)", [(Int(entries), "entry", "entries")])
        try store.liveLists.removeList(team: team, name: name, change)
    }

    private func remove(app id: String, of team: String) throws(StoreFailure) {
        let takes = try store.apps.dependents(team: team, clientID: id)
        try take("app \(id)", [(takes.grants, "consent", "consents")])
        try store.apps.remove(team: team, clientID: id, change)
    }
}
