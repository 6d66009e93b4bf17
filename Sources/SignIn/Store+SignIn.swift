// What the store knows of signing in: trusted issuers, our own keys, codes and tokens, and sessions on /me.

import Accounts

extension Store {
    /// Whose identity tokens are trusted.
    package var issuerPolls: IssuerPollRepository { IssuerPollRepository(database: database, sealer: sealer) }
    package var issuers: IssuerRepository { IssuerRepository(database: database) }
    /// The keys that our own identity tokens are signed with.
    package var identityKeys: IdentityKeyRepository { IdentityKeyRepository(database: database, sealer: sealer) }
    /// Apps as OpenID Connect clients.
    package var openIDClients: OpenIDClientRepository { OpenIDClientRepository(database: database, secrets: secrets) }
    /// Requests to the authorization endpoint on their way through the sign-in page.
    package var authorizations: PendingAuthorizations { PendingAuthorizations(database: database, secrets: secrets) }
    /// Codes and tokens, given and taken back.
    package var provider: ProviderRepository {
        ProviderRepository(grants: grants, users: users, inboxes: inboxes, secrets: secrets)
    }
    /// Links by which users sign in on /me, and their sessions.
    package var page: PortalRepository {
        PortalRepository(events: grants.addresses.events, inboxes: inboxes, users: users, secrets: secrets)
    }
    /// Passkeys by which they sign in too.
    package var passkeys: PasskeyRepository { PasskeyRepository(page: page, sealer: sealer) }
}
