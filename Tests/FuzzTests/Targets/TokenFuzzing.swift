// Strict JSON and compact JWS.

import Support

#if canImport(IdentityParsing)
import IdentityParsing
#else
import SignIn
#endif

enum TokenFuzzing {
    static let json: FuzzTarget = { input in _ = try? StrictJSON.parse(input, limit: 1 << 16) }
    static let jws: FuzzTarget = { input in _ = try? CompactJWS(octets: input) }
}
