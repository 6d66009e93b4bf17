// The one form in which domains are compared.

import InternetMessage

extension AddrSpec {
    /// The domain in lower-case A-labels; where it is not a valid domain name, unchanged, in lower case: it then matches nothing
    /// that was registered.
    package var asciiDomain: String { normalized?.domain ?? domain.lowercased() }
}
