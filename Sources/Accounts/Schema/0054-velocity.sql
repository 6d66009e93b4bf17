-- Migration 54: what policies have counted. A row is a slice of a window (`part`: the slice in eight octets), or, where what is distinct
-- is counted, one value (`part`: its keyed hash) with the last slice that it came in. `mark`: a keyed hash of a team's counter and of the
-- value that it counts by. Nothing of a row can be read back; it is deleted after `ends_at`, in seconds since 1970.

CREATE TABLE velocity (
    mark {bytes} NOT NULL,
    part {bytes} NOT NULL,
    slice {int} NOT NULL,
    count {int} NOT NULL,
    ends_at {int} NOT NULL,
    PRIMARY KEY (mark, part)
) {clustered};
CREATE INDEX velocity_end ON velocity (ends_at);
