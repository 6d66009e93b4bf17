// The fuzz targets by name. `make fuzz` gives each its inputs, and FuzzSeedTests the first of them.
// Each target calls `require` with the property that must hold. It ends the run of `make fuzz`, and
// is an issue in the test.

/// One input at a time. A target that finds a fault reports it with `require`, or traps.
typealias FuzzTarget = @Sendable (_ input: [UInt8]) -> Void

let fuzzTargets: [String: FuzzTarget] = [
    "header": HeaderFuzzing.header, "mime": HeaderFuzzing.mime,
    "addresses": HeaderFuzzing.addresses,
    "reply": ReplyFuzzing.reply, "report": ReplyFuzzing.report, "aggregate": ReplyFuzzing.aggregate,
    "archive": ReplyFuzzing.archive,
    "dkim": AuthFuzzing.dkim, "spf": AuthFuzzing.spf, "dns": AuthFuzzing.dns,
    "json": TokenFuzzing.json, "jws": TokenFuzzing.jws, "authorize": SignInFuzzing.authorize,
    "cel": PolicyFuzzing.expression, "policy": PolicyFuzzing.policy,
    "milter": MilterFuzzing.dialogue,
    "cbor": PasskeyFuzzing.cbor, "webauthn": PasskeyFuzzing.webauthn,
    "attest": PasskeyFuzzing.attest,
]
