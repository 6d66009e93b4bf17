// The store: one database, the keys for its private data, and a repository for each subject. Other
// modules, such as events, sign-in and decisions, add their own repositories (`extension Store`).

import Database
import InternetMessage

/// All data that Postern stores. All calls block; share one value between threads.
///
/// A change and its audit entry are one transaction. Only a change that names an object, or that a
/// person requested, can be refused.
package struct Store: Sendable {
    package let database: any Database
    package let teams: TeamRepository
    package let removals: RemovalRepository
    package let sources: SourceRepository
    package let sourceClaims: SourceClaimRepository
    package let apps: AppRepository
    package let clients: ClientRepository
    package let users: UserRepository
    package let inboxes: InboxRepository
    package let addresses: AddressRepository
    package let accounts: AccountRepository
    package let grants: GrantRepository
    package let transfers: TransferRepository
    package let externalEvents: ExternalEventRepository
    package let tombstones: TombstoneRepository
    /// Raised as soon as a change of this process puts an event into the outbox.
    package let outboxSignal = OutboxSignal()
    /// Changes that endpoints are notified of.
    package let events: AccountEvents
    package let relay: RelayRepository
    package let counters: CounterRepository
    package let bounces: BounceRepository
    package let tokens: StoredTokenRepository
    package let dkimKeys: DKIMKeyRepository
    package let decisionMarks: DecisionMarks
    package let audit: AuditRepository
    package let verifications: InboxConfirmationRepository
    package let apiKeys: APIKeyRepository
    package let rejections: RejectionRepository
    package let complaints: ComplaintRepository
    package let deliveries: DeliveryRepository
    package let aggregateReports: AggregateReportRepository
    package let retention: RetentionRepository
    package let holds: HoldRepository
    package let freezes: FreezeRepository
    package let accountList: AccountListRepository
    /// The keys in use. Another key file takes effect through this holder.
    package let keys: KeyHolder

    // MARK: For the repositories of other modules

    package let sealer: Sealer
    package let index: BlindIndex
    package let secrets: SecretHash
    package let marks: TombstoneMarks
    /// The first one is for new addresses.
    package let relayDomains: [HostName]
    private let providers: ProviderRules
    private let addressLength: Int
    /// How long users stay signed in on the page.
    package let sessions: SessionLifetime

    /// A store over a migrated database.
    /// - Parameters:
    ///   - relayDomains: in lower case; the first one is for new addresses. No inbox and no
    ///     source may be in them.
    ///   - providers: which spellings reach one mailbox.
    ///   - addressLength: characters of a new relay address, 10 … 16.
    ///   - sessions: how long users stay signed in on the page.
    package init(
        database: any Database, keys: KeyRing, relayDomains: [String],
        providers: ProviderRules = .standard,
        addressLength: Int = 10, sessions: SessionLifetime = .standard
    ) {
        self.init(
            database: database, keys: KeyHolder(keys), relayDomains: relayDomains,
            providers: providers,
            addressLength: addressLength, sessions: sessions)
    }

    /// The same, with keys that may change and that other values share.
    package init(
        database: any Database, keys holder: KeyHolder, relayDomains: [String],
        providers: ProviderRules = .standard,
        addressLength: Int = 10, sessions: SessionLifetime = .standard
    ) {
        let keys = holder.current
        self.keys = holder
        let sealer = Sealer(keys: holder)
        let index = BlindIndex(keys: holder, providers: providers)
        let domains = relayDomains.compactMap(HostName.init)
        let secrets = SecretHash(keys: keys.marks)
        let events = AccountEvents(database: database, signal: outboxSignal)
        let marks = TombstoneMarks(keys: keys.marks)
        self.database = database
        (self.providers, self.addressLength, self.sessions) = (providers, addressLength, sessions)
        self.events = events
        (self.sealer, self.index, self.secrets, self.marks, self.relayDomains) = (
            sealer, index, secrets, marks, domains
        )
        accounts = AccountRepository(events: events, marks: marks)
        tombstones = TombstoneRepository(database: database, marks: marks)
        teams = TeamRepository(accounts: accounts)
        removals = RemovalRepository(accounts: accounts)
        sources = SourceRepository(database: database, relayDomains: domains)
        sourceClaims = SourceClaimRepository(
            events: events, sources: sources, secrets: secrets, index: index)
        apps = AppRepository(accounts: accounts)
        clients = ClientRepository(database: database)
        inboxes = InboxRepository(
            events: events, sealer: sealer, index: index, marks: marks, relayDomains: domains)
        users = UserRepository(accounts: accounts, sealer: sealer, inboxes: inboxes)
        addresses = AddressRepository(
            events: events, marks: marks, relayDomains: domains, addressLength: addressLength)
        grants = GrantRepository(addresses: addresses, inboxes: inboxes)
        relay = RelayRepository(database: database, sealer: sealer)
        counters = CounterRepository(database: database)
        bounces = BounceRepository(events: events)
        tokens = StoredTokenRepository(database: database, sealer: sealer)
        dkimKeys = DKIMKeyRepository(database: database, sealer: sealer, relayDomains: domains)
        decisionMarks = DecisionMarks(keys: keys)
        audit = AuditRepository(database: database)
        verifications = InboxConfirmationRepository(
            database: database, inboxes: inboxes, secrets: secrets)
        transfers = TransferRepository(addresses: addresses, accounts: accounts, inboxes: inboxes)
        externalEvents = ExternalEventRepository(accounts: accounts, index: index)
        apiKeys = APIKeyRepository(database: database)
        rejections = RejectionRepository(database: database)
        complaints = ComplaintRepository(events: events)
        deliveries = DeliveryRepository(events: events)
        aggregateReports = AggregateReportRepository(database: database)
        retention = RetentionRepository(database: database)
        holds = HoldRepository(addresses: addresses)
        freezes = FreezeRepository(events: addresses.events)
        accountList = AccountListRepository(database: database)
    }

    /// Runs `body` on a store whose changes form one transaction: committed when `body` returns,
    /// rolled back when it throws. `body` may run again.
    package func changeAsOne<T>(_ body: (Store) throws(StoreFailure) -> T) throws(StoreFailure) -> T
    {
        let result = try database.writeAsOne(.durable) { joined throws(StoreFailure) in
            try body(over(joined))
        }
        outboxSignal.raise()
        return result
    }

    /// Runs `body` on a snapshot of this store. `body` must change nothing.
    package func readAsOne<T>(_ body: (Store) throws(StoreFailure) -> T) throws(StoreFailure) -> T {
        try database.readAsOne { joined throws(StoreFailure) in try body(over(joined)) }
    }

    /// Runs `body` on a store with the contents of this one; none of its changes remain.
    package func rehearse<T>(_ body: (Store) throws(StoreFailure) -> T) throws(StoreFailure) -> T {
        // A transaction, because a rehearsal is short and a copy of the database would cost more.
        try database.rehearsedInTransaction { rehearsal throws(StoreFailure) in
            try body(over(rehearsal))
        }
    }

    private func over(_ database: any Database) -> Store {
        Store(
            database: database, keys: keys, relayDomains: relayDomains.map(\.text),
            providers: providers,
            addressLength: addressLength, sessions: sessions)
    }
}

/// How long a user stays signed in on the page, in seconds.
package struct SessionLifetime: Sendable, Hashable {
    package let total: Int64
    /// The longest time without a visit.
    package let idle: Int64

    package static let standard = SessionLifetime(total: 12 * 3_600, idle: 30 * 60)

    package init(total: Int64, idle: Int64) { (self.total, self.idle) = (total, idle) }
}
