// Faults that are not visible in a single change: a declaration refers to items that do not exist.

import CEL
import RiskPolicy

struct PlanCheck {
    let desired: Declaration
    let present: Declaration
    /// The items to be removed.
    let removed: Set<DeclaredItem>

    var faults: [PlanFault] {
        var faults: [PlanFault] = []
        let policies = Set((desired.policies ?? [:]).keys).union((present.policies ?? [:]).keys)
        let defaults = (desired.policies ?? [:]).filter(\.value.isDefault).keys.sorted()
        for name in defaults.dropFirst() {
            faults.append(
                PlanFault(
                    item: .policy(name),
                    message: "\(defaults[0]) is the default too, and there is one"))
        }
        if desired.policies?[PolicyKind.statusName]?.isDefault == true {
            faults.append(
                PlanFault(
                    item: .policy(PolicyKind.statusName),
                    message: "it gives users their status, and has no 'default'"))
        }
        for (id, team) in (desired.teams ?? [:]).sorted(by: { $0.key < $1.key }) {
            faults += self.team(id, team)
            for (app, name) in [(nil, team.policy)]
                + (team.apps ?? [:]).sorted(by: { $0.key < $1.key }).map({
                    ($0.key, $0.value.policy)
                })
            {
                guard let name = name.value else { continue }
                let item = DeclaredItem.binding(team: id, app: app)
                if name == PolicyKind.statusName {
                    faults.append(
                        PlanFault(
                            item: item, message: "\(name) decides for everyone, and cannot be bound"
                        ))
                } else if !policies.contains(name) {
                    faults.append(
                        PlanFault(
                            item: item,
                            message:
                                "there is no policy \(name)\(suggestion(for: name, among: Array(policies)))"
                        ))
                }
            }
        }
        return faults
    }

    private func team(_ id: String, _ team: DeclaredTeam) -> [PlanFault] {
        var faults: [PlanFault] = []
        let known = (present.teams?[id]?.apps ?? [:]).filter {
            !removed.contains(.app(team: id, $0.key))
        }
        let apps = known.merging(team.apps ?? [:]) { $1 }
        let primaries = apps.filter { $0.value.group == nil }.keys
        for (clientID, app) in (team.apps ?? [:]).sorted(by: { $0.key < $1.key }) {
            let item = DeclaredItem.app(team: id, clientID)
            if let other = owner(of: clientID, besides: id) {
                faults.append(
                    PlanFault(
                        item: item,
                        message:
                            "team \(other) has an app of this client_id: see postern transfer start"
                    ))
            }
            guard let group = app.group else { continue }
            if !primaries.contains(group) {
                faults.append(
                    PlanFault(
                        item: item,
                        message:
                            "the team has no primary app \(group)\(suggestion(for: group, among: Array(primaries)))"
                    ))
            }
            if app.endpoint != .unsaid {
                faults.append(
                    PlanFault(
                        item: .endpoint(team: id, app: clientID),
                        message: "events go to its group: declare it at app \(group)"))
            }
        }
        if team.endpoint.value != nil, team.endpoint != present.teams?[id]?.endpoint, !apps.isEmpty
        {
            faults.append(
                PlanFault(
                    item: .endpoint(team: id, app: nil),
                    message: "the team has apps: declare it at a primary app"))
        }
        return faults
    }

    /// Another team that has the app and keeps it, or to which the files assign it.
    private func owner(of clientID: String, besides team: String) -> String? {
        let has = (present.teams ?? [:]).filter { id, other in
            id != team && other.apps?[clientID] != nil
                && !removed.contains(.app(team: id, clientID))
                && !removed.contains(.team(id))
        }
        let wants = (desired.teams ?? [:]).filter {
            $0.key != team && $0.value.apps?[clientID] != nil
        }
        return has.keys.min() ?? wants.keys.min()
    }
}
