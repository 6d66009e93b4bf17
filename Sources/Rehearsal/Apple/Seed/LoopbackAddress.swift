// Addresses of this machine: the only destinations of responses and notifications.

import SignIn

/// Addresses of this machine.
package enum LoopbackAddress {
    /// Whether an http or https address has a host of 127.0.0.0/8, `[::1]` or
    /// `localhost`, and nothing before it.
    package static func isLoopback(_ address: String) -> Bool {
        guard address.utf8.count <= 2048, address.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            !address.contains("\\"),
            let origin = WebOrigin(address)?.description, let mark = origin.firstRange(of: "://")
        else { return false }
        let authority = origin[mark.upperBound...]
        if authority == "[::1]" || authority.hasPrefix("[::1]:") { return true }
        let host = authority.prefix { $0 != ":" }
        if host == "localhost" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return numbers.count == 4 && numbers.allSatisfy { $0 != nil } && numbers[0] == 127
    }
}
