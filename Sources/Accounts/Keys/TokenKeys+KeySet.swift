// The token keys of the key file, as the relay core needs them.

import RelayCore

extension TokenKeys {
    /// The token keys of an installation; nil if they cannot be used.
    package init?(_ set: KeySet) {
        self.init(
            keys: Dictionary(
                set.versions.map { ($0.id, $0.secret) }, uniquingKeysWith: { first, _ in first }),
            active: set.active.id)
    }
}
