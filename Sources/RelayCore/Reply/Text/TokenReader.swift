// Reads local parts at relay domains while a text is rewritten, and keeps the results.

import InternetMessage

/// The meaning of a local part at a relay domain for the team. Not thread-safe: make one for each
/// message.
final class TokenReader {
    enum Meaning {
        /// A reverse address of this correspondent.
        case correspondent(AddrSpec)
        /// A token that must not reach the team.
        case hidden
        /// The account's own relay address, which stays.
        case relayAddress
        /// Not a token.
        case other
    }

    private let names: ReplyNames
    private var known: [String: Meaning] = [:]
    /// Maximum different tokens read in one message. Real mail quotes a few. Beyond this number,
    /// every local part at a relay domain is hidden without reading it.
    private static let maximumReadings = 5_000

    private var foreign: [[UInt8]: Bool] = [:]

    init(names: ReplyNames) { self.names = names }

    /// Whether a local part is a token of another account. Beyond the limit, every word in the form
    /// of a token counts as one.
    func isForeign(_ local: [UInt8]) -> Bool {
        if let known = foreign[local] { return known }
        guard foreign.count < Self.maximumTries else { return true }
        let isForeign = names.isForeignToken(local)
        foreign[local] = isForeign
        return isForeign
    }

    /// Maximum local parts that are tried: a word that ends like a token is tried with up to 60
    /// beginnings.
    private static let maximumTries = 100_000

    /// - Parameters:
    ///   - local: lower case.
    ///   - domain: a relay domain.
    func read(_ local: String, domain: String) -> Meaning {
        let key = local + "@" + domain
        if let meaning = known[key] { return meaning }
        guard known.count < Self.maximumReadings else { return .hidden }
        let address = AddrSpec(localPart: local, domain: domain)
        let meaning: Meaning
        if local == names.relayAddress.localPart.lowercased(),
            domain == names.relayAddress.domain.lowercased()
        {
            meaning = .relayAddress
        } else if let correspondent = names.correspondent(address) {
            meaning = .correspondent(correspondent)
        } else {
            meaning = names.isToken(address) ? .hidden : .other
        }
        known[key] = meaning
        return meaning
    }
}
