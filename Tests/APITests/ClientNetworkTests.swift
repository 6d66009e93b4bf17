// The networks that count as one client, and the trusted proxies.

import Foundation
import MailAuth
import TestSupport
import Testing

@testable import HTTP

@Suite(.blocking) struct ClientNetworkTests {
    private func networks(_ text: String) -> [ClientNetwork] {
        ClientNetwork.networks(of: IPAddress(text))
    }

    @Test func clientNetwork_ofAddress_isAddressOrIPv6Prefixes() {
        #expect(networks("192.0.2.1").map(\.name) == ["192.0.2.1"])
        #expect(networks("::ffff:192.0.2.1") == networks("192.0.2.1"))
        #expect(
            networks("2001:db8:1:2:3::4").map(\.name) == [
                "2001:db8:1:2::/64", "2001:db8:1::/56", "2001:db8:1::/48",
            ])
        #expect(networks("2001:db8:1:2:3::4") == networks("2001:db8:1:2:ffff::1"))
        #expect(networks("2001:db8:1:1ff::1")[1].name == "2001:db8:1:100::/56")
        for text in ["", "nonsense", "1.2.3", "a b"] {
            #expect(networks(text).map(\.name) == ["unknown"])
        }
    }

    @Test func rateLimiter_manyAddressesOfOneNetwork_limitsNetwork() {
        let limiter = RateLimiter(perSecond: 1.0 / 30, burst: 10)
        func taken(_ addresses: some Sequence<String>, now: Double = 0) -> Int {
            addresses.count { limiter.take(networks($0), now: now) == nil }
        }
        #expect(
            taken(
                stride(from: 0, to: 65_536, by: 64).map { "2001:db8:1:\(String($0, radix: 16))::1" }
            ) == 40, "a /48")
        #expect(taken((0..<256).map { "2001:db8:2:\(String($0, radix: 16))::1" }) == 20, "a /56")
        #expect(taken((0..<256).map { "2001:db8:3:1::\(String($0, radix: 16))" }) == 10, "a /64")
        // A refused client takes nothing from its neighbours.
        #expect(taken((0..<256).map { "2001:db8:3:\(String($0, radix: 16))::1" }) == 10)
        #expect(limiter.take(networks("2001:db8:1:ffff::9"), now: 0) == 8)
        #expect(limiter.take(networks("2001:db8:3:1::9"), now: 0) == 30)
        #expect(limiter.take(networks("2001:db8:1:ffff::9"), now: 8) == nil)
        #expect(limiter.take(networks("2001:db8:4::1"), now: 0) == nil)
    }

    private func client(
        _ proxies: TrustedProxies, _ peer: String?, _ forwarded: String...
    ) -> String? {
        proxies.client(
            peer: peer.flatMap { IPAddress($0) }, hasPeer: peer != nil, forwarded: forwarded
        ).map { "\($0)" }
    }

    @Test func trustedProxies_loopbackPeer_takesForwardedClient() {
        for peer in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "::ffff:127.8.0.1"] {
            #expect(
                client(TrustedProxies(), peer, "203.0.113.9, 192.0.2.1") == "192.0.2.1", "\(peer)")
            #expect(
                client(TrustedProxies(), peer, "203.0.113.9", "192.0.2.1") == "192.0.2.1", "\(peer)"
            )
            #expect(
                client(TrustedProxies(), peer, "192.0.2.1, 127.0.0.1") == "192.0.2.1",
                "two of them, \(peer)")
            #expect(client(TrustedProxies(), peer, "192.0.2.1, nonsense") == nil, "\(peer)")
        }
        #expect(client(TrustedProxies(), "::ffff:127.0.0.1") == "127.0.0.1")
    }

    @Test func trustedProxies_untrustedPeer_takesPeerItself() throws {
        for peer in [
            "192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7", "0.0.0.0", "::", "::ffff:0.0.0.1",
        ] {
            #expect(
                client(TrustedProxies(), peer, "198.51.100.1") == IPAddress(peer).map { "\($0)" },
                "\(peer)")
        }
        let some = try #require(TrustedProxies(["192.0.2.7", "2001:db8::/32"]))
        #expect(client(some, "192.0.2.7", "198.51.100.1") == "198.51.100.1")
        #expect(client(some, "::ffff:192.0.2.7", "198.51.100.1") == "198.51.100.1")
        #expect(
            client(some, "2001:db8:7::1", "198.51.100.9, 198.51.100.1, 192.0.2.7") == "198.51.100.1"
        )
        #expect(client(some, "192.0.2.8", "198.51.100.1") == "192.0.2.8")
        for text in [
            "", "x", "192.0.2.0/33", "192.0.2.0/-1", "192.0.2.0/", "/8", "192.0.2.0/0",
            "::ffff:192.0.2.0/120", "2001:db8::/129",
        ] {
            #expect(TrustedProxies([text]) == nil, "\(text)")
        }
    }
}
