// The user's real address, which must never be shown.

/// A user's real address. Deliberately not a `String`. Its descriptions are redacted, and it cannot
/// be encoded. Code that needs the address must read `revealed`, which a reviewer sees.
package struct InboxAddress: Sendable, Hashable {
    private let address: AddrSpec

    package init(_ address: AddrSpec) { self.address = address }

    /// The address itself. Only for an envelope that leaves for the user, for
    /// comparison, and for sealed storage.
    package var revealed: AddrSpec { address }

    /// The form that operators see: `l…@gmail.com`. Shows one scalar, as one character may be the
    /// whole local part.
    package var hint: String {
        (address.localPart.unicodeScalars.first.map { String($0) } ?? "") + "…@" + address.domain
    }
}

extension InboxAddress: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<inbox>" }
    package var debugDescription: String { "<inbox>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
