-- The installation: settings, the audit, and what running services say of themselves.

CREATE TABLE settings (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
) {clustered};

CREATE TABLE audit (
    id {id},
    at {int} NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
) {strict};
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_subject ON audit (subject);

-- A lease is renewed by work, so a process that hangs loses it. `fence` rises with each holder: the store refuses what an
-- earlier one writes. `beat` rises with each renewal too. `holder` is random; empty: the lease is free.
CREATE TABLE leases (
    name TEXT NOT NULL,
    fence {int} NOT NULL,
    holder TEXT NOT NULL,
    beat {int} NOT NULL,
    PRIMARY KEY (name)
) {clustered};

-- What each running service last said of itself, as JSON; for `postern status`.
CREATE TABLE service_status (
    host TEXT NOT NULL,
    pid {int} NOT NULL,
    updated_at {int} NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (host, pid)
) {clustered};

-- What services counted, minute by minute, so that the last hour survives a restart. `at`: the end of the minute.
-- `counts` is JSON.
CREATE TABLE service_minutes (
    host TEXT NOT NULL,
    pid {int} NOT NULL,
    at {int} NOT NULL,
    counts TEXT NOT NULL,
    PRIMARY KEY (host, pid, at)
) {clustered};
