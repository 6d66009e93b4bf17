// Tables that are not in the users' download, with the reasons.

/// Tables without data of users, or without data that can be attributed to a user.
enum UserExportTables {
    static let notPersonal: [String: String] = [
        "api_keys": "of teams and operators", "rejections": "of teams; no recipient", "service_status": "of the installation",
        "service_minutes": "of the installation", "used_challenges": "hashes of random numbers",
        "page_repeats": "keyed hashes of forms, and where they led; gone after a moment",
        "aggregate_reports": "of the installation", "aggregate_sources": "of the installation", "policies": "of the installation",
        "policy_names": "of the installation", "policy_team_bindings": "of teams",
        "policy_app_bindings": "of teams", "policy_changes": "of the installation", "policy_hosts": "of the installation",
        "consumed_nonces": "keyed hashes without a user", "upgraded_accounts": "keyed hashes of a team's own accounts",
        "idempotency_keys": "keyed hashes of requests of teams", "verified_signups": "keyed hashes, gone after two days",
        "app_signups": "counts of apps", "issuers": "of the installation", "issuer_keys": "of the installation",
        "identity_keys": "of the installation", "event_endpoints": "of teams", "endpoint_health": "of teams",
        "event_streams": "of teams", "issuer_polls": "of the installation",
        "leases": "of the installation", "given_names": "in the section of accounts",
        "received_events": "hashes of events", "retired_names": "keyed hashes without a user", "app_transfers": "of teams",
        "transfer_subs": "random; of a transfer between teams", "app_redirects": "of teams", "client_keys": "of teams",
        "client_secrets": "of teams", "client_assertions": "keyed hashes of teams' requests", "logout_redirects": "of teams",
        "wrong_codes": "how many wrong codes all browsers entered, by five minutes",
        "pending_requests": "apps' requests, encrypted with a key that only the browser has; gone after an hour",
        "access_tokens": "hashes; gone after an hour",
        "logout_notices": "names that an app has for a user and a session, until it is told", "attested_apps": "of teams",
        "devices": "keyed hashes without a user",
        "device_accounts": "keyed hashes without a user, gone after 90 days",
        "velocity": "keyed hashes without a user, gone with their window",
        "source_claims": "of teams", "source_codes": "keyed hashes of addresses of teams, gone after a day",
        "live_lists": "of teams and operators", "live_list_revision": "of the installation",
        "live_list_entries": "of teams and operators; personal values as keyed hashes",
    ]
}
