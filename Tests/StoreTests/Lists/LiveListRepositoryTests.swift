// Live lists on both engines: refusals, the view of each host over time, and the replacement of a
// list while it is read.

import Accounts
import CEL
import Database
import Decisions
import Foundation
import Logging
import TestSupport
import Testing

@Suite(.blocking) struct LiveListRepositoryTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func later(_ seconds: Int64) -> Change {
        Change(actor: "uid:0", now: TestStore.now + seconds)
    }

    private func host(_ test: TestStore) -> ListsInForce {
        ListsInForce(test.store.liveLists, now: TestStore.now, logger: Self.logger)
    }

    private func contains(
        _ host: ListsInForce, _ text: String, _ list: LiveListName, team: Int64 = 1
    ) -> Bool? {
        host.lists(team: team)?.contains(text, in: list)
    }

    private let bad = LiveListName("bad", .range)

    @Test(arguments: Engine.all) func liveList_changed_isSeenByHostsOnRefresh(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let lists = test.store.liveLists
        let hosts = [host(test), host(test)]
        #expect(hosts[0].missing([bad]) == [bad])
        try lists.create(team: nil, name: "bad", kind: .range, TestStore.change)
        let first = [
            LiveListEntry("198.51.100.9/24", reason: "farm"), LiveListEntry("2001:DB8::1"),
        ]
        #expect(try lists.add(team: nil, name: "bad", first, TestStore.change) == 2)
        #expect(try lists.add(team: nil, name: "bad", first, later(1)) == 0)
        for host in hosts {
            #expect(contains(host, "198.51.100.7", bad) == false)
            host.refresh(now: TestStore.now + 1)
            #expect(contains(host, "198.51.100.7", bad) == true)
            #expect(contains(host, "2001:db8:0::1", bad) == true)
            #expect(contains(host, "192.0.2.1", bad) == false)
            #expect(contains(host, "198.51.100.7", LiveListName("bad", .text)) == false)
            #expect(host.missing([bad]).isEmpty)
            #expect(host.missing([LiveListName("bad", .text)]).count == 1)
        }
        #expect(
            try lists.remove(team: nil, name: "bad", ["198.51.100.0/24", "192.0.2.1"], later(2))
                == 1)
        #expect(try lists.list(team: nil, name: "bad").entries == 1)
        for host in hosts {
            host.refresh(now: TestStore.now + 2)
            #expect(contains(host, "198.51.100.7", bad) == false)
            #expect(contains(host, "2001:db8::1", bad) == true)
        }
        // Added again after its removal.
        #expect(
            try lists.add(team: nil, name: "bad", [LiveListEntry("198.51.100.0/24")], later(3)) == 1
        )
        hosts[0].refresh(now: TestStore.now + 3)
        #expect(contains(hosts[0], "198.51.100.7", bad) == true)
        // A host that was away for longer than removed entries are kept reads everything.
        try lists.remove(team: nil, name: "bad", ["2001:db8::1"], later(4))
        while try lists.step(now: TestStore.now + 10_000) {}
        try lists.add(team: nil, name: "bad", [LiveListEntry("192.0.2.1")], later(10_001))
        hosts[1].refresh(now: TestStore.now + 10_002)
        #expect(contains(hosts[1], "2001:db8::1", bad) == false)
        #expect(contains(hosts[1], "192.0.2.1", bad) == true)
        try lists.removeList(team: nil, name: "bad", later(10_003))
        hosts[1].refresh(now: TestStore.now + 10_004)
        #expect(contains(hosts[1], "192.0.2.1", bad) == false)
        #expect(hosts[1].missing([bad]) == [bad])
        while try lists.step(now: TestStore.now + 10_005) {}
        #expect(try test.database.value("SELECT COUNT(*) FROM live_list_entries", Int64.self) == 0)
        let audit = try test.store.audit.entries(limit: 100).filter { $0.action.hasPrefix("list.") }
        #expect(
            Set(audit.map(\.action)) == [
                "list.create", "list.add", "list.remove", "list.remove-list",
            ])
        #expect(audit.allSatisfy { $0.subject == "list:bad" })
    }

    @Test(arguments: Engine.all) func liveList_entryExpired_isNotFound(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let lists = test.store.liveLists
        let words = LiveListName("words", .text)
        try lists.create(team: nil, name: "words", kind: .text, TestStore.change)
        let entries = [LiveListEntry("a", expiresAt: TestStore.now + 10), LiveListEntry("b")]
        try lists.add(team: nil, name: "words", entries, TestStore.change)
        let host = host(test)
        host.refresh(now: TestStore.now + 9)
        #expect(contains(host, "a", words) == true)
        host.refresh(now: TestStore.now + 10)
        #expect(contains(host, "a", words) == false)
        #expect(contains(host, "b", words) == true)
        #expect(
            try lists.entries(team: nil, name: "words", limit: 10, now: TestStore.now + 10).map(
                \.value) == ["b"])
        while try lists.step(now: TestStore.now + 10 + LiveListLimits.removedFor) {}
        #expect(try lists.list(team: nil, name: "words").entries == 1)
        // Extended before its end.
        try lists.add(
            team: nil, name: "words", [LiveListEntry("b", expiresAt: TestStore.now + 20)], later(10)
        )
        try lists.add(team: nil, name: "words", [LiveListEntry("b")], later(11))
        host.refresh(now: TestStore.now + 30)
        #expect(contains(host, "b", words) == true)
    }

    /// U+00E9, and `e` with U+0301: Swift's strings call them equal.
    @Test(arguments: Engine.all) func textsThatLookAlike_areTwoEntries(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let lists = test.store.liveLists
        let words = LiveListName("words", .text)
        try lists.create(team: nil, name: "words", kind: .text, TestStore.change)
        let entries = [
            LiveListEntry("caf\u{E9}", expiresAt: TestStore.now + 10), LiveListEntry("cafe\u{301}"),
        ]
        #expect(try lists.add(team: nil, name: "words", entries, TestStore.change) == 2)
        let host = host(test)
        host.refresh(now: TestStore.now + 11)
        #expect(contains(host, "caf\u{E9}", words) == false)
        #expect(contains(host, "cafe\u{301}", words) == true)
    }

    @Test(arguments: Engine.all) func liveList_ofOneTeam_isNotSeenByOthers(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let lists = test.store.liveLists
        let juice = try test.store.teams.team("juice").number
        let other = try test.store.teams.add(id: "other", name: "Other", TestStore.change).number
        let own = LiveListName("people", .personal, isTeams: true)
        let everyones = LiveListName("people", .personal)
        for team in ["juice", "other", nil] {
            try lists.create(team: team, name: "people", kind: .personal, TestStore.change)
        }
        try lists.add(
            team: "juice", name: "people", [LiveListEntry(" Jane@Example.com ")], TestStore.change)
        try lists.add(team: nil, name: "people", [LiveListEntry("+49 30 1")], TestStore.change)
        let host = host(test)
        #expect(contains(host, "jane@EXAMPLE.com", own, team: juice) == true)
        #expect(contains(host, "jane@example.com", own, team: other) == false)
        #expect(contains(host, "jane@example.com", everyones, team: juice) == false)
        #expect(contains(host, "+49 30 1", everyones, team: other) == true)
        #expect(contains(host, "+49 30 1", own, team: juice) == false)
        // The same person in two lists has different marks, so the lists cannot be compared.
        try lists.add(
            team: "other", name: "people", [LiveListEntry("jane@example.com")], TestStore.change)
        let marks = try ["juice", "other"].map {
            try lists.entries(team: $0, name: "people", limit: 9, now: TestStore.now).map(\.value)
        }
        #expect(marks[0].count == 1 && marks[0] != marks[1])
        #expect(
            try lists.remove(team: "other", name: "people", ["JANE@example.com"], TestStore.change)
                == 1)
        #expect(try lists.list(team: "juice", name: "people").entries == 1)
    }

    @Test(arguments: Engine.alone) func liveList_personalValue_isNotStored(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.store.liveLists.create(
            team: nil, name: "people", kind: .personal, TestStore.change)
        let secret = "zanzibar-4711@example.com"
        try test.store.liveLists.add(
            team: nil, name: "people", [LiveListEntry(secret, reason: "complained")],
            TestStore.change)
        let contents = try engine.contents(test.folder.url)
        #expect(contents.contains { $0.range(of: Data("complained".utf8)) != nil })
        #expect(contents.allSatisfy { $0.range(of: Data("zanzibar-4711".utf8)) == nil })
    }

    @Test(arguments: Engine.all) func liveList_invalidOrOverLimit_isRefused(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let lists = test.store.liveLists
        expectRefusal(.invalid) {
            try lists.create(team: nil, name: "a-b", kind: .text, TestStore.change)
        }
        expectRefusal(.invalid) {
            try lists.create(team: nil, name: "1a", kind: .text, TestStore.change)
        }
        expectRefusal(.notFound) {
            try lists.create(team: "none", name: "a", kind: .text, TestStore.change)
        }
        try lists.create(team: "juice", name: "a", kind: .domain, TestStore.change)
        expectRefusal(.exists) {
            try lists.create(team: "juice", name: "a", kind: .text, TestStore.change)
        }
        expectRefusal(.notFound) {
            try lists.add(team: nil, name: "a", [LiveListEntry("a.example")], TestStore.change)
        }
        func add(_ value: String, reason: String = "") throws {
            try lists.add(
                team: "juice", name: "a", [LiveListEntry(value, reason: reason)], TestStore.change)
        }
        expectRefusal(.invalid) { try add("jane@a.example") }
        expectRefusal(.invalid) { try add("a..example") }
        expectRefusal(.invalid) { try add("a.example", reason: "jane@a.example wrote") }
        expectRefusal(.limit) { try add(String(repeating: "a.", count: 150) + "example") }
        expectRefusal(.limit) { try add("a.example", reason: String(repeating: "a", count: 201)) }
        let many = (0...LiveListLimits.entriesOfChange).map { LiveListEntry("a\($0).example") }
        expectRefusal(.limit) { try lists.add(team: "juice", name: "a", many, TestStore.change) }
        try test.database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                "UPDATE live_lists SET entries = \(LiveListLimits.entriesOfTeam - 1)")
        }
        try add("a.example")
        try add("a.example")
        expectRefusal(.limit) { try add("b.example") }
        for number in 1..<LiveListLimits.listsOfTeam {
            try lists.create(team: "juice", name: "b\(number)", kind: .text, TestStore.change)
        }
        expectRefusal(.limit) {
            try lists.create(team: "juice", name: "c", kind: .text, TestStore.change)
        }
    }

    @Test(arguments: Engine.all) func liveList_imported_isSeenOnlyWhenFinished(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let lists = test.store.liveLists
        try lists.create(team: nil, name: "bad", kind: .range, TestStore.change)
        try lists.add(team: nil, name: "bad", [LiveListEntry("192.0.2.1")], TestStore.change)
        let host = host(test)
        // Abandoned: its entries are never visible, and are deleted when another import begins.
        var abandoned = try lists.beginImport(team: nil, name: "bad")
        try lists.write([LiveListEntry("203.0.113.1")], &abandoned, TestStore.change)
        var running = try lists.beginImport(team: nil, name: "bad")
        for part in 0..<3 {
            let entries =
                (0..<200).map { LiveListEntry("10.\(part).\($0).0/24") } + [
                    LiveListEntry("10.0.0.0/24")
                ]
            try lists.write(entries, &running, later(1))
            host.refresh(now: TestStore.now + 1)
            #expect(contains(host, "10.0.0.1", bad) == false)
            #expect(contains(host, "192.0.2.1", bad) == true)
        }
        #expect(running.count == 600)
        expectRefusal(.overtaken) {
            try lists.write([LiveListEntry("203.0.113.2")], &abandoned, TestStore.change)
        }
        expectRefusal(.overtaken) { try lists.finish(abandoned, TestStore.change) }
        expectRefusal(.invalid) {
            try lists.write([LiveListEntry("everywhere")], &running, TestStore.change)
        }
        try lists.finish(running, later(2))
        host.refresh(now: TestStore.now + 2)
        #expect(contains(host, "10.2.199.1", bad) == true)
        #expect(contains(host, "192.0.2.1", bad) == false)
        #expect(contains(host, "203.0.113.1", bad) == false)
        #expect(try lists.list(team: nil, name: "bad").entries == 600)
        while try lists.step(now: TestStore.now + 2, rows: 7) {}
        #expect(
            try test.database.value("SELECT COUNT(*) FROM live_list_entries", Int64.self) == 600)
        // Page by page, each entry once.
        var shown: [String] = []
        while let page = try Optional(
            lists.entries(
                team: nil, name: "bad", after: shown.last ?? "", limit: 70, now: TestStore.now)),
            !page.isEmpty
        {
            shown += page.map(\.value)
        }
        #expect(shown.count == 600 && Set(shown).count == 600)
    }

    @Test(arguments: Engine.all) func liveList_teamRemoved_isDeleted(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let lists = test.store.liveLists
        try lists.create(team: "juice", name: "a", kind: .text, TestStore.change)
        try lists.create(team: nil, name: "a", kind: .text, TestStore.change)
        for team in ["juice", nil] {
            try lists.add(team: team, name: "a", [LiveListEntry("x")], TestStore.change)
        }
        try test.store.teams.remove("juice", TestStore.change)
        while try test.store.removals.step(now: TestStore.now) {}
        #expect(try test.database.value("SELECT COUNT(*) FROM live_list_entries", Int64.self) == 1)
        #expect(try test.database.value("SELECT COUNT(*) FROM live_lists", Int64.self) == 1)
    }
}
