// The addresses and ports on which this Postfix receives mail from other servers. A message sent
// there gets the same treatment as theirs; filters often skip mail from loopback.

import Foundation

/// An address and port of an smtpd for other servers' mail.
package struct IncomingDoor: Sendable, Hashable {
    package let host: String
    package let port: UInt16

    package init(host: String, port: UInt16) { (self.host, self.port) = (host, port) }
}

extension PostfixConfiguration {
    /// The addresses and ports for other servers' mail, without those on loopback.
    /// - Parameters:
    ///   - addresses: of this machine.
    ///   - fanOut, socket: as for `incomingServices`.
    package func incomingDoors(
        of addresses: [String], besides fanOut: String?, socket: String
    ) -> [IncomingDoor] {
        let incoming = incomingServices(besides: fanOut, socket: socket)
        // postscreen passes its clients to a service that has no port of its own.
        let screens = fields.compactMap { name, command -> String? in
            guard name.hasSuffix("/inet/command"),
                command.split(separator: " ").first == "postscreen"
            else { return nil }
            return String(name.dropLast("/command".count))
        }
        let hasPass = incoming.contains { $0.hasSuffix("/pass") }
        let services = incoming.filter { $0.hasSuffix("/inet") } + (hasPass ? screens.sorted() : [])
        let outer = addresses.filter { !Self.isLoopback($0) }
        var doors: [IncomingDoor] = []
        for service in services {
            let place = service.dropLast("/inet".count)
            let colon = place.lastIndex(of: ":")
            let name = colon.map { place[place.index(after: $0)...] } ?? place
            guard let port = name == "smtp" ? 25 : UInt16(name), port > 0 else { continue }
            let host = colon.map { place[..<$0].filter { !"[]".contains($0) } }.flatMap {
                $0.isEmpty ? nil : $0
            }
            // inet_interfaces applies to services that name no address.
            for address in outer where host.map({ $0 == address }) ?? listens(on: address) {
                doors.append(IncomingDoor(host: address, port: port))
            }
        }
        return doors
    }

    private func listens(on address: String) -> Bool {
        let isIPv6 = address.contains(":")
        let protocols = PostfixList.items(expanded["inet_protocols"] ?? "all")
        guard protocols.contains("all") || protocols.contains(isIPv6 ? "ipv6" : "ipv4") else {
            return false
        }
        let interfaces = PostfixList.items(expanded["inet_interfaces"] ?? "all")
        return interfaces.contains { item in
            item == "all" || item.filter { !"[]".contains($0) } == address
        }
    }

    private static func isLoopback(_ address: String) -> Bool {
        address.hasPrefix("127.") || address == "::1"
    }
}
