// Requests, responses, and their causes: for the page, and for tests that check them.

import SignIn
import Support

/// The newest requests and deliveries.
package struct AppleJournal: Sendable {
    /// The most entries that are kept.
    package static let maximum = 200
    /// The most characters of a value that are kept.
    static let maximumValue = 600

    package struct Entry: Sendable {
        /// From 1.
        package let number: Int
        /// By the sandbox's clock, seconds since 1970.
        package let at: Int64
        package let method: String
        /// The path, or the address that was posted to.
        package let path: String
        package let clientID: String?
        /// Nil if there was no response.
        package let status: Int?
        /// `error` of the response.
        package let error: String?
        /// The cause, or the action.
        package let cause: String
        /// A part that Apple would refuse, although the sandbox accepts it.
        package let warning: String?
        /// Names and values, tokens shortened; the client secret as its header and claims.
        package let parameters: [(name: String, value: String)]

        /// Whether something failed.
        package var isRefusal: Bool { error != nil || status.map { $0 >= 400 } ?? true }
    }

    /// The newest first.
    package private(set) var entries: [Entry] = []
    private var count = 0

    package init() {}

    @discardableResult
    package mutating func note(
        at: Int64, _ method: String, _ path: String, clientID: String?, status: Int?,
        error: String? = nil, cause: String,
        warning: String? = nil, parameters: AppleParameters = AppleParameters([])
    ) -> Entry {
        count += 1
        let entry = Entry(
            number: count, at: at, method: method, path: path,
            clientID: clientID?.withoutControls(limit: 120), status: status,
            error: error, cause: cause, warning: warning,
            parameters: parameters.pairs.map(Self.shown))
        entries.insert(entry, at: 0)
        if entries.count > Self.maximum { entries.removeLast() }
        return entry
    }

    private static func shown(
        _ pair: (name: WireText, value: WireText)
    ) -> (name: String, value: String) {
        let secret = pair.name == "client_secret" ? AppleClientSecret.shown(pair.value.text) : nil
        return (
            pair.name.excerpt(limit: 80),
            secret?.withoutControls(limit: maximumValue) ?? pair.value.excerpt(limit: maximumValue)
        )
    }
}
