// A running service whose SQLite database is moved, replaced, or held by another process.

import Accounts
import Foundation
import InternetMessage
import PosternConfiguration
import PostfixHarness
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct StorePlaceTests {
    private static let files = ["postern.db", "postern.db-wal", "postern.db-shm"]

    /// A service, an operator's key that it knows, and the user `first`, who is in its store.
    private static func service() throws -> (LiveService, key: String) {
        let service = try LiveService(inboxes: ["@home.example"])
        let key = try service.key("--operator", "--scope", "users:read,users:write")
        let deadline = ContinuousClock.now + .seconds(60)
        while try add("first", service, key) != 201 {
            try #require(ContinuousClock.now < deadline, "no user is ever added")
        }
        return (service, key)
    }

    private static func add(_ user: String, _ service: LiveService, _ key: String) throws -> Int {
        try service.ask(
            "POST", "/v1/users", key: key,
            body: #"{"user":"\#(user)","inbox":"\#(user)@home.example"}"#
        ).status
    }

    private static func move(
        _ names: [String], _ service: LiveService, to folder: String, back: Bool = false
    ) throws {
        try FileManager.default.createDirectory(
            atPath: service.folder + folder, withIntermediateDirectories: true)
        for name in names {
            let (from, to) = (service.folder + "/" + name, service.folder + folder + "/" + name)
            try FileManager.default.moveItem(atPath: back ? to : from, toPath: back ? from : to)
        }
    }

    private static func users(_ service: LiveService) throws -> [String] {
        struct User: Decodable { let user: String }
        return try JSONDecoder().decode(
            [User].self, from: Data(service.run("user", "list", "--json").utf8)
        ).map(\.user)
    }

    @Test func database_movedAway_answers503UntilPutBack() throws {
        let (service, key) = try Self.service()
        try service.run("store", "backup", service.folder + "/copy.db")
        try Self.move(Self.files, service, to: "/away")
        #expect(try Self.add("lost", service, key) == 503)
        #expect(try service.ask("GET", "/readyz").status == 503)
        try service.waitForLog("the database file is not in place")
        // Beside a service that still uses the old files, the command writes nothing.
        let arguments = [
            "store", "restore", service.folder + "/copy.db", "--config",
            service.folder + "/postern.yaml",
        ]
        let restored = try ManagedProcess.run(service.program, arguments)
        #expect(
            restored.status == 65 && restored.output.contains("postern serve is running"),
            "\(restored)")
        #expect(!FileManager.default.fileExists(atPath: service.folder + "/postern.db"))
        // With the files back, it continues.
        try Self.move(Self.files, service, to: "/away", back: true)
        // Ready with the next report of the service, which comes every two seconds.
        let deadline = ContinuousClock.now + .seconds(60)
        while try service.ask("GET", "/readyz").status != 200 {
            try #require(ContinuousClock.now < deadline, "it is never ready again")
        }
        #expect(try Self.add("second", service, key) == 201)
        #expect(try Self.users(service) == ["first", "second"])
        // Without a running service it is restored.
        try service.kill()
        try Self.move(
            Self.files.filter { FileManager.default.fileExists(atPath: service.folder + "/" + $0) },
            service, to: "/away")
        #expect(try ManagedProcess.run(service.program, arguments).status == 0)
        #expect(try Self.users(service) == ["first"])
    }

    @Test func database_replaced_isNeitherReadNorWritten() throws {
        let (service, key) = try Self.service()
        try service.run("store", "backup", service.folder + "/copy.db")
        try Self.move(Self.files, service, to: "/away")
        try FileManager.default.moveItem(
            atPath: service.folder + "/copy.db", toPath: service.folder + "/postern.db")
        #expect(try Self.add("lost", service, key) == 503)
        #expect(try service.ask("GET", "/v1/users/first", key: key).status == 503)
        #expect(try service.ask("GET", "/readyz").status == 503)
        #expect(try Self.users(service) == ["first"])
    }

    @Test func database_walRemoved_isNotWritten() throws {
        let (service, key) = try Self.service()
        try Self.move(["postern.db-wal"], service, to: "/away")
        #expect(try Self.add("lost", service, key) == 503)
        #expect(try service.ask("GET", "/readyz").status == 503)
        try Self.move(["postern.db-wal"], service, to: "/away", back: true)
        #expect(try Self.add("second", service, key) == 201)
    }

    /// Writers that wait for the store must not block readers.
    @Test func database_writeLocked_stillServesReadsAndDecisions() throws {
        let (service, key) = try Self.service()
        try service.run("team", "add", "juice", "--name", "Juice")
        try service.run("app", "add", "juice", "com.juice.app")
        let decisions = try service.key("juice", "--scope", "decisions:write")
        func decide() throws -> Int {
            try service.ask(
                "POST", "/v1/decisions", key: decisions,
                body: #"{"event":"sign_up","client_id":"com.juice.app","sub":"nobody"}"#
            ).status
        }
        let deadline = ContinuousClock.now + .seconds(60)
        while try decide() != 200 {
            try #require(ContinuousClock.now < deadline, "no decision is ever made")
        }

        let installation = try Installation.open(flag: service.folder, environment: [:], now: 1)
        defer { try? installation.close() }
        let (holds, letGo, isFree) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        let database = installation.store.database
        Thread.detachNewThread {
            _ = try? database.write(.durable) { _ in
                holds.signal()
                letGo.wait()
            }
            isFree.signal()
        }
        holds.wait()
        let writers = 24
        let answered = Mutex<[Int]>([])
        let (asked, isOver) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        for number in 0..<writers {
            Thread.detachNewThread {
                asked.signal()
                let status = (try? Self.add("late\(number)", service, key)) ?? 0
                answered.withLock { $0.append(status) }
                isOver.signal()
            }
        }
        for _ in 0..<writers { asked.wait() }
        for _ in 0..<5 {
            #expect(try service.ask("GET", "/v1/users/first", key: key).status == 200)
            #expect(try service.ask("GET", "/readyz").status == 200)
        }
        #expect(try decide() == 200)
        let early = answered.withLock { $0 }
        #expect(
            early.isEmpty,
            "\(early.count) writers gave up before what needs no writing was answered")
        letGo.signal()
        isFree.wait()
        for _ in 0..<writers { isOver.wait() }
        #expect(answered.withLock { $0 }.allSatisfy { $0 == 201 || $0 == 503 })
    }

    /// The command that removed it ended before it deleted anything.
    @Test func teamRemoval_interrupted_isFinishedByService() throws {
        let (service, _) = try Self.service()
        try service.run("team", "add", "juice", "--name", "Juice")
        let installation = try Installation.open(flag: service.folder, environment: [:], now: 1)
        defer { try? installation.close() }
        let store = installation.store
        let change = Change(actor: "test", now: Int64(Date().timeIntervalSince1970))
        for number in 0..<120 {
            _ = try store.users.add(
                id: "u\(number)", name: nil,
                inbox: InboxAddress(AddrSpec(localPart: "u\(number)", domain: "home.example")),
                isVerified: true, change)
            _ = try store.addresses.issue(team: "juice", user: "u\(number)", change)
        }
        // The first step of the command; the further steps are missing.
        try store.teams.remove("juice", change)
        let deadline = ContinuousClock.now + .seconds(60)
        while try store.removals.isPending() {
            try #require(ContinuousClock.now < deadline, "nothing is taken away")
        }
        #expect(try store.database.value("SELECT COUNT(*) FROM accounts", Int64.self) == 0)
        #expect(try store.database.value("SELECT COUNT(*) FROM retired_names", Int64.self) == 240)
    }
}
