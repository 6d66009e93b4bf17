-- Migration 44: apps whose devices attest themselves (App Attest), and these devices.
-- `mark`: a keyed hash, of the id of a device's key and of the app, or of an account's name and the app. It tells nothing to other apps.
-- Accounts are those that decisions named together with the device.

CREATE TABLE attested_apps (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    environment TEXT NOT NULL,
    root {bytes} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (app_id, name, environment)
) {clustered};

CREATE TABLE devices (
    id {id},
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    mark {bytes} NOT NULL UNIQUE,
    name TEXT NOT NULL,
    environment TEXT NOT NULL,
    public_key TEXT NOT NULL,
    public_sealed {bytes} NOT NULL,
    counter {int} NOT NULL,
    assertions {int} NOT NULL,
    attested_at {int} NOT NULL,
    seen_at {int} NOT NULL
) {strict};
CREATE INDEX devices_app ON devices (app_id);
CREATE INDEX devices_seen ON devices (seen_at);

CREATE TABLE device_accounts (
    id {id},
    device_id {int} NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
    mark {bytes} NOT NULL,
    seen_at {int} NOT NULL
) {strict};
CREATE UNIQUE INDEX device_accounts_mark ON device_accounts (device_id, mark);
CREATE INDEX device_accounts_seen ON device_accounts (seen_at);
