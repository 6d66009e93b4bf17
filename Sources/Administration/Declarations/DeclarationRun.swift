// Applies a declaration: normalizes it, compares it with the store, and makes the
// changes in one transaction.

import Accounts
import CEL
import Database
import Decisions
import Declaration
import Events
import RiskPolicy
import SignIn

/// The inputs of a run in addition to the store.
package struct DeclarationRun {
    /// Checked policies from folders, by name: the policy that each name should refer to.
    package var policies: [String: StoredPolicy]
    /// The live lists that each policy declares.
    package var listsOfPolicies: [String: [LiveListName]]
    package var prunes: Bool
    /// Whether the dependents of a removed team or app, such as accounts, may be removed with it.
    package var takesDependents: Bool
    /// Called with a text for each removal that also removes other objects.
    package var tells: (String) -> Void = { _ in }
    /// File and line of a declared item, for refusals.
    package var place: (DeclaredItem) -> String? = { _ in nil }

    package init(
        policies: [String: StoredPolicy] = [:], listsOfPolicies: [String: [LiveListName]] = [:],
        prunes: Bool = false,
        takesDependents: Bool = false
    ) {
        (self.policies, self.listsOfPolicies) = (policies, listsOfPolicies)
        (self.prunes, self.takesDependents) = (prunes, takesDependents)
    }

    /// The declaration in the store's form, and the parts that the store would not accept.
    package func normalized(
        _ declaration: Declaration, in store: Store, now: Int64
    ) -> (declaration: Declaration, faults: [PlanFault]) {
        var result = declaration
        var faults: [PlanFault] = []
        func checked<T>(_ item: DeclaredItem, _ body: () throws(StoreFailure) -> T) -> T? {
            do throws(StoreFailure) { return try body() } catch {
                faults.append(PlanFault(item: item, message: error.message))
                return nil
            }
        }
        for (name, policy) in declaration.policies ?? [:] {
            if let stored = policies[name] {
                result.policies?[name]?.hash = stored.hash
            } else if let hash = checked(
                .policy(name),
                { () throws(StoreFailure) in try store.policies.resolve(policy.hash) })
            {
                result.policies?[name]?.hash = hash
            }
        }
        for (id, team) in declaration.teams ?? [:] {
            if let sources = team.sources {
                var normal: Set<DeclaredSource> = []
                for source in sources.sorted() {
                    let item = DeclaredItem.source(team: id, source)
                    let found = checked(item) { () throws(StoreFailure) in
                        try store.sources.checked(
                            source.source, envelopeDomain: source.envelope, now: now)
                    }
                    guard let found else { continue }
                    if !normal.insert(DeclaredSource(found.value, envelope: found.envelopeDomain))
                        .inserted
                    {
                        faults.append(
                            PlanFault(
                                item: item, message: "it is declared twice, in different spellings")
                        )
                    }
                }
                result.teams?[id]?.sources = normal
            }
            func endpoint(
                _ declared: Declared<DeclaredEndpoint>, app: String?
            ) -> Declared<DeclaredEndpoint> {
                guard case .some(var endpoint) = declared else { return declared }
                let item = DeclaredItem.endpoint(team: id, app: app)
                if let url = checked(
                    item, { () throws(StoreFailure) in try EndpointURL(endpoint.url) })
                {
                    if !url.isSecure, !endpoint.allowsHTTP {
                        faults.append(
                            PlanFault(item: item, message: "events are sent only over https"))
                    }
                    endpoint.url = url.description
                }
                return .some(endpoint)
            }
            result.teams?[id]?.endpoint = endpoint(team.endpoint, app: nil)
            for (clientID, app) in team.apps ?? [:] {
                result.teams?[id]?.apps?[clientID]?.endpoint = endpoint(app.endpoint, app: clientID)
                for uri in app.redirectURIs ?? [] {
                    _ = checked(.redirectURI(team: id, app: clientID, uri)) {
                        () throws(StoreFailure) in
                        try RedirectURI.checked(uri)
                    }
                }
                for uri in app.logoutURIs ?? [] {
                    _ = checked(.logoutURI(team: id, app: clientID, uri)) {
                        () throws(StoreFailure) in
                        try RedirectURI.checked(uri)
                    }
                }
            }
        }
        return (result, faults.sorted { "\($0.item)" < "\($1.item)" })
    }

    /// Plans and makes the changes in one transaction. Changes nothing if the plan has faults, or
    /// if any change is refused.
    /// - Parameter declaration: in normalized form.
    package func apply(
        _ declaration: Declaration, to store: Store, _ change: Change
    ) throws(StoreFailure) -> Plan {
        let id = String(try SecretHash.newToken().prefix(8))
        return try store.changeAsOne { store throws(StoreFailure) in
            try run(
                declaration, store, Change(actor: "\(change.actor) apply:\(id)", now: change.now),
                id)
        }
    }

    /// As `apply`, but none of the changes remain.
    package func rehearse(
        _ declaration: Declaration, on store: Store, _ change: Change
    ) throws(StoreFailure) -> Plan {
        try store.rehearse { store throws(StoreFailure) in
            try run(declaration, store, change, "rehearsal")
        }
    }

    private func run(
        _ declaration: Declaration, _ store: Store, _ change: Change, _ id: String
    ) throws(StoreFailure) -> Plan {
        let plan = Plan(desired: declaration, present: try store.presentState(), prunes: prunes)
        guard plan.faults.isEmpty, !plan.changes.isEmpty else { return plan }
        // One audit line for the whole run; the lines of its parts name it in their actor.
        try store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.audit(
                change, "declaration.apply", "apply:\(id)",
                "\(plan.count(.add)) added, \(plan.count(.change)) changed, \(plan.count(.remove)) removed"
            )
        }
        let step = DeclarationStep(
            run: self, declaration: declaration, store: store, change: change)
        for planned in plan.steps {
            do throws(StoreFailure) { try step.take(planned) } catch {
                guard case .refused(let code) = error.code else { throw error }
                throw .refused(
                    code,
                    "\(place(planned.item).map { "\($0): " } ?? "")\(planned.item): \(error.message)"
                )
            }
        }
        return plan
    }
}
