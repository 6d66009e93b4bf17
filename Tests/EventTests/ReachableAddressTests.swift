// The addresses to which Postern may send requests: never into the operator's own network, even if
// a name's address changes.

import Accounts
import Events
import MailAuth
import NIOCore
import TestSupport
import Testing

@Suite(.blocking) struct ReachableAddressTests {
    static func octets(_ text: String) throws -> [UInt8] {
        switch try SocketAddress(ipAddress: text, port: 0) {
        case .v4(let address): withUnsafeBytes(of: address.address.sin_addr) { Array($0) }
        case .v6(let address): withUnsafeBytes(of: address.address.sin6_addr) { Array($0) }
        case .unixDomainSocket: []
        }
    }

    /// Never, even if private ones are allowed.
    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::",
        "ff02::1", "ff0e::1",
        "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::808:808",
        "64:ff9b:1::a00:1", "2002:7f00:1::1", "2002:a00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ]) func reachableAddress_multicastOrMapped_isNeverReached(_ text: String) throws {
        #expect(ReachableAddress.objection(try Self.octets(text)) != nil)
        #expect(ReachableAddress.objection(try Self.octets(text), allowsPrivate: true) != nil)
    }

    /// Only if allowed.
    @Test(arguments: [
        "127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.1",
        "172.31.255.255", "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1", "100.127.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.7",
        "203.0.113.9", "::1", "::127.0.0.1", "::2", "fe80::1", "febf::1", "fec0::1", "fc00::1",
        "fd12:3456::1", "100::1",
        "2001:db8::1", "2001:2::1", "2001:10::1", "2001:20::1", "3fff::1", "5f00::1", "4000::1",
        "8000::1", "e000::1",
    ]) func reachableAddress_private_isReachedOnlyIfAllowed(_ text: String) throws {
        #expect(ReachableAddress.objection(try Self.octets(text)) != nil)
        #expect(ReachableAddress.objection(try Self.octets(text), allowsPrivate: true) == nil)
    }

    @Test(arguments: [
        "8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.1",
        "100.63.255.255", "100.128.0.0",
        "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
        "192.169.0.0", "198.17.255.255",
        "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888",
        "2003::1", "3ffe::1",
    ]) func reachableAddress_public_isReached(_ text: String) throws {
        #expect(ReachableAddress.objection(try Self.octets(text)) == nil)
    }

    @Test func reachableAddress_wrongLength_isNotReached() {
        #expect(ReachableAddress.objection([]) != nil)
        #expect(ReachableAddress.objection([8, 8, 8]) != nil)
        #expect(ReachableAddress.objection([8, 8, 8, 8, 8], allowsPrivate: true) != nil)
    }

    @Test func endpointAddresses_anyNotReachable_areRefused() throws {
        let url = try EndpointURL("https://hooks.example/")
        func addresses(_ all: [String], allowsPrivate: Bool = false) throws -> [String] {
            let resolver = ChangingResolver(["hooks.example": try all.map(Self.octets)])
            return try EndpointAddresses(of: url, allowsPrivate: allowsPrivate, resolver: resolver)
                .texts
        }
        #expect(try addresses(["2606:4700::1111", "1.1.1.1"]) == ["1.1.1.1", "2606:4700::1111"])
        #expect(throws: EndpointAddresses.Refusal.self) { try addresses(["1.1.1.1", "10.0.0.1"]) }
        #expect(throws: EndpointAddresses.Refusal.self) { try addresses(["1.1.1.1", "::1"]) }
        #expect(throws: EndpointAddresses.Refusal.self) { try addresses([]) }
        #expect(try addresses(["10.0.0.1"], allowsPrivate: true) == ["10.0.0.1"])
    }

    @Test(arguments: [
        "https://127.0.0.1/", "https://10.1.2.3/", "https://[::1]/", "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1]/",
    ])
    func endpointAddresses_privateLiteralInURL_areRefused(_ text: String) throws {
        let resolver = ChangingResolver([:])
        #expect(throws: EndpointAddresses.Refusal.self) {
            try EndpointAddresses(of: EndpointURL(text), allowsPrivate: false, resolver: resolver)
        }
        #expect(resolver.queries == 0)
    }

    // MARK: With a receiver

    @Test func delivery_nameOfLoopback_isNotConnected() async throws {
        try await withFixture { fixture, receiver in
            try fixture.endpoint(receiver, allowsPrivate: false)
            try fixture.toggle("u0", on: false)
            await fixture.delivery.deliverDue()
            #expect(receiver.requests.isEmpty)
            #expect(
                try fixture.store.outbox.events().first?.lastError
                    == "one of its addresses is not globally reachable (loopback)")
        }
    }

    /// The name exists only in the given resolver: a second lookup elsewhere would find nothing.
    @Test func delivery_nameResolved_connectsToCheckedAddress() async throws {
        try await withFixture { fixture, receiver in
            try fixture.toggle("u0", on: false)
            await fixture.delivery.deliverDue()
            #expect(receiver.taken.count == 1)
            #expect(fixture.resolver.queries == 2)
        }
    }

    @Test func delivery_eachAttempt_resolvesNameAgain() async throws {
        try await withFixture { fixture, receiver in
            try fixture.endpoint(receiver, allowsPrivate: false)
            try fixture.toggle("u0", on: false)
            for attempt in 1...3 {
                await fixture.delivery.deliverDue()
                #expect(fixture.resolver.queries == 2 * attempt)
                fixture.clock.advance(60)
            }
            #expect(receiver.requests.isEmpty)
            #expect(
                try fixture.store.outbox.events().first?.lastError?.contains("loopback") == true)
            // If an endpoint moves, its new address is used, if that is allowed.
            try fixture.endpoint(receiver, allowsPrivate: true)
            fixture.resolver.set("hooks.example", [[127, 0, 0, 2]])
            await fixture.delivery.deliverDue()
            #expect(receiver.requests.isEmpty)
            fixture.resolver.set("hooks.example", [[127, 0, 0, 1]])
            try await fixture.deliver(within: 60)
            #expect(receiver.taken.count == 1)
        }
    }

    @Test func delivery_certificateForOtherName_isRefused() async throws {
        try await withFixture { fixture, receiver in
            fixture.resolver.set("other.example", [[127, 0, 0, 1]])
            try fixture.endpoint(receiver, host: "other.example")
            try fixture.toggle("u0", on: false)
            await fixture.delivery.deliverDue()
            #expect(receiver.requests.isEmpty)
            let reason = try fixture.store.outbox.events().first?.lastError
            #expect(reason?.contains("TLS") == true, "\(reason ?? "")")
        }
    }

    @Test func delivery_firstAddressDoesNotAnswer_triesNext() async throws {
        try await withFixture { fixture, receiver in
            fixture.resolver.set("hooks.example", [[127, 0, 0, 3], [127, 0, 0, 1]])
            try fixture.toggle("u0", on: false)
            await fixture.delivery.deliverDue()
            #expect(receiver.taken.count == 1)
        }
    }
}
