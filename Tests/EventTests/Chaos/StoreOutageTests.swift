// The behaviour of serve when its store fails: a server that is gone, a full disk, a file system
// that becomes read-only.

import Accounts
import Foundation
import InternetMessage
import PosternConfiguration
import PostfixHarness
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: EventHosts.hasCompiler, "there is no C compiler"))
struct StoreOutageTests {
    private static let noLimit = ["limits.messages_per_day": "1000000"]

    /// Runs a test on separate hosts, under the load of changes and mail.
    private func underLoad(
        _ hosts: EventHosts, count: Int, _ body: (ServingHosts, Changes, ChaosMail) throws -> Void
    ) async throws {
        let load = Load()
        do {
            let serving = ServingHosts(hosts, count: count, settings: Self.noLimit)
            try serving.start()
            let changes = Changes(hosts)
            let mail = try ChaosMail(hosts, serving, limit: 1_000_000)
            load.begin { round in changes.change(user: round % Changes.users) }
            for _ in 0..<2 { load.begin { round in mail.send(round) } }
            let begun = Date()
            let result = Result { try body(serving, changes, mail) }
            load.end()
            try result.get()
            try hosts.waitUntilTaken()
            try hosts.checkOrder()
            try changes.check()
            try mail.check(hosts: count, from: begun, to: Date())
        } catch {
            load.end()
            await hosts.stop()
            throw error
        }
        await hosts.stop()
    }

    private func flow(_ changes: Changes, _ mail: ChaosMail) throws {
        let (changed, taken) = (changes.count, mail.taken)
        try wait("changes and mail flow", atMost: 2 * standardTimeout) {
            changes.count >= changed + 20 && mail.taken >= taken + 20
        }
    }

    @Test(
        .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"),
        .timeLimit(.minutes(20)))
    func hosts_databaseServerGone_waitForStandby() async throws {
        let primary = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let standby = try PostgresServer(standbyOf: primary)
        // Acknowledged changes are on both servers.
        try primary.psql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        try primary.psql("SELECT pg_reload_conf()")
        let hosts = try await EventHosts(primary, users: Changes.users, standby: standby)
        try await underLoad(hosts, count: 2) { serving, changes, mail in
            try flow(changes, mail)
            primary.stop(immediately: true)
            try wait("they notice", atMost: 2 * standardTimeout) {
                changes.failures > 0 && mail.answers("45") > 0
            }
            try serving.wait(until: 503)
            let (changed, taken, deferred) = (changes.count, mail.taken, mail.answers("45"))
            try wait("more mail is put off", atMost: 2 * standardTimeout) {
                mail.answers("45") >= deferred + 10
            }
            // The server that answers accepts no writes; nothing is acknowledged.
            #expect(changes.count == changed && mail.taken == taken)
            try standby.psql("SELECT pg_promote()")
            try serving.wait(until: 200)
            try flow(changes, mail)
        }
    }

    /// Whether this user may mount a file system from an image.
    private static let mayMount: Bool = {
        guard geteuid() == 0, let disk = try? Disk(image: true) else { return false }
        return disk.remove()
    }()

    @Test(
        .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"),
        .enabled(if: mayMount, "a file system of its own needs the right to mount"),
        .timeLimit(.minutes(20)))
    func hosts_postgreSQLDiskFull_goOnWhenThereIsRoom() async throws {
        let disk = try Disk(image: false)
        defer { disk.remove() }
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        defer { server.stop() }
        // The server's log is on another disk: without space for it, the server could not even
        // report that a change failed.
        let place = disk.folder + "/tables"
        try ManagedProcess.run("/bin/sh", ["-c", "mkdir '\(place)' && chown postgres '\(place)'"])
        try server.psql("CREATE TABLESPACE small LOCATION '\(place)'")
        try server.psql("ALTER DATABASE postgres SET default_tablespace = 'small'")
        let hosts = try await EventHosts(server, users: Changes.users)
        try await underLoad(hosts, count: 2) { serving, changes, mail in
            try flow(changes, mail)
            let filler = disk.folder + "/filler"
            for size in ["1M", "4k", "1"] {
                _ = try ManagedProcess.run(
                    "/bin/sh",
                    ["-c", "dd if=/dev/zero bs=\(size) >> '\(filler)' 2>/dev/null; true"])
            }
            // Changes that fit into the existing pages are still accepted.
            try wait("the disk is full", atMost: 2 * standardTimeout) { changes.failures > 3 }
            #expect(serving.sockets.indices.allSatisfy { serving.process($0).isRunning })
            try FileManager.default.removeItem(atPath: filler)
            try flow(changes, mail)
            try serving.wait(until: 200)
        }
    }

    @Test(
        .enabled(if: mayMount, "a file system of its own needs the right to mount"),
        .timeLimit(.minutes(20)))
    func hosts_fileSystemReadOnly_loseNothingAcknowledged() async throws {
        let disk = try Disk(image: true)
        defer { disk.remove() }
        let hosts = try await EventHosts(nil, users: 1, place: disk.folder)
        do {
            try serveOnReadOnly(hosts, disk)
        } catch {
            await hosts.stop()
            throw error
        }
        await hosts.stop()
    }

    private func serveOnReadOnly(_ hosts: EventHosts, _ disk: Disk) throws {
        let serving = ServingHosts(hosts, count: 1, settings: Self.noLimit)
        let mail = try ChaosMail(hosts, serving, limit: 1_000_000)
        let key = try hosts.key("--operator", "--scope", "users:write")
        try hosts.closeStore()
        try serving.start()
        try serving.wait(until: 200)
        let address = try #require(hosts.addresses.first).wireForm
        var isOn = true
        func change() -> Int {
            let body = #"{"address":"\#(address)","forwarding":\#(!isOn)}"#
            let answer = try? HTTPClient.post(
                port: serving.ports[0], path: "/v1/addresses/forwarding", bearer: key, body: body,
                timeout: 20)
            if answer?.status == 200 { isOn.toggle() }
            return answer?.status ?? 0
        }
        for round in 0..<41 {
            #expect(change() == 200)
            mail.send(round)
        }
        let taken = mail.taken
        #expect(taken > 10)
        // As the kernel does when the disk fails.
        try #require(
            try ManagedProcess.run("/bin/mount", ["-o", "remount,abort", disk.folder]).status == 0)
        #expect(change() == 503)
        try serving.wait(until: 503)
        for round in 0..<20 {
            #expect(change() == 503)
            mail.send(round)
        }
        #expect(serving.process(0).isRunning, "\(serving.process(0).lines.suffix(5))")
        // The disk contains the acknowledged changes.
        let copy = try disk.copy()
        defer { copy.remove() }
        let installation = try Installation.open(
            flag: copy.folder + "/data", environment: [:], now: Int64(Date().timeIntervalSince1970))
        defer { try? installation.close() }
        let stored = try #require(
            try installation.store.addresses.addresses(team: "juice", user: "u0").first)
        #expect(stored.isForwardingOn == isOn)
        #expect(try installation.store.outbox.events(limit: 1_000).count == 41)
    }
}

/// A file system for one test.
private final class Disk {
    let folder: String
    private let image: String?

    /// - Parameter image: whether it is on a disk that can fail (ext4 in a file), or in memory.
    convenience init(image: Bool) throws {
        let base = NSTemporaryDirectory() + "postern-disk-" + UUID().uuidString.prefix(8)
        if image {
            let made = try ManagedProcess.run(
                "/bin/sh",
                ["-c", "truncate -s 64M '\(base).img' && /sbin/mkfs.ext4 -q -F '\(base).img'"])
            guard made.status == 0 else { throw HarnessError("mkfs.ext4: \(made.output)") }
        }
        try self.init(base, image: image ? base + ".img" : nil)
    }

    private init(_ base: String, image: String?) throws {
        (folder, self.image) = (base, image)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let arguments =
            image.map { ["-o", "loop", $0] } ?? [
                "-t", "tmpfs", "-o", "size=40M,mode=0755", "tmpfs",
            ]
        let mounted = try ManagedProcess.run("/bin/mount", arguments + [folder])
        guard mounted.status == 0 else {
            remove()
            throw HarnessError("mount: \(mounted.output)")
        }
    }

    /// The present content of the disk, as after a start of the machine.
    func copy() throws -> Disk {
        guard let image else { throw HarnessError("this one lies in memory") }
        let base = folder + "-copy"
        try FileManager.default.copyItem(atPath: image, toPath: base + ".img")
        _ = try ManagedProcess.run("/sbin/e2fsck", ["-fy", base + ".img"])
        return try Disk(base, image: base + ".img")
    }

    @discardableResult
    func remove() -> Bool {
        let unmounted = (try? ManagedProcess.run("/bin/umount", ["-l", folder]))?.status == 0
        try? FileManager.default.removeItem(atPath: folder)
        if let image { try? FileManager.default.removeItem(atPath: image) }
        return unmounted
    }
}
