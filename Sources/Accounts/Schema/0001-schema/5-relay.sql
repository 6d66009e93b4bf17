-- Relayed mail: tokens, counters, refusals, the keys that sign it, and reports about it.

-- Addresses that do not fit into a token.
CREATE TABLE stored_tokens (
    token TEXT NOT NULL,
    purpose TEXT NOT NULL,
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    address_key TEXT NOT NULL,
    address_sealed {bytes} NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (token)
) {clustered};
CREATE INDEX stored_tokens_account ON stored_tokens (account_id);
CREATE INDEX stored_tokens_expiry ON stored_tokens (expires_at);

-- Kinds are those of `CounterKind`.
CREATE TABLE daily_counters (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day {int} NOT NULL,
    kind {int} NOT NULL,
    count {int} NOT NULL,
    PRIMARY KEY (account_id, day, kind)
) {clustered};
CREATE INDEX daily_counters_day ON daily_counters (day);
-- What was counted before the days that `daily_counters` still has: one sum for each account and kind. `last_day`: the last day in it.
CREATE TABLE counter_totals (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    kind {int} NOT NULL,
    count {int} NOT NULL,
    last_day {int} NOT NULL,
    PRIMARY KEY (account_id, kind)
) {clustered};
-- Complaints (kind 21) are few among the counters.
CREATE INDEX daily_counters_complaints ON daily_counters (day) WHERE kind = 21;

-- What may happen once: an automatic note to a correspondent in a day, a bounce for each nonce.
CREATE TABLE once_marks (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL,
    mark {bytes} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (account_id, purpose, mark)
) {clustered};
CREATE INDEX once_marks_expiry ON once_marks (expires_at);

-- Why mail from a team's sources was refused: one row for each hour, source, answer and reason. No recipient, no content.
CREATE TABLE rejections (
    id {id},
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    hour {int} NOT NULL,
    answer TEXT NOT NULL,
    reason TEXT NOT NULL,
    first_at {int} NOT NULL,
    last_at {int} NOT NULL,
    count {int} NOT NULL,
    reference TEXT NOT NULL,
    UNIQUE (team_id, hour, source, answer, reason)
) {strict};
CREATE INDEX rejections_last ON rejections (last_at);

-- What became of forwards: one row for each team, hour (since 1970), family of providers (`ProviderFamily`) and outcome
-- (`DeliveryOutcome`). No recipient.
CREATE TABLE delivery_results (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    hour {int} NOT NULL,
    provider TEXT NOT NULL,
    outcome TEXT NOT NULL,
    count {int} NOT NULL,
    PRIMARY KEY (team_id, hour, provider, outcome)
) {clustered};
CREATE INDEX delivery_results_hour ON delivery_results (hour);

-- Accounts whose user complained about mail of the team (`complaint`), or whose mail the provider refused because of the sender's
-- reputation (`reputation`), once for each day (since 1970). They show how many different users a figure is about.
CREATE TABLE delivery_marks (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    provider TEXT NOT NULL,
    what TEXT NOT NULL CHECK (what IN ('complaint', 'reputation')),
    day {int} NOT NULL,
    PRIMARY KEY (account_id, provider, what, day)
) {clustered};
CREATE INDEX delivery_marks_day ON delivery_marks (day);

-- The same of accounts that were deleted while their user stayed: a team must not end a limit by deleting the accounts that
-- complained.
CREATE TABLE delivery_marks_left (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    provider TEXT NOT NULL,
    what TEXT NOT NULL CHECK (what IN ('complaint', 'reputation')),
    day {int} NOT NULL,
    PRIMARY KEY (team_id, user_id, provider, what, day)
) {clustered};
CREATE INDEX delivery_marks_left_day ON delivery_marks_left (day);
CREATE INDEX delivery_marks_left_user ON delivery_marks_left (user_id);

-- Teams whose mail to a provider is slowed or held, and what an administrator decided. Open without a decision: no row.
-- `cause` and the figures are those of the last step; `decision_until` NULL: until it is lifted.
CREATE TABLE delivery_standings (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    provider TEXT NOT NULL,
    standing TEXT NOT NULL CHECK (standing IN ('open', 'slowed', 'held')),
    since {int} NOT NULL,
    cause TEXT CHECK (cause IN ('complaints', 'refusals')),
    messages {int} NOT NULL,
    events {int} NOT NULL,
    users {int} NOT NULL,
    decision TEXT CHECK (decision IN ('allow', 'hold')),
    decision_until {int},
    decision_reason TEXT,
    PRIMARY KEY (team_id, provider)
) {clustered};

-- Forwards of new hosts (`WarmUp`), by name of the host, identifier of the team and day (since 1970). `deferred`: how often one had
-- to wait.
CREATE TABLE warm_up_counts (
    host TEXT NOT NULL,
    team TEXT NOT NULL,
    day {int} NOT NULL,
    messages {int} NOT NULL,
    deferred {int} NOT NULL,
    PRIMARY KEY (host, day, team)
) {clustered};

-- What providers report about hosts and domains of the relay (`ProviderFigure`), from files. `source`: `ReportSource`. `subject`: a
-- relay domain or the IP address of a host. `day`: since 1970. `report`: identifies the report if several are about one day.
CREATE TABLE provider_figures (
    source TEXT NOT NULL,
    reporter TEXT NOT NULL,
    subject TEXT NOT NULL,
    day {int} NOT NULL,
    name TEXT NOT NULL,
    report TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (source, reporter, subject, day, name, report)
) {clustered};

-- Logs of Postfix, and how many octets of each were counted. `mark`: a hash of the first line.
CREATE TABLE delivery_logs (
    mark {bytes} NOT NULL,
    octets {int} NOT NULL,
    read_at {int} NOT NULL,
    PRIMARY KEY (mark)
) {clustered};

-- For the user's own page: mail to each account that was refused, by day, kind (`UserRefusal`) and the sender's domain.
CREATE TABLE account_refusals (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day {int} NOT NULL,
    kind {int} NOT NULL,
    domain TEXT NOT NULL,
    count {int} NOT NULL,
    last_at {int} NOT NULL,
    PRIMARY KEY (account_id, day, kind, domain)
) {clustered};
CREATE INDEX account_refusals_day ON account_refusals (day);

-- Who else wrote to a relay address (`UseByOthers`), for the user: the domain and selector of a signature that proves it. An
-- empty domain: messages without proof. `ordinal`: of the address among those of its account. `count`: messages of that day, at
-- most `AddressUses.maximumCount`. `first_at`: the first of them. `told`: whether the team was told of that day; 2: there was nothing to tell. Kept for 30
-- days.
CREATE TABLE uses_by_others (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    ordinal {int} NOT NULL,
    day {int} NOT NULL,
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    count {int} NOT NULL,
    first_at {int} NOT NULL,
    told {int} NOT NULL DEFAULT 0 CHECK (told IN (0, 1, 2)),
    PRIMARY KEY (account_id, ordinal, day, domain)
) {clustered};
CREATE INDEX uses_by_others_day ON uses_by_others (day);
CREATE INDEX uses_by_others_untold ON uses_by_others (day) WHERE told = 0;

-- When the user was last told of refusals of each kind.
CREATE TABLE account_refusals_told (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    kind {int} NOT NULL,
    told_at {int} NOT NULL,
    PRIMARY KEY (account_id, kind)
) {clustered};
CREATE INDEX account_refusals_told_at ON account_refusals_told (told_at);

-- The last message to each account, for the user's own page: when it was forwarded, and the author, sealed. Kept for 30 days.
CREATE TABLE last_mail (
    account_id {int} NOT NULL PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    at {int} NOT NULL,
    sender_key TEXT NOT NULL,
    sender_sealed {bytes} NOT NULL
) {strict};
CREATE INDEX last_mail_at ON last_mail (at);

-- Senders that the user blocks.
CREATE TABLE account_blocks (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    value TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (account_id, value)
) {clustered};

-- Keys that sign relayed mail. `revision` grows with every change and rows are never deleted: a running service reads the keys
-- again when the highest one has changed. A retired key keeps its row without the private part: no selector is used twice.
CREATE TABLE dkim_keys (
    id {id},
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL CHECK (algorithm IN ('rsa', 'ed25519')),
    bits {int} NOT NULL,
    private_key TEXT,
    private_sealed {bytes},
    state TEXT NOT NULL CHECK (state IN ('pending', 'active', 'retiring', 'retired')),
    created_at {int} NOT NULL,
    activated_at {int},
    deactivated_at {int},
    retired_at {int},
    revision {int} NOT NULL,
    UNIQUE (domain, selector),
    CHECK ((state = 'retired') = (private_sealed IS NULL))
) {strict};
-- Two keys of one algorithm never sign at the same time.
CREATE UNIQUE INDEX dkim_keys_active ON dkim_keys (domain, algorithm) WHERE state = 'active';
CREATE INDEX dkim_keys_revision ON dkim_keys (revision);

-- What receivers report of mail in the name of relay domains (RFC 9990). `reporter`: the domain that is proved to have sent
-- the report.
CREATE TABLE aggregate_reports (
    id {id},
    domain TEXT NOT NULL,
    reporter TEXT NOT NULL,
    identifier TEXT NOT NULL,
    received_at {int} NOT NULL,
    passed {int} NOT NULL,
    failed {int} NOT NULL,
    UNIQUE (reporter, identifier, domain)
) {strict};
CREATE INDEX aggregate_reports_received ON aggregate_reports (received_at);

-- Messages of one report with the same results. `address`: the host that sent them.
CREATE TABLE aggregate_sources (
    report_number {int} NOT NULL REFERENCES aggregate_reports (id) ON DELETE CASCADE,
    address TEXT NOT NULL,
    passes_dkim {int} NOT NULL,
    passes_spf {int} NOT NULL,
    disposition TEXT NOT NULL,
    messages {int} NOT NULL,
    PRIMARY KEY (report_number, address, passes_dkim, passes_spf, disposition)
) {clustered};
