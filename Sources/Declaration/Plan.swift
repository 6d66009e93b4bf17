// The changes that bring an installation to its declared state.

/// One change of a plan.
package struct PlannedChange: Sendable, Hashable {
    package enum Kind: String, Sendable, Hashable { case add = "+", change = "~", remove = "-" }

    /// The difference in a field, for people.
    package struct Field: Sendable, Hashable {
        package enum Name: String, Sendable {
            case name, group, kind, url, dialect, hash
            case isPublic = "public"
            case algorithm = "id_token_algorithm"
            case signInLevel = "sign_in"
            case nonceForm = "nonce form"
            case isNonceRequired = "nonce required"
            case backchannelLogoutURI = "backchannel_logout_uri"
            case allowsPrivate = "allow_private"
            case isDefault = "default"
        }

        package let name: Name
        /// Nil for none.
        package let before: String?
        package let after: String?
    }

    package let kind: Kind
    package let item: DeclaredItem
    package let fields: [Field]
}

/// A conflict between a declaration and the present state.
package struct PlanFault: Sendable, Hashable {
    package let item: DeclaredItem
    /// In one line, without the item.
    package let message: String

    package init(item: DeclaredItem, message: String) {
        (self.item, self.message) = (item, message)
    }
}

/// The changes from the present to the declared state. Deterministic.
package struct Plan: Sendable, Hashable {
    /// In display order: lists, policies, teams, each by name.
    package let changes: [PlannedChange]
    /// Items that exist but are not in the files, and are kept.
    package let kept: [DeclaredItem]
    package let faults: [PlanFault]

    /// Compares two states.
    /// - Parameters:
    ///   - desired: in the store's normal form.
    ///   - present: the whole present state.
    ///   - prunes: whether to remove items that are missing from a section in the files.
    package init(desired: Declaration, present: Declaration, prunes: Bool) {
        var planner = Planner(desired: desired, present: present)
        planner.plan()
        changes = prunes ? planner.changes : planner.changes.filter { $0.kind != .remove }
        kept = prunes ? [] : planner.changes.filter { $0.kind == .remove }.map(\.item)
        var faults = planner.faults
        faults +=
            PlanCheck(
                desired: desired, present: present, removed: Set(prunes ? planner.removed : [])
            ).faults
        self.faults = faults
    }

    package func count(_ kind: PlannedChange.Kind) -> Int { changes.count { $0.kind == kind } }

    /// The changes in the order in which they depend on each other: first removals, then items that
    /// others refer to, then the rest.
    package var steps: [PlannedChange] {
        changes.enumerated().sorted {
            ($0.element.phase, $0.offset) < ($1.element.phase, $1.offset)
        }.map(\.element)
    }
}

extension PlannedChange {
    /// An app in a group is removed before its primary app and added after it.
    fileprivate var phase: Int {
        let isGrouped = fields.contains { $0.name == .group }
        switch (kind, item) {
        case (.remove, .binding): return 0
        case (.remove, .source), (.remove, .redirectURI), (.remove, .logoutURI),
            (.remove, .endpoint):
            return 1
        case (.remove, .app): return isGrouped ? 2 : 3
        case (.remove, .team): return 5
        case (.remove, .policy): return 5
        // A policy that is being replaced may refer to it until the replacement.
        case (.remove, .list(let team, _)): return team == nil ? 10 : 4
        case (_, .list(nil, _)): return 6
        case (_, .team): return 7
        case (_, .list): return 8
        case (_, .policy): return 9
        case (_, .app): return isGrouped ? 12 : 11
        case (_, .source), (_, .redirectURI), (_, .logoutURI): return 13
        case (_, .endpoint): return 14
        case (_, .binding): return 15
        }
    }
}

/// Walks both states.
private struct Planner {
    let desired: Declaration
    let present: Declaration
    var changes: [PlannedChange] = []
    var faults: [PlanFault] = []

    init(desired: Declaration, present: Declaration) {
        (self.desired, self.present) = (desired, present)
    }

    var removed: [DeclaredItem] { changes.filter { $0.kind == .remove }.map(\.item) }

    mutating func plan() {
        lists(desired.lists, present.lists, team: nil)
        if let policies = desired.policies {
            for (name, policy) in policies.sorted(by: { $0.key < $1.key }) {
                let was = present.policies?[name]
                let becomesDefault = policy.isDefault && was?.isDefault != true
                compare(
                    .policy(name), isNew: was == nil,
                    [
                        (was?.hash == policy.hash
                            ? nil
                            : (.hash, was.map { Self.short($0.hash) }, Self.short(policy.hash))),
                        becomesDefault ? (.isDefault, was.map { _ in "no" }, "yes") : nil,
                    ])
            }
        }
        guard let teams = desired.teams else { return }
        let known = present.teams ?? [:]
        for id in Set(teams.keys).union(known.keys).sorted() {
            if let team = teams[id] {
                self.team(id, team, known[id])
            } else {
                add(.remove, .team(id))
            }
        }
    }

    private mutating func team(_ id: String, _ team: DeclaredTeam, _ was: DeclaredTeam?) {
        if was == nil, team.name == nil {
            faults.append(PlanFault(item: .team(id), message: "a new team needs a 'name'"))
        }
        compare(
            .team(id), isNew: was == nil,
            [
                difference(.name, was?.name, team.name),
                difference(.signInLevel, was?.signInLevel, team.signInLevel),
            ])
        binding(team: id, app: nil, team.policy, was?.policy)
        if let sources = team.sources {
            let before = was?.sources ?? []
            for source in sources.union(before).sorted()
            where sources.contains(source) != before.contains(source) {
                add(sources.contains(source) ? .add : .remove, .source(team: id, source))
            }
        }
        lists(team.lists, was?.lists, team: id)
        endpoint(team: id, app: nil, team.endpoint, was?.endpoint)
        guard let apps = team.apps else { return }
        let known = was?.apps ?? [:]
        for clientID in Set(apps.keys).union(known.keys).sorted() {
            if let app = apps[clientID] {
                self.app(id, clientID, app, known[clientID])
            } else {
                let fields = known[clientID]?.group.map {
                    [PlannedChange.Field(name: .group, before: $0, after: nil)]
                }
                changes.append(
                    PlannedChange(
                        kind: .remove, item: .app(team: id, clientID), fields: fields ?? []))
            }
        }
    }

    private mutating func app(_ team: String, _ id: String, _ app: DeclaredApp, _ was: DeclaredApp?)
    {
        let item = DeclaredItem.app(team: team, id)
        func difference(
            _ key: PlannedChange.Field.Name, _ before: Declared<String>?, _ now: Declared<String>
        ) -> (PlannedChange.Field.Name, String?, String?)? {
            switch now {
            case .unsaid: nil
            case .none: self.difference(key, before?.value, isSaid: true, nil)
            case .some(let text): self.difference(key, before?.value, text)
            }
        }
        if let was, was.group != app.group {
            let now = was.group.map { "in the group of \($0)" } ?? "a primary app"
            faults.append(PlanFault(item: item, message: "it is \(now), which cannot be changed"))
        }
        let word = { (flag: Bool?) in flag.map { $0 ? "yes" : "no" } }
        compare(
            item, isNew: was == nil,
            [
                difference(.name, was?.name, app.name),
                was == nil ? self.difference(.group, nil, app.group) : nil,
                self.difference(.isPublic, word(was?.isPublic), word(app.isPublic)),
                self.difference(.algorithm, was?.algorithm, app.algorithm),
                self.difference(.signInLevel, was?.signInLevel, app.signInLevel),
                self.difference(.nonceForm, was?.nonceForm, app.nonceForm),
                self.difference(
                    .isNonceRequired, word(was?.isNonceRequired), word(app.isNonceRequired)),
                difference(
                    .backchannelLogoutURI, was?.backchannelLogoutURI, app.backchannelLogoutURI),
            ])
        binding(team: team, app: id, app.policy, was?.policy)
        endpoint(team: team, app: id, app.endpoint, was?.endpoint)
        uris(app.redirectURIs, was?.redirectURIs) { .redirectURI(team: team, app: id, $0) }
        uris(app.logoutURIs, was?.logoutURIs) { .logoutURI(team: team, app: id, $0) }
    }

    private mutating func uris(
        _ wanted: Set<String>?, _ before: Set<String>?, _ item: (String) -> DeclaredItem
    ) {
        guard let wanted else { return }
        let before = before ?? []
        for uri in wanted.symmetricDifference(before).sorted() {
            add(wanted.contains(uri) ? .add : .remove, item(uri))
        }
    }

    private mutating func lists(
        _ wanted: [String: DeclaredList]?, _ known: [String: DeclaredList]?, team: String?
    ) {
        guard let wanted else { return }
        let known = known ?? [:]
        for name in Set(wanted.keys).union(known.keys).sorted() {
            let item = DeclaredItem.list(team: team, name)
            switch (wanted[name], known[name]) {
            case (let list?, nil): compare(item, isNew: true, [(.kind, nil, list.kind)])
            case (nil, _): add(.remove, item)
            case (let list?, let was?):
                guard list.kind != was.kind else { continue }
                faults.append(
                    PlanFault(
                        item: item,
                        message:
                            "it is of kind \(was.kind), which cannot be changed: remove it first"))
            }
        }
    }

    private mutating func endpoint(
        team: String, app: String?, _ wanted: Declared<DeclaredEndpoint>,
        _ known: Declared<DeclaredEndpoint>?
    ) {
        let item = DeclaredItem.endpoint(team: team, app: app)
        let was = known?.value
        switch wanted {
        case .unsaid: return
        case .none: if was != nil { add(.remove, item) }
        case .some(let endpoint):
            compare(
                item, isNew: was == nil,
                [
                    difference(.url, was?.url, endpoint.url),
                    difference(
                        .dialect, was?.dialect ?? DeclaredEndpoint.dialects[0], endpoint.dialect),
                    endpoint.allowsPrivate == (was?.allowsPrivate ?? false)
                        ? nil
                        : (
                            .allowsPrivate, was.map { $0.allowsPrivate ? "yes" : "no" },
                            endpoint.allowsPrivate ? "yes" : "no"
                        ),
                ])
        }
    }

    private mutating func binding(
        team: String, app: String?, _ wanted: Declared<String>, _ known: Declared<String>?
    ) {
        let item = DeclaredItem.binding(team: team, app: app)
        let was = known?.value
        switch wanted {
        case .unsaid: return
        case .none: if was != nil { add(.remove, item) }
        case .some(let name): compare(item, isNew: was == nil, [difference(.name, was, name)])
        }
    }

    // MARK: Parts

    private mutating func add(_ kind: PlannedChange.Kind, _ item: DeclaredItem) {
        changes.append(PlannedChange(kind: kind, item: item, fields: []))
    }

    private mutating func compare(
        _ item: DeclaredItem, isNew: Bool, _ fields: [(PlannedChange.Field.Name, String?, String?)?]
    ) {
        let fields = fields.compactMap(\.self).map {
            PlannedChange.Field(name: $0.0, before: $0.1, after: $0.2)
        }
        guard isNew || !fields.isEmpty else { return }
        changes.append(PlannedChange(kind: isNew ? .add : .change, item: item, fields: fields))
    }

    /// A value that is not stated makes no difference.
    private func difference(
        _ name: PlannedChange.Field.Name, _ before: String?, isSaid: Bool = false, _ after: String?
    ) -> (PlannedChange.Field.Name, String?, String?)? {
        guard after != nil || isSaid, before != after else { return nil }
        return (name, before, after)
    }

    private static func short(_ hash: String) -> String {
        String(hash.drop { $0 != ":" }.dropFirst().prefix(12))
    }
}
