// The reports of services, and the minutes that they count.

import Accounts
import Monitoring
import TestSupport
import Testing

@Suite(.blocking) struct ServiceStatusTests {
    @Test(arguments: Engine.all) func minutes_serviceRemoved_areKept(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let status = test.store.serviceStatus
        try status.report(
            host: "mx1", pid: 7, snapshot: "{}", minute: .init(at: 60, counts: #"{"a":1}"#), now: 60
        )
        // A minute that is written twice counts once.
        try status.report(
            host: "mx1", pid: 7, snapshot: "{}", minute: .init(at: 60, counts: #"{"a":1}"#), now: 61
        )
        try status.report(
            host: "mx2", pid: 7, snapshot: "{}", minute: .init(at: 60, counts: #"{"a":2}"#), now: 60
        )
        try status.remove(host: "mx1", pid: 7, minute: .init(at: 90, counts: #"{"a":4}"#))
        #expect(try status.all().map(\.host) == ["mx2"])
        #expect(
            try status.minutes(after: 0).map(\.counts) == [#"{"a":1}"#, #"{"a":2}"#, #"{"a":4}"#])
        #expect(try status.minutes(after: 60).map(\.at) == [90])
        #expect(try status.deleteExpired(before: 61, minutes: 90) == 1)
        #expect(try status.all().isEmpty && status.minutes(after: 0).map(\.at) == [90])
    }

    @Test(arguments: Engine.all) func suspendedInboxes_several_areCountedAndNamed(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        #expect(try test.store.inboxes.suspended(limit: 2).count == 0)
        for user in ["u1", "u2", "u3"] { try test.user(user) }
        try test.database.write(.durable) { connection in
            _ = try connection.run("UPDATE inboxes SET suspended_at = 10 + user_id")
        }
        let (count, users) = try test.store.inboxes.suspended(limit: 2)
        #expect(count == 3 && users == ["u3", "u2"])
    }
}
