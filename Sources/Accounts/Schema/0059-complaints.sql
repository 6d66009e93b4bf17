-- Migration 59: complaints are few among the counters, and found without reading the others. 21 is `CounterKind.complaints`.

CREATE INDEX daily_counters_complaints ON daily_counters (day) WHERE kind = 21;
