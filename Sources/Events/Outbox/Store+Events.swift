// The store's data about events: endpoints, waiting events, and the process that delivers.

import Accounts

extension Store {
    package var endpoints: EndpointRepository {
        EndpointRepository(database: database, signal: outboxSignal)
    }
    package var outbox: OutboxRepository {
        OutboxRepository(database: database, signal: outboxSignal, streams: streams)
    }
    /// Streams of the Shared Signals Framework.
    package var streams: StreamRepository {
        StreamRepository(database: database, sealer: sealer, signal: outboxSignal)
    }
    /// The leases, which decide which host delivers events.
    package var leases: LeaseRepository { LeaseRepository(database: database) }
}
