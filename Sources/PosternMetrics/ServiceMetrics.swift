// Every metric of the service, in one place. No label contains an address, an identifier of a user
// or a team, or anything from a message.

/// The metrics of `postern serve`.
package final class ServiceMetrics: Sendable {
    package let registry = MetricsRegistry()

    /// `direction`: forward, reply, report, answer (to a verification), operator. `outcome`:
    /// relayed, discarded, refused, deferred.
    package let messages: Family<Counter>
    /// `reason`: the fixed word in the log (`docs/OPERATING-REFUSALS.md`).
    package let refusals: Family<Counter>
    /// `stage`: rcpt, header, body, message.
    package let milterSeconds: Family<Histogram>
    /// Copies of messages to several users. `outcome`: handed_over, refused, failed.
    package let copies: Family<Counter>
    /// Replies in which the leak check found an inbox.
    package let leakIncidents: Counter
    /// Forwards relayed with links in them that bypass the relay.
    package let linksLeft: Counter
    /// Refused messages of others to an address that only its team was given. `proof`: signature,
    /// none.
    package let usesByOthers: Family<Counter>
    /// `type`: of the record. `result`: answer, none, failure.
    package let dnsQueries: Family<Counter>
    package let dnsSeconds: Family<Histogram>
    /// `route`: a pattern. `method`, `status`.
    package let httpRequests: Family<Counter>
    package let httpSeconds: Family<Histogram>
    /// `outcome`: allow, require_verification.
    package let decisions: Family<Counter>
    /// `rule`: of the active policy.
    package let decisionRules: Family<Counter>
    /// `rule`: of the active policy, or the kind of a challenge.
    package let decisionErrors: Family<Counter>
    /// `trouble`: ignored_context, invalid_context; `name`: the first fifty different names.
    package let decisionContext: Family<Counter>
    /// Seconds since the oldest undelivered event was created; 0 if there is none.
    package let outboxAge: Gauge
    package let outboxSize: Gauge
    /// Events that Postern gave up.
    package let outboxParked: Gauge
    /// Messages in Postfix's queue for addresses at a relay domain, which Postfix cannot deliver;
    /// -1 if unknown.
    package let parkedMessages: Gauge
    /// Whether the store accepted the last change: 1 if it did, 0 if not, for example on a full
    /// disk.
    package let storeWritable: Gauge
    /// `reason`: conflict, deadlock, lock, idle, alone (`WriterWait`).
    package let storeWriterWaits: Family<Counter>
    /// Sessions of all hosts that wait for a lock of the database's server; seconds of the longest
    /// wait; deadlocks since the server's statistics were reset. 0 for SQLite.
    package let storeLockWaiters, storeLockSeconds, storeDeadlocks: Gauge
    /// `server`: standby, primary.
    package let listingReads: Family<Counter>
    /// Seconds by which the standby for listings is behind; -1 if there is none, or it is away.
    package let replicaLag: Gauge
    /// Seconds since 1970 at which the certificate of the HTTP API ends; 0 if it has none.
    package let certificateEnd: Gauge
    /// `outcome`: done, refused.
    package let reloads: Family<Counter>
    /// `result`: delivered, retried, parked.
    package let events: Family<Counter>

    package init(version: String) {
        let info = registry.gauge(
            "postern_build_info", "Always 1; the label is the running version.", labels: ["version"]
        )
        info(version).set(1)
        messages = registry.counter(
            "postern_messages_total", "Messages at the end of data.",
            labels: ["direction", "outcome"])
        refusals = registry.counter(
            "postern_refusals_total", "Recipients and messages refused or deferred.",
            labels: ["reason"])
        milterSeconds = registry.histogram(
            "postern_milter_stage_seconds", "Time until Postfix got the response.",
            labels: ["stage"])
        copies = registry.counter(
            "postern_copies_total", "Copies of messages to several users, by outcome.",
            labels: ["outcome"])
        leakIncidents = registry.counter(
            "postern_leak_incidents_total", "Replies in which the leak check found an inbox.")()
        linksLeft = registry.counter(
            "postern_links_left_total", "Forwards with mailto links that bypass the relay.")()
        usesByOthers = registry.counter(
            "postern_uses_by_others_total",
            "Refused messages of others to an address that only its team was given.",
            labels: ["proof"])
        dnsQueries = registry.counter(
            "postern_dns_queries_total", "DNS queries, including cached ones.",
            labels: ["type", "result"])
        dnsSeconds = registry.histogram(
            "postern_dns_query_seconds", "Time of a DNS query.", labels: ["type"])
        httpRequests = registry.counter(
            "postern_http_requests_total", "HTTP requests.", labels: ["route", "method", "status"])
        httpSeconds = registry.histogram(
            "postern_http_request_seconds", "Time until the response to an HTTP request.",
            labels: ["route"])
        decisions = registry.counter(
            "postern_decisions_total", "Risk decisions.", labels: ["outcome"])
        decisionRules = registry.counter(
            "postern_decision_rules_total", "Rules that decided.", labels: ["rule"])
        decisionErrors = registry.counter(
            "postern_decision_errors_total",
            "Rules and challenges whose condition ended in an error.", labels: ["rule"])
        decisionContext = registry.counter(
            "postern_decision_context_total",
            "Requests with context that the policy does not declare (ignored_context) or cannot use (invalid_context).",
            labels: ["trouble", "name"])
        outboxAge = registry.gauge(
            "postern_outbox_oldest_seconds", "Age of the oldest event that waits to be delivered.")()
        outboxSize = registry.gauge("postern_outbox_events", "Events that wait to be delivered.")()
        outboxParked = registry.gauge(
            "postern_outbox_parked_events",
            "Events that were given up, and can be sent again with postern event retry.")()
        certificateEnd = registry.gauge(
            "postern_http_certificate_not_after_seconds",
            "End of validity of the HTTP API's certificate, in seconds since 1970; 0: it has none.")()
        storeWritable = registry.gauge(
            "postern_store_writable",
            "Whether the store accepted the last change: 1, or 0, for example on a full disk.")()
        storeWritable.set(1)
        storeWriterWaits = registry.counter(
            "postern_store_writer_waits_total",
            "Changes of this host that ran again, or alone. conflict, deadlock, lock, idle: lost against others; alone: all others waited.",
            labels: ["reason"])
        storeLockWaiters = registry.gauge(
            "postern_store_lock_waiters",
            "Sessions of all hosts that wait for a lock of PostgreSQL at this moment.")()
        storeLockSeconds = registry.gauge(
            "postern_store_lock_wait_seconds",
            "How long the longest of them has been waiting.")()
        storeDeadlocks = registry.gauge(
            "postern_store_deadlocks",
            "Deadlocks of the database since PostgreSQL's statistics were reset.")()
        listingReads = registry.counter(
            "postern_listing_reads_total",
            "Listings and reports of this host, by the server that answered.", labels: ["server"])
        replicaLag = registry.gauge(
            "postern_replica_lag_seconds",
            "Seconds by which the standby of database_replica is behind; -1: there is none, or it is away."
        )()
        replicaLag.set(-1)
        parkedMessages = registry.gauge(
            "postern_parked_messages",
            "Messages in Postfix's queue for addresses at a relay domain, where nothing is delivered; -1: unknown."
        )()
        parkedMessages.set(-1)
        events = registry.counter(
            "postern_events_total", "Attempts to deliver an event.", labels: ["result"])
        reloads = registry.counter(
            "postern_reloads_total", "Reloads of the configuration (SIGHUP).", labels: ["outcome"])
        // Metrics that an alert uses must exist before the first event.
        for direction in ["forward", "reply", "report", "answer", "operator"] {
            for outcome in ["relayed", "discarded", "refused", "deferred"] {
                _ = messages(direction, outcome)
            }
        }
        for stage in ["rcpt", "header", "body", "message"] { _ = milterSeconds(stage) }
        for outcome in ["done", "refused"] { _ = reloads(outcome) }
        for reason in ["conflict", "deadlock", "lock", "idle", "alone"] {
            _ = storeWriterWaits(reason)
        }
        for server in ["standby", "primary"] { _ = listingReads(server) }
        for proof in ["signature", "none"] { _ = usesByOthers(proof) }
        for outcome in ["allow", "require_verification"] { _ = decisions(outcome) }
    }

    /// Messages with an outcome, over all directions.
    package func messageCount(_ outcome: String) -> Int {
        messages.all.filter { $0.values.last == outcome }.reduce(0) { $0 + $1.metric.count }
    }
    /// Messages in a direction with an outcome.
    package func messageCount(_ direction: String, _ outcome: String) -> Int {
        messages(direction, outcome).count
    }
}
