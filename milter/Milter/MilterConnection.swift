// The SMTP client as the MTA reports it at connect.

/// The address of the SMTP client.
package enum MilterPeer: Sendable, Hashable {
    /// An IPv4 address in dotted form, and the client's port (0 if the MTA does not report it).
    case ipv4(String, port: UInt16)
    /// An IPv6 address in the form of RFC 5952, and the client's port.
    case ipv6(String, port: UInt16)
    /// A local socket or pipe.
    case unix(String)
    /// The MTA does not know the address or did not report it.
    case unknown

    /// The IP address in text form; nil if there is none.
    package var ipAddress: String? {
        switch self {
        case .ipv4(let address, _), .ipv6(let address, _): address
        case .unix, .unknown: nil
        }
    }
}

/// The connection of a session. A value: it may be kept.
package struct MilterConnection: Sendable, Hashable {
    /// The client's name as found by the MTA, verified by a forward look-up (Postfix); `unknown` or
    /// `[192.0.2.1]` without a name.
    package let hostName: String
    package let peer: MilterPeer
    /// The macros of the connect stage, by name as `smfi_getsymval` spells it:
    /// `{daemon_name}`, `j`, `v`, …
    package let macros: [String: String]

    package init(hostName: String, peer: MilterPeer, macros: [String: String] = [:]) {
        self.hostName = hostName
        self.peer = peer
        self.macros = macros
    }

    /// The MTA's listener that accepted the connection (Postfix: `milter_macro_daemon_name`); nil
    /// if it was not reported.
    package var daemonName: String? { macros["{daemon_name}"] }
}
