// The one form in which domains are compared.

import InternetMessage

extension AddrSpec {
    /// The domain in lower-case A-labels. An invalid domain name is only lowercased; it then matches nothing registered.
    package var asciiDomain: String { normalized?.domain ?? domain.lowercased() }
}
