// Whether the live lists that a policy names exist.

import CEL
import Database
import RiskPolicy
import Support

package enum PolicyLists {
    /// Lists of the installation that the policy names and that do not exist, or are of another
    /// kind: rules that read them match nothing. A team may still create its own list.
    package static func faults(
        of policy: Policy, in store: LiveListRepository
    ) throws(StoreFailure) -> [Trouble] {
        guard policy.liveLists.contains(where: { !$0.isTeams }) else { return [] }
        let known = try store.lists(team: nil)
        return policy.liveLists.filter { !$0.isTeams }.compactMap { list -> Trouble? in
            guard let found = known.first(where: { $0.name == list.name }) else {
                return Trouble(
                    "list '\(list.name)' is missing",
                    "run \(.createList, list.name, list.kind.rawValue)")
            }
            guard found.kind != list.kind else { return nil }
            return Trouble(
                "list '\(list.name)' is of kind \(found.kind.rawValue), and the policy declares it as \(list.kind.rawValue)",
                "correct the kind in the policy, or name another list")
        }
    }
}
