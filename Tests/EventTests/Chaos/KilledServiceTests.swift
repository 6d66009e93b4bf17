// Postern is killed in the middle of a thousand changes, and every event arrives.

import Accounts
import DNSClient
import DNSTesting
import Events
import Foundation
import InternetMessage
import PosternConfiguration
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct KilledServiceTests {
    private static let users = 20
    private static let changes = 1_000

    @Test(.timeLimit(.minutes(60))) func events_serviceKilled_allArriveInOrder() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-killed-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let program = try ManagedProcess.builtProduct("postern")
        let receiver = try await TestReceiver()
        let dns = try TestDNSServer(
            zone: ZoneFile(json: Data(#"{"hooks.example": {"A": ["127.0.0.1"]}}"#.utf8)))
        defer { dns.stop() }
        let data = folder.appendingPathComponent("data").path
        try InstallationCopy.make(data, relayDomains: ["relay.example"])
        let settings = [
            "milter.socket": "unix:\(folder.path)/milter.sock", "dns.servers": "\(dns.address)",
            "http.listen": "127.0.0.1:0",
            "http.public_url": "https://relay.example", "operator_address": "ops@operator.example",
            "events.trusted_certificates": TestReceiver.certificate("authority.pem"),
        ]
        let installation = try Installation.open(flag: data, environment: [:], now: 1)
        defer { try? installation.close() }
        let store = installation.store
        let addresses = try prepare(store, port: receiver.port)
        func serve() throws -> ManagedProcess {
            let arguments =
                ["serve", "--config", data]
                + settings.sorted { $0.key < $1.key }.flatMap {
                    ["--set", "\($0.key)=\($0.value)"]
                }
            let process = try ManagedProcess(program, arguments)
            try process.waitForLine(containing: "serving")
            return process
        }
        var process = try serve()
        for number in 0..<Self.changes {
            let change = Change(actor: "uid:0", now: Int64(Date().timeIntervalSince1970))
            try store.addresses.setForwarding(
                addresses[number % Self.users], on: (number / Self.users) % 2 == 1, change)
            // Three times, while events are in delivery.
            if [250, 500, 750].contains(number) {
                process.signal(SIGKILL)
                _ = try process.waitForExit()
                process = try serve()
            }
        }
        let events = try store.outbox.events(limit: 2 * Self.changes).reversed().map { $0 }
        #expect(events.count == Self.changes)
        // The process after a killed one delivers the events that it left.
        var (arrived, silentSince) = (0, ContinuousClock.now)
        while arrived < Self.changes, ContinuousClock.now - silentSince < .seconds(180) {
            try await Task.sleep(for: .milliseconds(50))
            let count = Set(receiver.taken.map(\.jti)).count
            if count > arrived { (arrived, silentSince) = (count, .now) }
        }
        let taken = receiver.taken
        #expect(
            arrived == Self.changes,
            "nothing more came for three minutes:\n\(process.output.suffix(4000))")
        process.signal(SIGTERM)
        #expect(try process.waitForExit() == 0)
        await receiver.stop()
        #expect(Set(taken.map(\.jti)) == Set(events.map(\.jti)))
        var firsts: [ReceivedEvent] = []
        var seen: [String: ReceivedEvent] = [:]
        for event in taken {
            if let known = seen[event.jti] {
                // A repetition has the same content.
                #expect(known.type == event.type)
                #expect(known.sub == event.sub)
                #expect(known.eventTime == event.eventTime)
                #expect(known.audience == event.audience)
            } else {
                seen[event.jti] = event
                firsts.append(event)
            }
        }
        for sub in Set(events.map(\.sub)) {
            #expect(
                firsts.filter { $0.sub == sub }.map(\.jti)
                    == events.filter { $0.sub == sub }.map(\.jti), "out of order")
        }
    }

    private func prepare(_ store: Store, port: Int) throws -> [AddrSpec] {
        let change = Change(actor: "uid:0", now: 1)
        _ = try store.teams.add(id: "juice", name: "Juice", change)
        _ = try store.apps.add(team: "juice", clientID: "com.juice", group: nil, change)
        _ = try store.endpoints.set(
            team: "juice", app: nil, url: EndpointURL("https://hooks.example:\(port)/"),
            allowsPrivate: true, change)
        return try (0..<Self.users).map { number in
            _ = try store.users.add(
                id: "u\(number)", name: nil,
                inbox: InboxAddress(AddrSpec(localPart: "u\(number)", domain: "home.example")),
                isVerified: true, change)
            return try store.addresses.issue(team: "juice", user: "u\(number)", change).address
                .address
        }
    }
}
