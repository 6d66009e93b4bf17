// The address of a name server: `192.0.2.53`, `192.0.2.53:5353`, `2001:db8::53`,
// `[2001:db8::53]:5353`.

import MailAuth

/// An IP address and a port.
package struct DNSServerAddress: Sendable, Hashable, CustomStringConvertible {
    package let address: IPAddress
    /// UDP and TCP port.
    package let port: UInt16

    /// The port of name servers (RFC 1035 section 4.2).
    package static let defaultPort: UInt16 = 53

    package init(address: IPAddress, port: UInt16 = DNSServerAddress.defaultPort) {
        self.address = address
        self.port = port
    }

    /// Reads an IP address, alone or with a port; an IPv6 address with a port is in brackets. Nil
    /// for anything else, as a host name cannot be resolved before there is a name server.
    package init?(_ text: String) {
        var host = Substring(text)
        var port: Substring?
        if host.first == "[" {
            guard let end = host.firstIndex(of: "]"), host.contains(":") else { return nil }
            let rest = host[host.index(after: end)...]
            host = host[host.index(after: host.startIndex)..<end]
            guard rest.isEmpty || rest.first == ":", host.contains(":") else { return nil }
            if !rest.isEmpty { port = rest.dropFirst() }
        } else if let colon = host.firstIndex(of: ":"),
            host[host.index(after: colon)...].firstIndex(of: ":") == nil
        {
            port = host[host.index(after: colon)...]
            host = host[..<colon]
        }
        guard let address = IPAddress(host) else { return nil }
        self.address = address
        guard let port else {
            self.port = Self.defaultPort
            return
        }
        guard port.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(port),
            number > 0
        else { return nil }
        self.port = number
    }

    package var description: String {
        address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
    }
}
