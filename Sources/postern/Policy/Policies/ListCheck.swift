// Checks before a policy is activated whether the live lists that it names exist.

import Accounts
import CEL
import Decisions
import RiskPolicy

enum ListCheck {
    /// Refuses a policy that names a list of the installation that does not exist, or that is of another kind. A team's own list
    /// may come later: until then it is empty.
    static func hold(_ policy: Policy, _ store: Store, file: String) throws {
        let faults = try faults(policy, store)
        guard !faults.isEmpty else { return }
        throw PolicyRefusal(faults, file: file)
    }

    /// Lists of the installation that the policy names and that do not exist, or are of another kind: rules that read them match
    /// nothing.
    static func faults(_ policy: Policy, _ store: Store) throws -> [String] {
        guard !policy.liveLists.isEmpty else { return [] }
        let known = try store.liveLists.lists(team: nil)
        return policy.liveLists.filter { !$0.isTeams }.compactMap { list -> String? in
            guard let found = known.first(where: { $0.name == list.name }) else {
                return "there is no list '\(list.name)': postern list create \(list.name) --kind \(list.kind.rawValue)"
            }
            guard found.kind != list.kind else { return nil }
            return "list '\(list.name)' is of kind \(found.kind.rawValue), and the policy declares it as \(list.kind.rawValue)"
        }
    }
}
