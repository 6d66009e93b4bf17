-- Migration 47: what users call their addresses, and what they write down about them, for themselves alone; how apps are shown to people.

CREATE TABLE account_notes (
    account_id {int} NOT NULL PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    name_key TEXT,
    name_sealed {bytes},
    note_key TEXT,
    note_sealed {bytes}
) {strict};

ALTER TABLE apps ADD COLUMN name TEXT;
ALTER TABLE apps ADD COLUMN icon {bytes};
