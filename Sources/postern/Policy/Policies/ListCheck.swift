// Checks before an activation that the live lists which a policy names exist.

import Accounts
import Decisions
import RiskPolicy

enum ListCheck {
    /// Refuses a policy that names a list of the installation which does not exist or has another
    /// kind. A team may create its own list later: until then the list is empty.
    static func hold(_ policy: Policy, _ store: Store, file: String) throws {
        let faults = try PolicyLists.faults(of: policy, in: store.liveLists)
        guard !faults.isEmpty else { return }
        throw PolicyRefusal(faults.map(\.text), file: file)
    }
}
