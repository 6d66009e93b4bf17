-- Migration 60: what receivers report of mail in the name of relay domains (RFC 9990). Times are in seconds since 1970.
-- `reporter` is the domain that is proved to have written the report, `address` a host that sent. A row of sources is what came
-- out alike.

CREATE TABLE aggregate_reports (
    id {id},
    domain TEXT NOT NULL,
    reporter TEXT NOT NULL,
    identifier TEXT NOT NULL,
    begins_at {int} NOT NULL,
    ends_at {int} NOT NULL,
    received_at {int} NOT NULL,
    passed {int} NOT NULL,
    failed {int} NOT NULL,
    UNIQUE (reporter, identifier, domain)
) {strict};
CREATE INDEX aggregate_reports_received ON aggregate_reports (received_at);

CREATE TABLE aggregate_sources (
    report_number {int} NOT NULL REFERENCES aggregate_reports (id) ON DELETE CASCADE,
    address TEXT NOT NULL,
    passes_dkim {int} NOT NULL,
    passes_spf {int} NOT NULL,
    disposition TEXT NOT NULL,
    messages {int} NOT NULL,
    PRIMARY KEY (report_number, address, passes_dkim, passes_spf, disposition)
) {clustered};
