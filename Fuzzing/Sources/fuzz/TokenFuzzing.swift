// Strict JSON and compact JWS.

import IdentityParsing
import JSON

enum TokenFuzzing {
    static let json: FuzzTarget = { input in _ = try? StrictJSON.parse(input, limit: 1 << 16) }
    static let jws: FuzzTarget = { input in _ = try? CompactJWS(octets: input) }
}
