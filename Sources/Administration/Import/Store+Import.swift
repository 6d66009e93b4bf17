// The store's access to imports from files.

import Accounts

extension Store {
    package var imports: ImportRepository {
        ImportRepository(
            events: accounts.events, marks: marks, users: users, inboxes: inboxes,
            addresses: addresses, sealer: sealer,
            index: index, relayDomains: relayDomains)
    }
}
