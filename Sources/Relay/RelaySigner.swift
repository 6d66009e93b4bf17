// DKIM signatures for all mail that the relay sends, with the active keys of each relay domain.

import Accounts
import InternetMessage
import MailAuth
import MailCrypto
import RelayCore
import Synchronization

/// Signs with every active key of the domain, RSA first. Keys are parsed once and can be replaced
/// while the relay runs. A message uses the keys with which it began.
package final class RelaySigner: MessageSigner {
    private typealias Signers = [String: [DKIMSigner]]

    private let keys: DKIMKeyRepository
    private let state: Mutex<(revision: Int64, signers: Signers)>

    /// Reads the keys. Throws store errors, and `unexpectedData` for a key that cannot be parsed.
    package init(keys: DKIMKeyRepository) throws {
        self.keys = keys
        state = Mutex(try Self.read(keys))
    }

    /// Reads the keys again if they changed; returns whether they did. If that fails, the old keys
    /// stay in use.
    @discardableResult
    package func refresh() throws -> Bool {
        guard try keys.revision() != state.withLock({ $0.revision }) else { return false }
        let new = try Self.read(keys)
        state.withLock { $0 = new }
        return true
    }

    /// The number of keys that sign for each domain.
    package var counts: [String: Int] { state.withLock { $0.signers.mapValues(\.count) } }

    package func begin() -> any SigningSession { Session(state.withLock { $0.signers }) }

    private static func read(
        _ keys: DKIMKeyRepository
    ) throws -> (revision: Int64, signers: Signers) {
        let (revision, signing) = try keys.signingKeys()
        let signers = try signing.map { key, privateKey in
            try DKIMSigner(
                domain: key.domain, selector: key.selector,
                key: DKIMKeyMaker.parse(privateKey, of: key))
        }
        return (revision, Dictionary(grouping: signers, by: \.domain))
    }

    private final class Session: SigningSession {
        private let signers: Signers
        private let hasher = DKIMBodyHasher()

        init(_ signers: Signers) { self.signers = signers }

        func update(body: UnsafeRawBufferPointer) { hasher.update(body: body) }

        func finish(header: HeaderSection, domain: String, now: Int64) throws -> [HeaderField] {
            guard let signers = signers[domain.lowercased()] else { return [] }
            let hash = hasher.finish()
            return try signers.map { try $0.sign(header: header, bodyHash: hash, now: now) }
        }
    }
}
