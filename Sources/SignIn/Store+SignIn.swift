// The store's data for sign-in: trusted issuers, the provider's keys, codes and
// tokens, and sessions on /me.

import Accounts
import Database

extension Store {
    package var issuerPolls: IssuerPollRepository {
        IssuerPollRepository(database: database, sealer: sealer)
    }
    /// The issuers whose identity tokens are trusted.
    package var issuers: IssuerRepository { IssuerRepository(database: database) }
    /// The keys that sign the provider's identity tokens.
    package var identityKeys: IdentityKeyRepository {
        IdentityKeyRepository(database: database, sealer: sealer)
    }
    /// Apps as OpenID Connect clients.
    package var openIDClients: OpenIDClientRepository {
        OpenIDClientRepository(database: database, secrets: secrets)
    }
    /// Requests to the authorization endpoint on their way through the sign-in page.
    package var authorizations: PendingAuthorizations {
        PendingAuthorizations(database: database, secrets: secrets)
    }
    /// Codes and tokens, issued and revoked.
    package var provider: ProviderRepository {
        ProviderRepository(grants: grants, users: users, inboxes: inboxes, secrets: secrets)
    }
    /// The links by which users sign in on /me, and their sessions.
    package var page: PortalRepository {
        PortalRepository(
            events: grants.addresses.events, inboxes: inboxes, users: users, secrets: secrets,
            lifetime: sessions)
    }
    /// Notices to apps about sessions that ended.
    package var logouts: LogoutRepository { LogoutRepository(database: database) }
    /// The passkeys by which users sign in.
    package var passkeys: PasskeyRepository { PasskeyRepository(page: page, sealer: sealer) }

    /// The authenticator apps by which users show a second factor.
    package var authenticators: AuthenticatorRepository {
        AuthenticatorRepository(page: page, sealer: sealer)
    }
    /// The codes of users who lose their second factor.
    package var recoveryCodes: RecoveryCodeRepository { RecoveryCodeRepository(page: page) }
    /// The waits of users who lose their second factor and have no recovery code.
    package var recoveryWaits: RecoveryWaitRepository {
        RecoveryWaitRepository(page: page, authenticators: authenticators)
    }
    /// How surely users must have signed in for teams and apps.
    package var signInLevels: SignInLevelRepository { SignInLevelRepository(database: database) }

    /// Changes an app's registration, and makes keys for its algorithm if there are none. They are
    /// published before they sign, so that clients that fetch the keys now know them.
    package func setClient(
        _ settings: ClientSettings, team: String, clientID: String, _ change: Change
    ) throws(StoreFailure) {
        try prepareKeys(settings.algorithm, change)
        try openIDClients.set(settings, team: team, clientID: clientID, change)
    }

    /// Adds an app, and makes keys for its algorithm if there are none, as `setClient` does.
    package func addApp(
        team: String, clientID: String, group: String?, redirectURIs: [String] = [],
        name: String? = nil, icon: AppIcon? = nil,
        algorithm: SignatureAlgorithm = ClientSettings.standardAlgorithm, _ change: Change
    ) throws(StoreFailure) -> App {
        let app = try apps.add(
            team: team, clientID: clientID, group: group, redirectURIs: redirectURIs, name: name,
            icon: icon,
            identityTokenAlgorithm: algorithm.rawValue, change)
        try prepareKeys(algorithm, change)
        return app
    }

    private func prepareKeys(_ algorithm: SignatureAlgorithm, _ change: Change) throws(StoreFailure)
    {
        guard algorithm == .rs256, try !identityKeys.algorithms().contains(.rs256) else { return }
        let keys: (NewIdentityKey, NewIdentityKey)
        do {
            keys = (try NewIdentityKey.generate(.rs256), try NewIdentityKey.generate(.rs256))
        } catch {
            throw .temporary(.resources, "no key could be made: \(error)")
        }
        _ = try identityKeys.install(active: keys.0, next: keys.1, change)
    }
}
