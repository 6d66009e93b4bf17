// The outgoing identities of postern.yaml, as Postfix needs them.

import PosternConfiguration
import PostfixSetup
import RelayCore

extension Configuration {
    /// In the order of names.
    package var outgoingServices: [OutgoingService] {
        let classes = OutgoingIdentity.classes(of: outgoingIdentities)
        return outgoingIdentities.compactMap { identity in
            classes[identity.name].map {
                OutgoingService(
                    name: identity.name.text, expression: $0.expression, address: identity.address,
                    address6: identity.address6, heloName: identity.heloName)
            }
        }
    }
}
