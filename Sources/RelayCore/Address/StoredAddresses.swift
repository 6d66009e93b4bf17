// Stored tokens that come up while a message is rewritten: looked up as they are met, bounded, and no failure overlooked.

import InternetMessage

/// Looks up stored reverse addresses for one message. Not thread-safe.
package final class StoredAddresses {
    private let directory: any RelayDirectory
    private let tokens: TokenMint
    private var known: [String: AddrSpec?] = [:]
    /// Look-ups a message; a token beyond is treated as one that leads nowhere, and is taken out.
    private static let maximumLookups = 100
    /// Set where the directory failed: the message must be deferred.
    package private(set) var failure: DirectoryFailure?

    package init(directory: any RelayDirectory, tokens: TokenMint) {
        self.directory = directory
        self.tokens = tokens
    }

    /// The address of a token that leads to one; nil where nothing right is stored.
    package func address(of token: AddressToken) -> AddrSpec? {
        if let address = token.address { return address }
        guard token.purpose.isStored else { return nil }
        let key = token.storageKey
        if let address = known[key] { return address }
        guard known.count < Self.maximumLookups, failure == nil else { return nil }
        do {
            let stored = try directory.storedAddress(token)
            let address = stored.flatMap { tokens.verifies(token, stored: $0) ? $0 : nil }
            known[key] = .some(address)
            return address
        } catch {
            failure = error
            return nil
        }
    }
}
