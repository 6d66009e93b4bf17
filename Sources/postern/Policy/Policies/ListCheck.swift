// Checks before a policy is activated whether the live lists that it names exist.

import Accounts
import Decisions
import RiskPolicy

enum ListCheck {
    /// Refuses a policy that names a list of the installation that does not exist, or that is of another kind. A team's own list
    /// may come later: until then it is empty.
    static func hold(_ policy: Policy, _ store: Store, file: String) throws {
        let faults = try PolicyLists.faults(of: policy, in: store.liveLists)
        guard !faults.isEmpty else { return }
        throw PolicyRefusal(faults.map(\.text), file: file)
    }
}
