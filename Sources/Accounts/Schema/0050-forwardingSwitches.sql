-- Migration 50: when forwarding of an address switches by itself, from on to off or from off to on; seconds since 1970.

ALTER TABLE relay_addresses ADD COLUMN switches_at {int};

CREATE INDEX relay_addresses_switches ON relay_addresses (switches_at) WHERE switches_at IS NOT NULL;
