// A store with one team, its users and endpoints, a delivery with the test's clock, and a separate
// DNS.

import Accounts
import Database
import Events
import Foundation
import InternetMessage
import Logging
import MailAuth
import NIOPosix
import PosternSQLite
import SignIn
import StoreTesting
import Synchronization
import TestSupport
import Testing

/// A DNS with answers that a test may change. It counts its queries.
final class ChangingResolver: DNSResolver {
    private let state: Mutex<(names: [String: [[UInt8]]], queries: Int)>
    /// Called with each name before it is answered, so that a test can delay the answer.
    private let pause = Mutex<(@Sendable (String) -> Void)?>(nil)
    init(_ names: [String: [[UInt8]]]) { state = Mutex((names, 0)) }

    func before(_ pause: @escaping @Sendable (String) -> Void) {
        self.pause.withLock { $0 = pause }
    }

    func set(_ name: String, _ addresses: [[UInt8]]) {
        state.withLock { $0.names[name] = addresses }
    }
    var queries: Int { state.withLock { $0.queries } }

    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        pause.withLock { $0 }?(name)
        return state.withLock { state in
            state.queries += 1
            guard let addresses = state.names[name] else { return .nxDomain }
            let records = addresses.filter { $0.count == (type == .a ? 4 : 16) }.map(
                DNSRecord.address)
            return records.isEmpty ? .noData : .records(records)
        }
    }
}

final class EventFixture: Sendable {
    static let issuer = "https://relay.example"

    let folder: URL
    let database: SQLiteDatabase
    let store: Store
    let clock = ManualClock()
    let resolver = ChangingResolver(["hooks.example": [[127, 0, 0, 1]]])
    let signer: IdentitySigner
    let delivery: EventDelivery
    let poster: HTTPEventPoster
    let threads = DeliveryThreads()

    var change: Change { Change(actor: "uid:0", now: clock.now) }

    /// - Parameters:
    ///   - users: u0, u1 …, each with an account with team juice.
    ///   - timeout: seconds for one attempt.
    init(
        users: Int = 1, timeout: Int64 = 5, allowsPrivateStreams: Bool = true,
        random: @escaping @Sendable () -> Double = { 0.5 }
    ) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-events-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        database = try MigratedStore.sqlite(at: folder.appendingPathComponent("postern.db").path)
        let keys = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
        store = Store(database: database, keys: keys, relayDomains: ["relay.example"])
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let clock = clock
        signer = IdentitySigner(store.identityKeys, now: { clock.now }, logger: logger)
        poster = try HTTPEventPoster(
            rootsPath: TestReceiver.certificate("authority.pem"), timeout: timeout)
        // Beside other tests this process may be stopped for longer than a lease lasts; then events
        // come twice, as they should.
        let begun = ContinuousClock.now
        delivery = EventDelivery(
            outbox: store.outbox, signer: signer, issuer: Self.issuer, poster: poster,
            resolver: resolver, threads: threads,
            allowsPrivateStreams: allowsPrivateStreams, now: { clock.now }, leaseClock: { begun },
            random: random, logger: logger)
        _ = try store.teams.add(id: "juice", name: "Juice", change)
        _ = try store.apps.add(team: "juice", clientID: "com.juice", group: nil, change)
        for number in 0..<users { try addUser("u\(number)") }
    }

    func addUser(_ id: String) throws {
        _ = try store.users.add(
            id: id, name: nil, inbox: InboxAddress(AddrSpec(localPart: id, domain: "home.example")),
            isVerified: true, change)
        _ = try store.grants.authorize(
            AuthorizationRequest(clientID: "com.juice", userID: id), change)
    }

    func endpoint(
        _ receiver: TestReceiver, host: String = "hooks.example", allowsPrivate: Bool = true
    ) throws {
        try endpoint("https://\(host):\(receiver.port)/events", allowsPrivate: allowsPrivate)
    }

    func endpoint(_ url: String, allowsPrivate: Bool = true) throws {
        _ = try store.endpoints.set(
            team: "juice", app: "com.juice", url: EndpointURL(url), allowsHTTP: true,
            allowsPrivate: allowsPrivate, change)
    }

    func toggle(_ user: String, on isOn: Bool) throws {
        let address = try #require(try store.addresses.addresses(team: "juice", user: user).first)
        try store.addresses.setForwarding(address.address, on: isOn, change)
    }

    /// Advances the clock from one due event to the next, until nothing waits or the time is up;
    /// returns the seconds.
    @discardableResult
    func deliver(within seconds: Int64) async throws -> Int64 {
        let start = clock.now
        while clock.now <= start + seconds {
            await delivery.deliverDue()
            guard let endpoint = try store.outbox.waitingEndpoints().first else { break }
            let events = try store.outbox.events(state: .pending)
            let next =
                endpoint.failures > 0
                ? endpoint.retryAt : events.map(\.nextAttemptAt).min() ?? clock.now
            clock.advance(max(1, next - clock.now))
        }
        return clock.now - start
    }

    func stop() async {
        await poster.stop()
        await threads.stop()
        try? database.close()
        try? FileManager.default.removeItem(at: folder)
    }
}

/// Runs a test with a fixture and a receiver, and stops both.
func withFixture(
    users: Int = 1, timeout: Int64 = 5, _ body: (EventFixture, TestReceiver) async throws -> Void
) async throws {
    let fixture = try EventFixture(users: users, timeout: timeout)
    let receiver = try await TestReceiver()
    do {
        try fixture.endpoint(receiver)
        try await body(fixture, receiver)
    } catch {
        await receiver.stop()
        await fixture.stop()
        throw error
    }
    await receiver.stop()
    await fixture.stop()
}
