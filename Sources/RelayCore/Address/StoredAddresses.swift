// Looks up the addresses behind the tokens of a message during rewriting. Limits their number, and
// keeps the first failure.

import InternetMessage

/// Looks up what the tokens of one message lead to. Not thread-safe.
package final class StoredAddresses {
    private let directory: any RelayDirectory
    private let tokens: TokenMint
    private var known: [String: AddrSpec?] = [:]
    /// Look-ups per message. A token beyond this number is removed, like one that leads nowhere.
    private static let maximumLookups = 100
    /// Set if the directory failed. The message must then be deferred.
    package private(set) var failure: DirectoryFailure?

    package init(directory: any RelayDirectory, tokens: TokenMint) {
        self.directory = directory
        self.tokens = tokens
    }

    /// The address that a token leads to; nil if no valid address is stored, or if the team
    /// has given up the domain of a return path's sender.
    package func address(of token: AddressToken) -> AddrSpec? {
        if let address = token.address { return address }
        guard token.purpose == .forward || token.storageKey != nil else { return nil }
        let key = token.storageKey ?? token.localPart
        if let address = known[key] { return address }
        guard known.count < Self.maximumLookups, failure == nil else { return nil }
        do {
            let address =
                token.purpose == .forward
                ? try directory.senderContext(token.account).flatMap {
                    tokens.sender(of: token, context: $0)
                }
                : try directory.storedAddress(token).flatMap {
                    tokens.verifies(token, stored: $0) ? $0 : nil
                }
            known[key] = .some(address)
            return address
        } catch {
            failure = error
            return nil
        }
    }
}
